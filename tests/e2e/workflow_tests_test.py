#!/usr/bin/env python3
"""`intact test`: what passes and what fails, how it is told, TAP, JUnit, --update, --watch, and files that are wrong.

Usage: workflow_tests_test.py ROOT INTACT [TEST...]"""

import json
import os
import random
import re
import signal
import stat
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

    def test_before_leaves_out_children_that_nothing_undoes(self):
        """What a child did under `undo: none` stays; under an undo of its own it does not."""
        self.write("kid.yaml", "intact: 1\nworkflow: kid\nsteps:\n  - {name: do, agent: a, action: do, undo: {action: un}}\n")
        head = ("workflow: order.yaml\nalso: [kid.yaml]\nworld: {n: 0}\nagents: {a.do: {effect: {n: .world.n + 1}}, b: {refuse: no}}\ntests:\n"
                "- {name: t, expect: {state: compensated, world: .before, order: [c/do%s]}}\n")
        for undo, more, status in (("none", "", 0), ("{agent: a, action: other}", "", 1)):
            self.write("order.yaml", "intact: 1\nworkflow: w\nsteps:\n  - {name: c, task: {workflow: kid}, undo: " + undo + "}\n"
                       "  - {name: b, agent: b, action: b, undo: none}\n")
            self.write("t.test.yaml", head % more)
            out = self.run_it(status=status).stdout
        self.assertIn("world.n: expected 0, found 1", out)

    def test_before_and_what_is_no_number(self):
        """What stays is taken away as `undone` says; without it nobody can compare what others changed, too."""
        self.write("order.yaml", "intact: 1\nworkflow: w\nsteps:\n  - {name: a, agent: a, action: a, undo: {action: un}}\n"
                   "  - {name: m, agent: m, action: m, undo: none}\n  - {name: b, agent: b, action: b, undo: none}\n")
        head = "workflow: order.yaml\nworld: {log: [x]}\nagents:\n  b: {refuse: no}\n"
        test = "tests:\n- {name: t, input: {by: ann}, expect: {state: compensated, world: .before}}\n"
        mail = "  m.m: {effect: {log: '.world.log + [.input.by]'}%s}\n"
        undone = ", undone: {log: '.world.log - [.input.by]'}"
        entry = "  a.a: {effect: {log: '.world.log + [\"a\"]'}, undone: {log: %s}}\n"
        good, bad = entry % "'.world.log - [\"a\"]'", entry % ".world.log"
        self.write("t.test.yaml", head + good + mail % undone + test)
        self.run_it()
        self.fails(test, "world.log: expected [\"x\"], found [\"x\",\"a\"]", head=head + bad + mail % undone)
        self.fails(test, "world.log cannot be compared with .before: the effect of m stays, and is no number", head=head + good + mail % "")
        self.write("t.test.yaml", head + "  a.a: {}\n" + mail % "" + test)  # all that changed it stays
        self.run_it()

    def test_entries_of_a_test_come_first(self):
        """The test's before the file's, and in each the action's before the agent's; what it leaves out says the file."""
        def world_of(own, base, wanted):
            self.write("order.yaml", "intact: 1\nworkflow: w\nsteps:\n  - {name: s, agent: a, action: b, undo: none}\n")
            self.write("t.test.yaml", f"workflow: order.yaml\nworld: {{by: none}}\nagents: {{{base}}}\ntests:\n"
                       f"- {{name: t, agents: {{{own}}}, expect: {{world: {{by: {wanted}}}}}}}\n")
            self.run_it()

        def entry(key, by):
            return f"{key}: {{effect: {{by: '\"{by}\"'}}}}"

        own, base = (entry("a", "own"), entry("a.b", "own.b")), (entry("a", "base"), entry("a.b", "base.b"))
        world_of(", ".join(own), ", ".join(base), "own.b")
        world_of(own[0], ", ".join(base), "own")
        world_of("", ", ".join(base), "base.b")
        world_of("", base[0], "base")
        world_of("a: {refuse: x}", base[1], "none")
        world_of("a: {output: 5}", ", ".join(base), "base.b")
        world_of("a.b: {output: 5}", base[0], "base")

    def test_an_undo_that_only_the_agent_has(self):
        """Also for the check of the file: an entry of the test for an action, and the file's for its agent."""
        self.write("order.yaml", "intact: 1\nworkflow: w\nsteps:\n  - {name: s, agent: a, action: b, undo: {action: c}}\n"
                   "  - {name: z, agent: z, action: z, undo: none}\n")
        self.write("t.test.yaml", "workflow: order.yaml\nworld: {log: []}\nagents: {a: {effect: {log: '[1]'}, undone: {log: '[]'}}, z: {refuse: x}}\n"
                   "tests: [{name: t, agents: {a.b: {effect: {log: '[2]'}}}, expect: {state: compensated, world: .before, order: [s, undo s]}}]\n")
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

    def test_the_memory_of_a_long_list(self):
        """It does not grow by the input of the task, which each item has, with the number of items."""
        self.write("order.yaml", "intact: 1\nworkflow: w\nsteps:\n  - {name: p, for_each: '${ .input.list }', max_items: 1000, agent: a, action: b, "
                   "undo: {action: c}}\n")
        self.write("t.test.json", json.dumps({
            "workflow": "order.yaml", "world": {"n": 0}, "agents": {"a.b": {"output": "${ .input.text | length }", "effect": {"n": ".world.n + 1"}}},
            "tests": [{"name": "t", "input": {"list": list(range(500)), "text": "x" * 200000}, "expect": {"state": "processed", "world": {"n": 500}}}]}))
        process = subprocess.Popen([INTACT, "test", "t.test.json"], cwd=self.folder.name, stdout=subprocess.DEVNULL,
                                   env={**os.environ, "ASAN_OPTIONS": "quarantine_size_mb=1"})
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        self.assertEqual(process.returncode, 0)
        self.assertLess(used.ru_maxrss, 300000)


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

    def test_junit_of_any_text(self):
        """Characters that XML has no way to write, in the name of a test and in what is told."""
        odd = "a\ufffeb\uffffc\td\u0085e"
        self.write("t.test.yaml", HEAD + f"- name: {json.dumps(odd)}\n  input: {{n: 1, odd: {json.dumps(odd + chr(1))}}}\n  expect: {{state: error}}\n")
        self.run_it("--junit", "report.xml", status=1)
        case = ElementTree.parse(self.path("report.xml")).getroot().find("testsuite/testcase")
        self.assertEqual(case.get("name"), "a\ufffdb\ufffdc\td\u0085e")
        self.assertIn("submitted", case.find("failure").text)

    def test_junit_to_a_pipe(self):
        self.both()
        os.mkfifo(self.path("pipe"))
        found = []
        reader = threading.Thread(target=lambda: found.append(self.read("pipe")), daemon=True)
        reader.start()
        self.run_it("--junit", "pipe", "--name", "good")
        reader.join(PATIENCE_S)
        self.assertEqual(ElementTree.fromstring(found[0]).get("tests"), "1")
        self.assertTrue(stat.S_ISFIFO(os.stat(self.path("pipe")).st_mode))

    def test_files_keep_what_they_are(self):
        """A link stays a link, and a file keeps its mode; a new one has that of the mask, and nothing is left beside it."""
        text = HEAD + "- {name: one, input: {n: 1}, expect: {state: '?'}}\n"
        os.mkdir(self.path("d"))
        self.write("d/real.yaml", text.replace("order.yaml", self.path("order.yaml")))
        os.chmod(self.path("d/real.yaml"), 0o640)
        os.symlink("d/real.yaml", self.path("t.test.yaml"))
        self.run_it("--update", "--junit", "report.xml")
        self.assertTrue(os.path.islink(self.path("t.test.yaml")))
        self.assertIn("state: processed", self.read("d/real.yaml"))
        self.assertEqual(stat.S_IMODE(os.stat(self.path("d/real.yaml")).st_mode), 0o640)
        mask = os.umask(0)
        os.umask(mask)
        self.assertEqual(stat.S_IMODE(os.stat(self.path("report.xml")).st_mode), 0o666 & ~mask)
        self.assertEqual(os.listdir(self.path("d")), ["real.yaml"])

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
        out = self.run_it("--coverage", "u.test.yaml").stdout
        self.assertRegex(out, r"charge +missed: completes\n")  # it was undone, but nobody knows whether it had completed
        self.assertRegex(out, r"reserve +missed: all attempts fail, complete_by passes\n")

    def test_coverage_of_conditions(self):
        """A step whose `if` was true, and that failed."""
        self.write("t.test.yaml", HEAD + "- name: one\n  input: {n: 2}\n  agents: {mail.send: {refuse: full}}\n  expect: {state: compensated}\n")
        self.assertRegex(self.run_it("--coverage").stdout, r"tell +missed: completes, its `if` is false, all attempts fail")

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

    def test_update_writes_values_as_they_are(self):
        """What looks like an expression is none."""
        odd = "${ .x } $${y} $ {"
        self.write("t.test.yaml", HEAD.replace("mails: 0}", 'mails: 0, odd: ""}') + "- name: one\n  input: {n: 1}\n  agents:\n"
                   "    post.ship: {effect: {odd: '\"$\" + \"{ .x } $\" + \"${y} $ {\"'}, undone: {odd: '\"\"'}}\n"
                   '  expect: {world: {odd: "?"}}\n- {name: two, input: {n: 1}, expect: {world: "?"}}\n')
        self.run_it("--update")
        self.assertIn('expect: {world: {odd: "$' + odd.replace("$${y}", "$$${y}") + '"}}\n', self.read("t.test.yaml"))
        self.run_it()

    def test_update_leaves_tests_that_fail(self):
        text = HEAD + "- {name: one, input: {n: 2}, expect: {state: error, order: '?'}}\n- {name: two, input: {n: 1}, expect: {state: '?'}}\n"
        self.write("t.test.yaml", text)
        out = self.run_it("--update", status=1).stdout
        self.assertIn("state: expected error, found processed", out)
        self.assertIn("t.test.yaml: 1 value filled in\nt.test.yaml: \"?\" is not filled in where a test fails (1)\n", out)
        self.assertEqual(self.read("t.test.yaml"), text.replace("state: '?'", "state: processed"))

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


SVG = "{http://www.w3.org/2000/svg}"


class Pictures(Case):
    def drawn(self, *words, status=0):
        """The picture as a tree, and the mark of each step and undo by its name."""
        self.run_it("--coverage-picture", "c.svg", *words, status=status)
        tree = ElementTree.parse(self.path("c.svg")).getroot()
        self.assertEqual(tree.tag, SVG + "svg")
        groups = [g for g in tree.iter(SVG + "g") if g.find(SVG + "title") is not None]
        return tree, {g.find(SVG + "title").text.split(":")[0]: g.get("class") for g in groups}

    def test_marks(self):
        self.write("t.test.yaml", HEAD + "- {name: one, input: {n: 2}, agents: {post.ship: {refuse: x}}, expect: {state: compensated}}\n")
        tree, marks = self.drawn()
        self.assertEqual(marks, {"reserve": "partly", "undo reserve": "reached", "charge": "partly", "undo charge": "reached",
                                 "ship": "partly", "undo ship": "missed", "tell": "missed"})
        texts = [t.text for t in tree.iter(SVG + "text")]
        self.assertIn("missed: its `if` is false", texts)
        self.assertIn("t.test.yaml; missed: complete_by of the task passes", texts)
        abouts = [t.text for t in tree.iter(SVG + "title")]
        self.assertIn("ship: post.ship\nmissed: completes\nmissed: undo\nmissed: all attempts fail\nmissed: complete_by passes", abouts)

    def test_all_kinds_reached(self):
        self.write("all.yaml", ALL)
        self.write("child.yaml", CHILD)
        self.write("all.test.yaml", ALL_TESTS)
        tree, marks = self.drawn()
        self.assertEqual([marks[s] for s in ("allow", "paid", "rest", "bill", "sorry")], ["partly", "reached", "reached", "partly", "partly"])
        self.assertEqual([marks["undo " + s] for s in ("pack", "parcel", "bill", "label")], ["reached", "reached", "reached", "reached"])
        self.assertNotIn("undo allow", marks)
        self.assertIn("child", [t.text for t in tree.iter(SVG + "text")])

    def test_it_stands_alone(self):
        """No script, nothing is loaded, both schemes."""
        self.write("t.test.yaml", HEAD + "- {name: one, input: {n: 1}, expect: {state: processed}}\n")
        tree, _ = self.drawn()
        for element in tree.iter():
            self.assertIn(element.tag.replace(SVG, ""), ("svg", "title", "desc", "style", "defs", "marker", "path", "g", "text", "rect", "circle"))
            for name, value in element.attrib.items():
                self.assertFalse(name.startswith("on") or "href" in name or "//" in value, (name, value))
        style = tree.find(SVG + "style").text
        self.assertIn("prefers-color-scheme:dark", style)
        self.assertNotRegex(style, "@import|url\\((?!#)")

    def test_hostile_names(self):
        """A file whose name is markup, an action and a signal with all that names may have, long and wide ones."""
        name = "a<b>&\"'\x1b]]>\uffff\u202e.test.yaml"
        self.write("order.yaml", "intact: 1\nworkflow: w\nsteps:\n"
                   f"  - {{name: {'n' * 64}, agent: {'a' * 64}, action: {'b' * 64}, undo: none, if: '.input.a < 1 and \"]]>\" != \"<é漢\"'}}\n"
                   "  - {name: s, signal: {name: s}, complete_by: 1d, default: '<script>'}\n")
        self.write(name, "workflow: order.yaml\ntests: [{name: '<&>', agents: {" + "a" * 64 + ": {}}, expect: {state: processed}}]\n")
        tree, marks = self.drawn()
        self.assertEqual(len(marks), 2)
        self.assertIn("a<b>&\"'\ufffd]]>\ufffd\u202e.test.yaml", [t.text for t in tree.iter(SVG + "text")])
        self.assertIn('if .input.a < 1 and "]]>" != "<é漢"', "".join(t.text for t in tree.iter(SVG + "title")))
        with open(self.path("c.svg"), "rb") as f:
            self.assertNotIn(b"\x1b", f.read())

    def test_a_thousand_steps(self):
        steps = "".join(f"  - {{name: s{i}, agent: a, action: do, undo: {{action: un}}, after: [{', '.join(f's{k}' for k in range(max(0, i - 3), i) if k % 7 == i % 3 or k == i // 2)}]}}\n"
                        for i in range(1000))
        self.write("order.yaml", "intact: 1\nworkflow: w\nsteps:\n" + steps)
        self.write("t.test.yaml", "workflow: order.yaml\nagents: {a: {}}\ntests: [{name: t, expect: {state: processed}}]\n")
        _, marks = self.drawn()
        self.assertEqual(len(marks), 2000)
        self.assertEqual({marks[f"s{i}"] for i in range(1000)}, {"partly"})
        self.assertEqual({marks[f"undo s{i}"] for i in range(1000)}, {"missed"})

    def test_the_picture_of_the_documents(self):
        """docs/img/coverage.svg shows what docs/testing.md has."""
        with open(ROOT + "/docs/testing.md", encoding="utf-8") as f:
            files = re.findall(r"cat > (\S+) <<'YAML'\n(.*?\n)YAML\n", f.read(), re.DOTALL)
        for name, text in files:
            self.write(name, text)
        self.drawn("ask.test.yaml", status=1)
        with open(ROOT + "/docs/img/coverage.svg", encoding="utf-8") as f:
            self.assertEqual(f.read(), self.read("c.svg"), "make it anew: intact test --coverage-picture docs/img/coverage.svg")

    def test_where_it_cannot_be_written(self):
        self.write("t.test.yaml", HEAD + "- {name: one, input: {n: 1}, expect: {state: processed}}\n")
        self.assertIn("No such file", self.run_it("--coverage-picture", "no/such.svg", status=2).stderr)


class Mistakes(Case):
    def test_files(self):
        self.assertIn("there is no *.test.yaml below this folder", self.run_it(status=2).stderr)
        self.assertIn("No such file", self.run_it("none.test.yaml", status=2).stderr)
        self.is_wrong("workflow: none.yaml\ntests:\n- {name: t, expect: {state: error}}\n",
                      't.test.yaml:1:11: error: found "none.yaml", expected a file that can be read')
        self.is_wrong("workflow: order.yaml\nalso: [order.yaml]\ntests:\n- {name: t, expect: {state: error}}\n",
                      't.test.yaml:2:8: error: found "order.yaml", expected a workflow of its own: two of its definitions are of workflow order')
        self.write("bad.yaml", "intact: 1\nworkflow: w\nsteps: 5\n")
        self.is_wrong("workflow: bad.yaml\ntests:\n- {name: t, expect: {state: error}}\n", "bad.yaml:3:8: error: steps: ")
        self.is_wrong(HEAD + "- {name: t, agents: {stock.tak: {}}, expect: {state: error}}\n",
                      't.test.yaml:9:22: error: agents: found "stock.tak": did you mean "stock.take"?')

    def test_what_is_no_file(self):
        """A device or a pipe may have no end, and is not read."""
        os.mkfifo(self.path("pipe"))
        with open(self.path("large.yaml"), "wb") as f:
            f.truncate(1 << 30)
        for name, why in ((".", "Is a directory"), ("/dev/zero", "it is not a regular file"), ("pipe", "it is not a regular file"),
                          ("large.yaml", "it is too large for a definition")):
            for text, place in ((f"workflow: {name}\n", "1:11"), (f"workflow: order.yaml\nalso: [{name}]\n", "2:8")):
                self.is_wrong(text + "tests:\n- {name: t, expect: {state: error}}\n",
                              f't.test.yaml:{place}: error: found "{name}", expected a file that can be read: {why}')

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

    def test_too_many_files(self):
        """None is left out in silence."""
        for i in range(10001):
            self.write(f"{i}.test.yaml", "")
        self.assertIn("more than 10000 test files below it; name files", self.run_it(status=2).stderr)

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
