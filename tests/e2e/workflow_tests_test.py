#!/usr/bin/env python3
"""`intact test`: what passes and what fails, how it is told, TAP, JUnit, --update, --watch, and files that are wrong.

Usage: workflow_tests_test.py ROOT INTACT [TEST...]"""

import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import unittest
import xml.etree.ElementTree as ElementTree

ROOT, INTACT = (os.path.realpath(p) for p in sys.argv[1:3])
PATIENCE_S = 240  # only a failing test waits so long
ORDER = """intact: 1
workflow: order
complete_by: 1d
steps:
  - {name: reserve, agent: stock, action: take, input: {n: "${ .input.n }"}, undo: {action: put-back}}
  - {name: charge, agent: bank, action: charge, complete_by: 30s, undo: {action: refund}}
  - {name: ship, agent: post, action: ship, undo: {action: recall}}
  - {name: tell, agent: mail, action: send, undo: none, if: .input.n > 1}
"""
HEAD = """workflow: order.yaml
world: {stock: 10, money: 0, mails: 0}
agents:
  stock.take: {output: {id: r-1}, takes: 2s, effect: {stock: .world.stock - .input.n}}
  bank.charge: {output: {charge: c-1}, effect: {money: .world.money + 10}}
  post.ship: {output: {id: p-1}}
  mail.send: {effect: {mails: .world.mails + 1}}
tests:
"""
ALL = """intact: 1
workflow: all
lock: {key: "${ .input.customer }"}
on_signal: {cancelled: undo}
steps:
  - {name: allow, approve: {by: finance, question: "Pay?", not: submitter}, complete_by: 3d}
  - {name: paid, signal: {name: payment, match: .data.amount >= .input.total}, complete_by: 2d, default: {name: nobody}}
  - name: ready
    agent: cluster
    http: {method: GET, path: "/clusters/1"}
    repeat: {until: .output.status == "ready", every: 5s, factor: 2, max_every: 1m, for: 2h}
    undo: none
  - name: pack
    for_each: ${ .input.lines }
    max_items: 200
    concurrency: 2
    agent: stock
    action: take
    input: {sku: "${ .item.sku }"}
    undo: {action: put-back}
  - {name: parcel, for_each: "${ .input.lines }", max_items: 20, task: {workflow: child, input: {line: "${ .item.sku }"}}}
  - {name: rest, wait: 30d}
  - {name: bill, agent: crm, http: {method: POST, path: "/bills"}, undo: {http: {method: DELETE, path: "/bills/1"}}}
  - {name: last, agent: crm, action: finish, undo: none, complete_by: 1m, heartbeat: 5s}
on_undo:
  - {name: sorry, agent: mail, action: sorry, undo: none}
"""
CHILD = """intact: 1
workflow: child
steps:
  - {name: label, agent: printer, action: print, undo: {action: void}}
  - {name: dry, wait: 1h}
"""
ALL_TESTS = """workflow: all.yaml
also: [child.yaml]
world: {taken: 0, labels: 0, bills: [], mails: 0}
agents:
  cluster.ready: [{output: {status: creating}, times: 3}, {output: {status: ready}}]
  stock.take: {output: {id: "${ .input.sku }"}, effect: {taken: .world.taken + 1}, takes: 1s}
  printer.print: {effect: {labels: .world.labels + 1}}
  crm.bill: {output: {id: b-1}, effect: {bills: '.world.bills + ["b-1"]'}, undone: {bills: '.world.bills - ["b-1"]'}}
  crm.finish: {takes: 30s}
  mail: {effect: {mails: .world.mails + 1}}
tests:
  - name: all goes well
    input: {customer: ann, total: 10, lines: [{sku: a}, {sku: b}, {sku: c}]}
    approvals: [{after: 1h, step: allow, approve: bob}]
    signals: [{after: 2h, payment: {amount: 1}}, {after: 3h, payment: {amount: 10}}]
    expect:
      state: processed
      world: {taken: 3, labels: 3, bills: [b-1], mails: 0}
      order: [[pack.0, pack.1], pack.2, [parcel.0/label, parcel.1/label, parcel.2/label], bill]
      steps: {paid: completed, rest: completed}
      within: 31d
  - name: the end is refused
    input: {customer: ann, total: 10, lines: [{sku: a}, {sku: b}, {sku: c}]}
    approvals: [{after: 1h, step: allow, approve: bob}]
    agents:
      crm.finish: {refuse: closed}
    expect: {state: compensated, error: closed, world: .before, steps: {sorry: completed, bill: undone}}
  - name: one of the items cannot be had
    input: {customer: ann, total: 10, lines: [{sku: a}, {sku: b}, {sku: c}]}
    approvals: [{after: 1h, step: allow, approve: bob}]
    agents:
      stock.take: [{if: .input.sku == "b", refuse: sold-out}]
    expect: {state: compensated, error: sold-out, world: .before, order: [pack.0, undo pack.0, sorry]}
  - name: rejected
    input: {customer: ann, total: 10, lines: []}
    approvals: [{after: 1h, step: allow, reject: bob, comment: too much}]
    expect: {state: compensated, error: rejected, world: .before}
  - name: cancelled
    input: {customer: ann, total: 10, lines: []}
    signals: [{after: 1h, cancelled: null}]
    expect: {state: compensated, world: {mails: "${ .before.mails + 1 }"}, within: 1h}
  - name: silence ends an attempt that shows no life
    input: {customer: ann, total: 10, lines: []}
    approvals: [{after: 1h, step: allow, approve: bob}]
    agents:
      crm.finish: [{silent: before effect}, {output: 5}]
    expect: {state: processed, within: 33d}
  - name: an operator helps
    input: {customer: ann, total: 10, lines: []}
    approvals: [{after: 1h, step: allow, approve: bob}]
    agents:
      mail.sorry: [{refuse: full}, {output: null}]
      crm.finish: {refuse: closed}
    operator: [{after: 40d, retry: sorry}]
    expect: {state: compensated, error: closed, world: .before}
"""


class Case(unittest.TestCase):
    maxDiff = None

    def setUp(self):
        self.folder = tempfile.TemporaryDirectory(prefix="intact-test-")
        self.write("order.yaml", ORDER)

    def tearDown(self):
        self.folder.cleanup()

    def path(self, name):
        return os.path.join(self.folder.name, name)

    def write(self, name, text):
        with open(self.path(name), "wb" if isinstance(text, bytes) else "w") as f:
            f.write(text)

    def read(self, name):
        with open(self.path(name), encoding="utf-8") as f:
            return f.read()

    def run_it(self, *words, status=0):
        done = subprocess.run([INTACT, "test", *words], cwd=self.folder.name, capture_output=True, text=True, errors="replace",
                              timeout=PATIENCE_S, check=False)
        self.assertEqual(done.returncode, status, done.stdout + done.stderr)
        return done

    def fails(self, test, *words, head=HEAD):
        """The text of a file with one test that fails, and its output."""
        self.write("t.test.yaml", head + test)
        done = self.run_it("t.test.yaml", status=1)
        for word in words:
            self.assertIn(word, done.stdout)
        self.assertEqual(done.stderr, "")
        return done.stdout

    def is_wrong(self, text, *words, name="t.test.yaml"):
        self.write(name, text)
        done = self.run_it(name, status=2)
        for word in words:
            self.assertIn(word, done.stderr)


class Verdicts(Case):
    def test_every_kind_of_step(self):
        self.write("all.yaml", ALL)
        self.write("child.yaml", CHILD)
        self.write("all.test.yaml", ALL_TESTS)
        self.assertEqual(self.run_it().stdout, "all.test.yaml: 7 passed, 0 failed\n")

    def test_the_same_run_twice(self):
        self.write("all.yaml", ALL)
        self.write("child.yaml", CHILD)
        self.write("all.test.yaml", ALL_TESTS)
        self.assertEqual(self.run_it("--verbose").stdout, self.run_it("--verbose").stdout)

    def test_each_expectation_can_fail(self):
        first = "- name: one\n  input: {n: 2}\n"
        self.fails(first + "  expect: {state: compensated}\n", "t.test.yaml:11:19: state: expected compensated, found processed")
        self.fails(first + "  expect: {error: declined}\n", ":11:19: error: expected declined, found none")
        self.fails(first + "  expect: {world: {stock: 9}}\n", ":11:27: world.stock: expected 9, found 8")
        self.fails(first + "  expect: {world: .before}\n", "world.stock: expected 10, found 8", "world.money: expected 0, found 10")
        self.fails(first + "  expect: {order: [reserve, charge]}\n", "order: expected nothing after number 2, found [reserve, charge, tell]")
        self.fails(first + "  expect: {order: [charge, reserve, tell]}\n", ":11:20: order: expected charge as number 1")
        self.fails(first + "  expect: {order: [[charge, reserve], ship]}\n", "order: expected ship as number 3")
        self.fails(first + "  expect: {within: 1s}\n", "within: expected 1s, but it took 2s")
        self.fails(first + "  expect: {output: 5}\n", "output: expected 5, found null")
        self.fails(first + "  expect: {steps: {tell: skipped}}\n", "steps.tell: expected skipped, found completed")
        out = self.fails(first + "  expect: {state: '?'}\n", "--update")
        self.assertNotIn("mails", self.read("order.yaml"))
        self.assertIn("00:00:02  effect of reserve: stock is 8", out)

    def test_before_leaves_out_what_nothing_undoes(self):
        self.write("t.test.yaml", HEAD + """- name: told, and then undone
  input: {n: 2}
  operator: [{after: 1h, undo: true}]
  expect: {state: compensated, world: .before, order: [reserve, charge, tell, undo charge, undo reserve]}
""")
        self.run_it()

    def test_what_a_server_refuses(self):
        first = "- name: one\n  input: {n: 2}\n"
        self.fails(first + "  operator: [{after: 1h, resolve: ship}]\n  expect: {state: processed}\n",
                   ":11:14: operator: resolve ship is refused: ")
        self.fails(first + "  operator: [{after: 1h, retry: ship}]\n  expect: {state: processed}\n", "retry ship is refused: ")
        self.write("order.yaml", ORDER + "inputs: {n: {type: integer, required: true}}\n")
        self.fails("- name: one\n  input: {m: 2}\n  expect: {state: processed}\n", ":9:3: the submission is refused: ")

    def test_what_the_file_does_not_say(self):
        self.fails("- name: one\n  expect: {state: processed}\n", "post.ship is requested, and `agents` does not say what it does",
                   head=HEAD.replace("  post.ship: {output: {id: p-1}}\n", ""))

    def test_what_never_ends(self):
        self.write("order.yaml", "intact: 1\nworkflow: w\nsteps:\n  - {name: paid, signal: {name: pay}}\n")
        self.fails("- name: one\n  expect: {state: processed}\n", "the task does not end: paid waits for signal pay",
                   head="workflow: order.yaml\ntests:\n")

    def test_expressions_that_fail(self):
        first = "- name: one\n  input: {n: 0}\n  agents:\n"
        for text, told in (("stock.take: {effect: {stock: 1 / .input.n}}", "division by zero"),
                           ("post.ship: {effect: {stock: '[range(0; 1000000000)] | length'}}", "more than"),
                           ("bank.charge: {output: '${ [range(0; 1000000000)] | length }'}", "more than"),
                           ("bank.charge: {if: '[range(0; 1000000000)] | length > 1', output: 1}", "the `if` of an answer failed")):
            self.fails(first + f"    {text}\n  expect: {{state: processed}}\n", told, "t.test.yaml:12:")

    def test_late_effects_count(self):
        text = "- name: one\n  input: {n: 1}\n  agents:\n    bank.charge: {takes: 5m}\n"
        self.write("t.test.yaml", HEAD + text + "  expect: {state: compensated, error: timeout, world: {money: 0}, order: [reserve, undo reserve]}\n")
        self.run_it()
        self.fails(text + "  expect: {world: {money: 10}}\n", "an answer comes too late", "expected 10, found 0")

    def test_moments(self):
        """What falls due is acted on at its moment: time that is skipped is no outage."""
        self.write("order.yaml", "intact: 1\nworkflow: w\ncomplete_by: 20d\nsteps:\n  - {name: a, wait: 10d}\n"
                   "  - {name: b, agent: x, action: y, complete_by: 90s, undo: {action: z}}\n  - {name: c, wait: 9d}\n  - {name: d, signal: {name: e}}\n")
        self.write("t.test.yaml", "workflow: order.yaml\nagents: {x.y: [{silent: before effect}, {takes: 2s}]}\ntests:\n"
                   "- {name: t, expect: {state: compensated, error: deadline, steps: {b: undone, d: waiting}}}\n")
        out = self.run_it("--verbose").stdout
        for line in ("10d 00:00:00  a completes", "10d 00:00:00  b: attempt 1, x.y", "10d 00:01:30  b: attempt 1 had no answer in time",
                     "19d 00:01:3", "20d 00:00:00  task compensating: deadline", "20d 00:00:00  undo of b: attempt 1, x.z"):
            self.assertIn(line, out)

    def test_a_task_that_goes_on_is_not_judged(self):
        """It had stopped in error, or ended; an operator's act has it go on, and what it waits for then is waited for."""
        self.write("order.yaml", "intact: 1\nworkflow: w\nsteps:\n  - {name: one, agent: a, action: one, on_failure: hold, undo: none}\n"
                   "  - {name: cool, wait: 1h}\n  - {name: two, agent: a, action: pay, undo: {action: back}}\n")
        head = ("workflow: order.yaml\nworld: {paid: 0}\nagents:\n  a.one: [{refuse: no}, {}]\n  a.pay: {effect: {paid: .world.paid + 1}}\n"
                "  a.back: [{silent: before effect}, {}]\ntests:\n")
        self.write("t.test.yaml", head + "- {name: retried, operator: [{after: 2h, retry: one}], expect: {state: processed, world: {paid: 1}}}\n"
                   "- {name: undone, operator: [{after: 2h, retry: one}, {after: 9h, undo: true}], expect: {state: compensated, world: {paid: 0}}}\n")
        self.run_it()
        self.fails("- {name: t, operator: [{after: 2h, retry: one}], expect: {world: {paid: 0}}}\n", "world.paid: expected 0, found 1", head=head)
        self.fails("- {name: t, operator: [{after: 8000d, cancel: true}, {after: 2h, retry: one}], expect: {state: processed}}\n",
                   "is not played", head=head)

    def test_an_error_leaves_the_effect_unknown(self):
        """As on a server: an agent whose error may be tried again, and that says no more, may have done it."""
        self.write("order.yaml", "intact: 1\nworkflow: w\nsteps:\n  - {name: p, agent: a, action: p, pivot: true, retry: {attempts: 2, wait: 1s}}\n")
        head = "workflow: order.yaml\ntests:\n"
        self.write("t.test.yaml", head + "- {name: t, agents: {a.p: {fail: x}}, expect: {state: error}}\n"
                   "- {name: u, agents: {a.p: {fail: {code: x, effect: none}}}, expect: {state: compensated}}\n")
        self.run_it()

    def test_a_thousand_steps(self):
        steps = "".join(f"  - {{name: s{i}, agent: a, action: do, undo: {{action: un}}}}\n" for i in range(1000))
        self.write("order.yaml", "intact: 1\nworkflow: w\nsteps:\n" + steps)
        self.write("t.test.yaml", "workflow: order.yaml\nworld: {n: 0}\nagents: {a.do: {effect: {n: .world.n + 1}}}\ntests:\n"
                   "- {name: t, expect: {state: processed, world: {n: 1000}}}\n"
                   "- {name: u, agents: {a.do: [{if: .step == \"s999\", refuse: no}]}, expect: {state: compensated, world: .before}}\n")
        self.run_it()


class Reports(Case):
    def both(self):
        self.write("t.test.yaml", HEAD + "- name: 'good <&> # one'\n  input: {n: 1}\n  expect: {state: processed}\n"
                   "- name: bad one\n  input: {n: 1}\n  expect: {state: error, error: x}\n")

    def test_tap(self):
        self.both()
        done = self.run_it("--tap", status=1)
        lines = done.stdout.split("\n")
        self.assertEqual(lines[:3], ["TAP version 13", "ok 1 - t.test.yaml: good <&> \\# one", "not ok 2 - t.test.yaml: bad one"])
        self.assertEqual(lines[3:5], ["  ---", "  problems:"])
        self.assertIn("state: expected error, found processed", json.loads(lines[5].strip()[2:]))
        self.assertEqual(lines[-3:], ["  ...", "1..2", ""])

    def test_junit(self):
        self.both()
        self.run_it("--junit", "report.xml", status=1)
        tree = ElementTree.parse(self.path("report.xml")).getroot()
        self.assertEqual((tree.tag, tree.get("tests"), tree.get("failures")), ("testsuites", "2", "1"))
        suite = tree.find("testsuite")
        self.assertEqual((suite.get("name"), suite.get("tests"), suite.get("failures")), ("t.test.yaml", "2", "1"))
        good, bad = suite.findall("testcase")
        self.assertEqual((good.get("name"), len(good)), ("good <&> # one", 0))
        self.assertIn("expected error", bad.find("failure").get("message"))
        self.assertIn("00:00:02  effect of reserve", bad.find("failure").text)
        done = self.run_it("--junit", "no/such/folder.xml", status=2)
        self.assertIn("No such file", done.stderr)

    def test_names(self):
        self.both()
        self.assertEqual(self.run_it("--name", "good").stdout, "t.test.yaml: 1 passed, 0 failed\n")
        self.assertIn("no test has \"ugly\" in its name", self.run_it("--name", "ugly", status=2).stderr)

    def test_files_are_found(self):
        os.makedirs(self.path("b/.hidden"))
        text = HEAD.replace("order.yaml", "../order.yaml") + "- name: t\n  input: {n: 1}\n  expect: {state: processed}\n"
        self.write("b/two.test.yaml", text)
        self.write("b/one.test.yml", text)
        self.write("b/.hidden/not.test.yaml", text)
        self.write("b/test.yaml", "nothing")
        self.assertEqual(self.run_it().stdout,
                         "b/one.test.yml: 1 passed, 0 failed\nb/two.test.yaml: 1 passed, 0 failed\n2 passed, 0 failed\n")

    def test_coverage(self):
        self.both()
        out = self.run_it("--coverage", "--name", "good").stdout
        self.assertRegex(out, r"reserve +missed: undo, all attempts fail, complete_by passes\n")
        self.assertRegex(out, r"tell +missed: completes, its `if` is true, all attempts fail")
        self.write("u.test.yaml", HEAD + "- name: all\n  input: {n: 2}\n  agents: {bank.charge: {silent: after effect}}\n"
                   "  expect: {state: compensated}\n")
        self.assertRegex(self.run_it("--coverage", "u.test.yaml").stdout, r"charge +all\n")

    def test_update(self):
        text = HEAD + """# A comment stays.
- name: one # here, too
  input: {n: 2}
  agents: {post.ship: {refuse: no-address}}
  expect: {state: "?", error: '?', world: "?", order: "?", within: "?", output: "?", steps: "?"}
"""
        self.write("t.test.yaml", text)
        self.run_it("t.test.yaml", status=1)
        self.assertEqual(self.read("t.test.yaml"), text)
        done = self.run_it("--update", "t.test.yaml")
        self.assertEqual(done.stdout, "t.test.yaml: 7 values filled in\nt.test.yaml: 1 passed, 0 failed\n")
        self.assertEqual(self.read("t.test.yaml").split("\n")[:-2], text.split("\n")[:-2])
        self.assertEqual(self.read("t.test.yaml").split("\n")[-2],
                         "  expect: {state: compensated, error: no-address, world: {stock: 10, money: 0, mails: 0}, "
                         "order: [reserve, charge, undo charge, undo reserve], within: 2s, output: null, "
                         "steps: {reserve: undone, charge: undone, ship: failed, tell: waiting}}")
        self.assertEqual(self.run_it("--update", "t.test.yaml").stdout, "t.test.yaml: 1 passed, 0 failed\n")

    def test_update_of_members(self):
        text = HEAD + "- {name: one, input: {n: 2}, expect: {world: {stock: '?', money: 10}, steps: {ship: '?', tell: completed}}}\n"
        self.write("t.test.yaml", text)
        self.assertIn("--update", self.run_it("t.test.yaml", status=1).stdout)
        self.run_it("--update", "t.test.yaml")
        self.assertEqual(self.read("t.test.yaml"), text.replace("stock: '?'", "stock: 8").replace("ship: '?'", "ship: completed"))
        self.run_it("t.test.yaml")

    def test_update_leaves_other_spellings(self):
        text = HEAD + '- name: one\n  input: {n: 2}\n  expect:\n    state: "\\x3f"\n    order: |-\n      ?\n    error: \'?\'\n'
        self.write("t.test.yaml", text)
        self.run_it("--update")
        self.assertEqual(self.read("t.test.yaml"), text.replace("'?'", "null"))

    def test_update_of_json(self):
        tree = {"workflow": "order.yaml", "world": {"n": 1, "odd\"": "yes"}, "agents": {"stock": {}, "bank": {}, "post": {}, "mail": {}},
                "tests": [{"name": "one", "input": {"n": 2}, "expect": {"state": "?", "world": "?", "order": "?"}}]}
        self.write("t.test.json", json.dumps(tree, indent=1))
        self.run_it("--update", "t.test.json")
        self.assertEqual(json.loads(self.read("t.test.json"))["tests"][0]["expect"],
                         {"state": "processed", "world": {"n": 1, "odd\"": "yes"}, "order": []})
        self.run_it("t.test.json")

    def test_watch(self):
        """Each change is seen, also one that comes while the tests run."""
        self.both()
        process = subprocess.Popen([INTACT, "test", "--watch"], cwd=self.folder.name, stdout=subprocess.PIPE, text=True)
        watchdog = threading.Timer(PATIENCE_S, process.kill)
        watchdog.start()

        def waits_for(words):
            for line in process.stdout:
                if words in line:
                    return
            self.fail(f"it ends before it says {words}")

        try:
            waits_for("1 passed, 1 failed")
            self.write("order.yaml", ORDER.replace("agent: mail", "agent: post"))
            waits_for("---")
            self.write("order.yaml", ORDER)
            waits_for("1 passed, 1 failed")
            self.write("t.test.yaml", HEAD + "- name: t\n  input: {n: 1}\n  expect: {state: processed}\n")
            waits_for("1 passed, 0 failed")
            self.assertIsNone(process.poll())
        finally:
            watchdog.cancel()
            process.send_signal(signal.SIGINT)
            process.wait(PATIENCE_S)
            process.stdout.close()


class Mistakes(Case):
    def test_files(self):
        self.assertIn("there is no *.test.yaml below this folder", self.run_it(status=2).stderr)
        self.assertIn("No such file", self.run_it("none.test.yaml", status=2).stderr)
        self.is_wrong("workflow: none.yaml\ntests:\n- {name: t, expect: {state: error}}\n",
                      't.test.yaml:1:11: error: found "none.yaml", expected a file that can be read')
        self.is_wrong("workflow: order.yaml\nalso: [order.yaml]\ntests:\n- {name: t, expect: {state: error}}\n",
                      "two of its definitions are of workflow order")
        self.write("bad.yaml", "intact: 1\nworkflow: w\nsteps: 5\n")
        self.is_wrong("workflow: bad.yaml\ntests:\n- {name: t, expect: {state: error}}\n", "bad.yaml:3:8: error: steps: ")
        self.is_wrong(HEAD + "- {name: t, agents: {stock.tak: {}}, expect: {state: error}}\n",
                      't.test.yaml:9:22: error: agents: found "stock.tak": did you mean "stock.take"?')

    def test_one_wrong_file_among_others(self):
        self.write("a.test.yaml", "workflow: 5\n")
        self.write("b.test.yaml", HEAD + "- name: t\n  input: {n: 1}\n  expect: {state: processed}\n")
        done = self.run_it(status=2)
        self.assertIn("b.test.yaml: 1 passed, 0 failed", done.stdout)
        done = self.run_it("--tap", "--junit", "report.xml", status=2)
        self.assertEqual(done.stdout.split("\n")[1:], ["not ok 1 - a.test.yaml: the file has mistakes", "ok 2 - b.test.yaml: t", "1..2", ""])
        tree = ElementTree.parse(self.path("report.xml")).getroot()
        self.assertEqual((tree.get("tests"), tree.get("failures"), tree.get("errors")), ("2", "0", "1"))
        self.assertIn("has mistakes", tree.find("testsuite/testcase/error").get("message"))

    def test_a_child_that_nobody_names(self):
        self.write("order.yaml", "intact: 1\nworkflow: w\nsteps:\n  - {name: c, task: {workflow: child}}\n")
        self.fails("- {name: t, expect: {state: error}}\n", "the submission is refused: children: found ", "named by `also`",
                   head="workflow: order.yaml\ntests:\n")

    def test_steps_that_are_not_looked_at(self):
        self.write("order.yaml", "intact: 1\nworkflow: w\nsteps:\n  - {name: c, task: {workflow: child}}\n")
        self.write("kid.yaml", "intact: 1\nworkflow: child\nsteps:\n  - {name: allow, approve: {by: g, question: \"Pay?\"}}\n")
        head = "workflow: order.yaml\nalso: [kid.yaml]\nworld: {n: 0}\ntests:\n"
        for text in ("expect: {steps: {c/allow: completed}}", "approvals: [{after: 1h, step: c/allow, approve: ann}], expect: {state: processed}",
                     "operator: [{after: 1h, skip: c/allow}], expect: {state: processed}"):
            self.is_wrong(head + "- {name: t, " + text + "}\n", 'found "c/allow", expected the name of a step of workflow w itself')
        self.is_wrong(head + "- {name: t, world: {m: 5}, expect: {state: processed}}\n", "a member of `world`")

    def test_too_large(self):
        self.is_wrong("#" * (2 << 20), "at most 1048576 bytes")

    def test_garbage(self):
        """A text that was damaged anywhere ends with 0, 1 or 2, and never by a signal."""
        draw = random.Random(7)
        good = (HEAD + "- name: t\n  input: {n: 1}\n  signals: []\n  expect: {state: processed, order: [reserve]}\n").encode()
        for _ in range(60):
            text = bytearray(good)
            for _ in range(draw.randint(1, 4)):
                at = draw.randrange(len(text))
                text[at:at + draw.randint(0, 3)] = bytes(draw.choice(b"{}[]:,-#'\"\n\t x0.|>&*!%@\xff\x00") for _ in range(draw.randint(0, 3)))
            self.write("t.test.yaml", bytes(text))
            done = subprocess.run([INTACT, "test", "t.test.yaml"], cwd=self.folder.name, capture_output=True, timeout=PATIENCE_S, check=False)
            self.assertIn(done.returncode, (0, 1, 2), bytes(text))
            if done.returncode == 2:
                self.assertRegex(done.stderr, rb"^t\.test\.yaml:\d+:\d+: error: |expected a file", bytes(text))


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0]] + sys.argv[3:])
