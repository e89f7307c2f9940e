#!/usr/bin/env python3
"""`intact simulate`: what it finds, the same story for the same seed, all orders of faults, shortened stories, kept
stories that `intact test` plays, rules, and files that are wrong.

Usage: simulate_test.py ROOT INTACT [TEST...]"""

import json
import os
import re
import subprocess
import sys
import tempfile
import unittest
from xml.etree import ElementTree

ROOT, INTACT = (os.path.realpath(p) for p in sys.argv[1:3])
PATIENCE_S = 240  # only a failing test waits so long
ORDER = """intact: 1
workflow: order
complete_by: 1d
steps:
  - {name: reserve, agent: stock, action: take, undo: {action: put-back}}
  - {name: charge, agent: bank, action: charge, complete_by: 30s, undo: {action: refund}}
  - {name: ship, agent: post, action: ship, pivot: true}
"""
TESTS = """workflow: order.yaml
world: {stock: 10, money: 0}
agents:
  stock.take: {output: {id: r-1}, takes: 2s, effect: {stock: .world.stock - .input.n}}
  bank.charge: {output: {charge: c-1}, effect: {money: .world.money + 10}}
  post.ship: {output: {id: p-1}}
tests:
  - {name: the parcel leaves, input: {n: 2}, expect: {state: processed}}
"""
FAMILY = """intact: 1
workflow: family
inputs:
  lines: {type: array, required: true}
steps:
  - {name: pack, for_each: "${ .input.lines }", max_items: 9, concurrency: 2, agent: stock, action: take, undo: {action: put-back}}
  - {name: parcel, task: {workflow: child, input: {n: 1}}}
  - {name: paid, signal: {name: payment}, complete_by: 1d}
  - {name: bill, agent: bank, action: charge, undo: {action: refund}}
on_undo:
  - {name: sorry, agent: mail, action: sorry, undo: none}
"""
CHILD = """intact: 1
workflow: child
steps:
  - {name: label, agent: printer, action: print, undo: {action: void}}
"""
FAMILY_TESTS = """workflow: family.yaml
also: [child.yaml]
world: {taken: 0, labels: 0, money: 0, mails: 0}
agents:
  stock.take: {takes: 1s, effect: {taken: .world.taken + 1}}
  printer.print: {effect: {labels: .world.labels + 1}}
  bank.charge: {effect: {money: .world.money + 5}}
  mail.sorry: {effect: {mails: .world.mails + 1}}
tests:
"""
TINY = """intact: 1
workflow: tiny
steps:
  - {name: only, agent: a, action: b, undo: {action: c}}
"""
TINY_TESTS = """workflow: tiny.yaml
world: {n: 0}
agents:
  a.b: {effect: {n: .world.n + 1}}
tests:
  - {name: it is done, expect: {state: processed}}
"""


class Case(unittest.TestCase):
    maxDiff = None

    def setUp(self):
        self.folder = tempfile.TemporaryDirectory(prefix="intact-simulate-")
        self.write("order.yaml", ORDER)
        self.write("order.test.yaml", TESTS)
        self.write("tiny.yaml", TINY)
        self.write("tiny.test.yaml", TINY_TESTS)

    def tearDown(self):
        self.folder.cleanup()

    def write(self, name, text):
        with open(os.path.join(self.folder.name, name), "w", encoding="utf-8") as file:
            file.write(text)

    def read(self, name):
        with open(os.path.join(self.folder.name, name), encoding="utf-8") as file:
            return file.read()

    def intact(self, *words, status=0):
        done = subprocess.run([INTACT, *words], cwd=self.folder.name, capture_output=True, text=True, check=False,
                              timeout=PATIENCE_S)
        self.assertEqual(done.returncode, status, done.stdout + done.stderr)
        self.assertNotIn("AddressSanitizer", done.stderr)
        return done

    def simulate(self, file, *words, status=0):
        return json.loads(self.intact("simulate", file, "--json", *words, status=status).stdout)

    def refused(self, *words):
        done = self.intact("simulate", *words, status=2)
        self.assertEqual(done.stdout, "")
        return done.stderr

    # ---- what it finds ----

    def test_a_right_workflow_has_no_findings(self):
        found = self.simulate("order.test.yaml", "--runs", "800")
        self.assertEqual(found["findings"], [])
        self.assertEqual(found["runs"], 800)
        states = {e["end"]["state"] for e in found["ends"]}
        self.assertEqual(states, {"processed", "compensated", "error"})
        self.assertEqual(sum(e["runs"] for e in found["ends"]), 800)

    def test_the_same_seed_tells_the_same_story(self):
        for words in (["--seed", "7", "--runs", "500"], ["--exhaustive", "--faults", "1"]):
            first, second = (self.intact("simulate", "order.test.yaml", "--json", *words).stdout for _ in range(2))
            self.assertEqual(first, second)
        other = self.intact("simulate", "order.test.yaml", "--json", "--seed", "8", "--runs", "500").stdout
        self.assertNotEqual(json.loads(first)["ends"], json.loads(other)["ends"])

    def test_any_number_of_jobs_finds_the_same(self):
        self.write("family.yaml", FAMILY)
        self.write("child.yaml", CHILD)
        self.write("family.test.yaml", FAMILY_TESTS + "".join(
            f"  - {{name: number {n}, input: {{lines: {list(range(n))}}}, signals: [{{after: 1h, payment: null}}], expect: {{state: processed}}}}\n"
            for n in (1, 3)))
        self.write("order.test.yaml", TESTS.replace("bank.charge: {", "bank.charge: {idempotent: false, "))
        for file, words, status in (("family.test.yaml", ["--runs", "300", "--seed", "3"], 0),
                                    ("order.test.yaml", ["--runs", "500"], 1), ("tiny.test.yaml", ["--exhaustive"], 0)):
            found = [self.intact("simulate", file, "--json", "--jobs", n, *words, status=status).stdout for n in ("1", "2", "5")]
            self.assertEqual(found[0], found[1], file)
            self.assertEqual(found[0], found[2], file)
        self.assertEqual(json.loads(found[0])["exhaustive"], 2)
        self.assertIn("--jobs", self.refused("order.test.yaml", "--jobs", "0"))

    def test_each_test_has_its_pairs_of_faults(self):
        steps = "".join(f"  - {{name: s{i}, agent: a, action: b{i}, undo: {{action: c{i}}}}}\n" for i in range(4))
        steps = steps.replace("name: s2", "name: s2, if: .input").replace("{action: c2}", "{action: c2, retry: {attempts: 1}}")
        self.write("many.yaml", "intact: 1\nworkflow: many\nsteps:\n" + steps)
        self.write("many.test.yaml", "workflow: many.yaml\nagents: {a: {}}\ntests:\n" + "".join(
            f"  - {{name: number {n}, input: {str(n == 5).lower()}, expect: {{state: processed}}}}\n" for n in range(6)))
        found = self.simulate("many.test.yaml", "--runs", "2000", status=1)["findings"]
        self.assertEqual([(f["kind"], f["subject"]) for f in found], [("one-fault", "s2")])

    def test_a_service_that_is_not_idempotent_is_found(self):
        self.write("order.test.yaml", TESTS.replace("bank.charge: {", "bank.charge: {idempotent: false, "))
        found = self.simulate("order.test.yaml", "--runs", "1000", status=1)
        rule = [f for f in found["findings"] if f["kind"] == "rule"]
        self.assertEqual(rule[0]["rule"], "at_end")
        self.assertEqual(rule[0]["end"]["state"], "compensated")
        self.assertRegex(rule[0]["text"], r"^world.money is [1-4]0, and was 0$")
        self.assertEqual(len(rule), 1)
        self.assertLessEqual(len(rule[0]["story"]["faults"]), 2, "the story was not shortened")

    def test_stories_are_as_short_as_can_be(self):
        ends = self.simulate("order.test.yaml", "--runs", "1500")["ends"]
        long = sorted((e for e in ends if len(e["story"]["faults"]) > 1), key=lambda e: -len(e["story"]["faults"]))[:5]
        self.assertTrue(long)
        tests = []
        for number, end in enumerate(long):
            told, found = end["story"]["faults"], end["end"]
            expect = {"state": found["state"], "error": found["error"], "steps": found["steps"]}
            for left_out in range(len(told) + 1):
                faults = told[:left_out] + told[left_out + 1:]
                tests.append({"name": f"{number}, {'all' if faults == told else 'short'} {left_out}",
                              "input": {"n": 2}, "faults": faults, "expect": expect})
        lines = "".join(f"  - {json.dumps(t)}\n" for t in tests)
        self.write("short.test.yaml", TESTS[:TESTS.index("  - {name")] + lines)
        told = self.intact("test", "short.test.yaml", status=1).stdout
        # The whole story has the end, and without any one of its faults it is another one.
        self.assertIn(f"{len(long)} passed, {len(tests) - len(long)} failed", told)

    def test_what_an_operator_has_to_do_is_said(self):
        found = self.simulate("order.test.yaml", "--runs", "1000")
        errors = [e for e in found["ends"] if e["end"]["state"] == "error"]
        self.assertTrue(errors)
        for end in errors:
            self.assertIn("Task TASK", end["why"])
            self.assertIn("intact ", end["what_to_do"])
        text = self.intact("simulate", "order.test.yaml", "--runs", "1000").stdout
        self.assertIn("what an operator has to do:", text)
        self.assertIn("reached ", text)

    def test_a_page(self):
        self.write("order.yaml", ORDER.replace("name: reserve, agent: stock", "name: reserve, if: '1 < 2', agent: stock"))
        self.write("order.test.yaml", TESTS.replace("bank.charge: {", "bank.charge: {idempotent: false, "))
        self.intact("simulate", "order.test.yaml", "--runs", "600", "--html", "page.html", "--always",
                    ".world.stock >= 0 or \"<b>\" == \"&\"", "--at-end", ".task.state != \"compensated\" or .world.money == 0",
                    status=1)
        page = self.read("page.html")
        for wanted in ("<title>Simulation of order</title>", "Wrong, rule: ", "<h2>Ends</h2>", "<details>", "Task TASK has stopped",
                       "<title>What the runs reached</title>"):
            self.assertIn(wanted, page)
        self.pictures(page)
        self.assertNotRegex(page, r"src=|href=|<script|<b>&")
        open_elements = [w for w in ("table", "details", "ol", "pre", "tr", "td") if page.count(f"<{w}>") != page.count(f"</{w}>")]
        self.assertEqual(open_elements, [])

    def pictures(self, page):
        """Each picture is well-formed by itself; those of ends show the states of their steps."""
        pictures = [ElementTree.fromstring(p) for p in re.findall(r"<svg .*?</svg>", page, re.DOTALL)]
        titles = [p.findtext("{http://www.w3.org/2000/svg}title") for p in pictures]
        self.assertEqual(titles[-1], "What the runs reached")
        self.assertEqual(set(titles[:-1]), {"processed", "compensated", "error"})
        ends = page[page.index("<h2>Ends</h2>"):]
        for states, picture in re.findall(r"<pre>(\{.*?\})</pre>\n<details><summary>Picture</summary>\n(<svg .*?</svg>)", ends, re.DOTALL):
            for step, state in json.loads(states.replace("&#34;", '"')).items():
                self.assertIn(step, picture)
                if state in ("completed", "failed", "skipped", "undone"):
                    self.assertIn(f">{state}</text>", picture)
            failed = states.count("failed")
            self.assertEqual(picture.count('<g class="missed">'), failed + 1, "with the legend")

    def test_a_clock_that_is_set(self):
        self.write("rest.yaml", "intact: 1\nworkflow: rest\nsteps:\n"
                   "  - {name: open, agent: a, action: b, undo: none}\n  - {name: month, after: [open], wait: 25d}\n"
                   "  - {name: paid, after: [open], signal: {name: paid}, complete_by: 30d}\n")
        faults = {"20d ahead": ("clock ahead, for: 20d", "5d"), "20h back": ("clock back, for: 20h", "25d"),
                  "2d back": ("clock back, for: 2d", "27d")}
        self.write("rest.test.yaml", "workflow: rest.yaml\nagents: {a: {}}\ntests:\n" + "".join(
            f"  - {{name: {name}, signals: [{{after: 3d, paid: null}}], faults: [{{commit: 4, is: {fault}}}], expect: {{state: processed}}}}\n"
            for name, (fault, _) in faults.items()))
        for name, (_, end) in faults.items():
            told = self.intact("test", "rest.test.yaml", "--verbose", "--name", name).stdout
            self.assertRegex(told, r"00:00:\d\d  the server is killed after this was stored, and its clock set \d+[dh]")
            self.assertRegex(told, rf" {end} 00:00:0\d  task processed")
        self.write("month.yaml", "intact: 1\nworkflow: month\nsteps: [{name: month, wait: 25d}]\n")
        longest = self.simulate("month.yaml", "--exhaustive", "--faults", "1")["longest"]
        self.assertEqual([f["is"] for f in longest["faults"]], ["clock back"])
        self.assertGreaterEqual(longest["took_ms"], 27 * 86400 * 1000)

    # ---- the server ----

    def test_a_server_that_is_killed_at_any_transaction_changes_no_end(self):
        found = self.simulate("order.test.yaml", "--exhaustive", "--faults", "1")
        plain = [e for e in found["ends"] if e["end"]["state"] == "processed"]
        self.assertEqual(len(plain), 1)
        kills = []
        for number in range(1, 9):
            for kind in ("killed before", "killed after"):
                # Agents and clients repeat what got no answer; a request that was stored and not sent is missed.
                within = "20s" if kind == "killed before" else "2m"
                kills.append(f"  - {{name: {kind} {number}, input: {{n: 2}}, expect: {{state: processed, world: {{stock: 8, "
                             f"money: 10}}, order: [reserve, charge], within: {within}}}, "
                             f"faults: [{{commit: {number}, is: {kind}, for: 10s}}]}}\n")
        self.write("kills.test.yaml", TESTS + "".join(kills))
        done = self.intact("test", "kills.test.yaml", "--verbose")
        self.assertIn("17 passed, 0 failed", done.stdout)
        self.assertGreaterEqual(done.stdout.count("the server is killed before this is stored"), 4)
        self.assertGreaterEqual(done.stdout.count("the server is killed after this was stored"), 4)
        self.assertIn("the server starts again", done.stdout)
        self.assertIn("reserve: attempt 1 had no answer in time", done.stdout)

    def test_a_family_with_items_survives_kills(self):
        self.write("family.yaml", FAMILY)
        self.write("child.yaml", CHILD)
        tests, expects = "", (("processed", "{taken: 3, labels: 1, money: 5, mails: 0}", ""),
                              ("compensated", "{taken: 0, labels: 0, money: 0, mails: 1}",
                               "agents: {bank.charge: {refuse: no}}, "))
        for state, world, agents in expects:
            for number in range(1, 25):
                for kind in ("killed before", "killed after"):
                    tests += (f"  - {{name: {state} {kind} {number}, input: {{lines: [1, 2, 3]}}, {agents}signals: [{{after: "
                              f"1m, payment: 1}}], faults: [{{commit: {number}, is: {kind}}}], expect: {{state: {state}, "
                              f"world: {world}}}}}\n")
        self.write("family.test.yaml", FAMILY_TESTS + tests)
        done = self.intact("test", "family.test.yaml", "--verbose")
        self.assertIn("96 passed, 0 failed", done.stdout)
        self.assertGreater(done.stdout.count("the server starts again"), 40)

    # ---- two nodes ----

    def test_a_node_that_dies_or_hangs_at_any_transaction_changes_no_end(self):
        tests = ""
        for number in range(1, 9):
            for kind in ("node killed before", "node killed after", "node hangs"):
                for length in ("1s", "10s", "45s"):
                    tests += (f"  - {{name: {kind} {number} {length}, input: {{n: 2}}, expect: {{state: processed, world: {{stock: "
                              f"8, money: 10}}, order: [reserve, charge], within: 3m}}, "
                              f"faults: [{{commit: {number}, is: {kind}, for: {length}}}]}}\n")
        self.write("nodes.test.yaml", TESTS + tests)
        done = self.intact("test", "nodes.test.yaml", "--verbose")
        self.assertIn("73 passed, 0 failed", done.stdout)
        self.assertNotIn("the server is killed", done.stdout)
        for line in ("n1 is killed before this is stored", "n1 hangs after this was stored", "n1 starts again",
                     "n1 goes on, with what it knew", "n2 takes over what the other node had in work"):
            self.assertGreaterEqual(done.stdout.count(f"node {line}\n"), 4, line)
        # The lease of a node that is away for 1 s does not expire.
        told = self.intact("test", "nodes.test.yaml", "--verbose", "--name", "node hangs 3 1s").stdout
        self.assertNotIn("takes over", told)
        self.assertRegex(told, r"00:00:03  task processed")

    def test_work_moves_after_the_lease_and_before_the_node_is_back(self):
        self.write("moves.test.yaml", TESTS + "  - {name: moves, input: {n: 2}, expect: {state: processed}, "
                   "faults: [{commit: 1, is: node hangs, for: 1h}]}\n")
        told = self.intact("test", "moves.test.yaml", "--verbose", "--name", "moves").stdout
        self.assertRegex(told, r"00:00:0[34]  node n2 takes over what the other node had in work\n")
        self.assertRegex(told, r"00:00:0[56]  task processed\n")
        self.assertRegex(told, r"01:00:00  node n1 goes on, with what it knew\n")

    def test_a_node_that_is_back_with_stale_memory_sends_no_effect_twice(self):
        # It hangs before it sends the request, whose attempt ends meanwhile: then it sends that nevertheless.
        self.write("stale.test.yaml", TESTS + "  - {name: stale, input: {n: 2}, expect: {state: processed, world: {stock: 8, "
                   "money: 10}, order: [reserve, charge]}, faults: [{commit: 3, is: node hangs, for: 45s}, "
                   "{commit: 5, is: node hangs, for: 20s}]}\n")
        told = self.intact("test", "stale.test.yaml", "--verbose", "--name", "stale").stdout
        self.assertRegex(told, r"node n1 hangs after this was stored\n")
        self.assertRegex(told, r"node n2 hangs after this was stored\n")

    def test_a_family_with_items_survives_nodes_that_go(self):
        self.write("family.yaml", FAMILY)
        self.write("child.yaml", CHILD)
        tests, expects = "", (("processed", "{taken: 3, labels: 1, money: 5, mails: 0}", ""),
                              ("compensated", "{taken: 0, labels: 0, money: 0, mails: 1}",
                               "agents: {bank.charge: {refuse: no}}, "))
        for state, world, agents in expects:
            for number in range(1, 25):
                for kind in ("node killed before", "node killed after", "node hangs"):
                    tests += (f"  - {{name: {state} {kind} {number}, input: {{lines: [1, 2, 3]}}, {agents}signals: [{{after: "
                              f"1m, payment: 1}}], faults: [{{commit: {number}, is: {kind}}}], expect: {{state: {state}, "
                              f"world: {world}}}}}\n")
        self.write("family.test.yaml", FAMILY_TESTS + tests)
        done = self.intact("test", "family.test.yaml", "--verbose")
        self.assertIn("144 passed, 0 failed", done.stdout)
        self.assertGreater(done.stdout.count("takes over what the other node had in work"), 20)

    def test_a_month_with_two_nodes_takes_no_longer(self):
        self.write("month.yaml", "intact: 1\nworkflow: month\nsteps: [{name: month, wait: 25d}]\n")
        self.write("month.test.yaml", "workflow: month.yaml\ntests:\n  - {name: month, faults: [{commit: 1, is: node hangs}], "
                   "expect: {state: processed}}\n")
        told = self.intact("test", "month.test.yaml", "--verbose").stdout
        self.assertRegex(told, r"25d 00:00:0\d(\.\d+)?  task processed")

    # ---- all orders ----

    def test_all_orders_of_a_tiny_saga(self):
        counts = []
        for depth in ("0", "1", "2"):
            done = self.intact("simulate", "tiny.test.yaml", "--json", "--exhaustive", "--faults", depth)
            found = json.loads(done.stdout)
            self.assertEqual(found["exhaustive"], int(depth))
            counts.append(found["runs"])
            said = int(done.stderr.split("about ")[1].split(" ")[0])
            self.assertLess(abs(said - found["runs"]), 0.3 * found["runs"] + 1, "the estimate is wrong")
        self.assertEqual(counts[0], 1)
        # One request, with 11 kinds of which 4 may last, and transactions, with 7 kinds.
        self.assertEqual((counts[1] - 1 - 15) % 7, 0)
        self.assertGreater(counts[1], 1 + 15)
        self.assertGreater(counts[2], counts[1] * 5)

    def test_too_many_orders_are_refused_beforehand(self):
        said = self.refused("order.test.yaml", "--exhaustive", "--faults", "4", "--runs-max", "1000")
        self.assertRegex(said, r"up to 4 faults are about \d+ runs, more than --runs-max 1000")

    # ---- rules ----

    def test_rules_of_the_file_and_of_the_command_line(self):
        found = self.simulate("order.test.yaml", "--runs", "300", "--always", ".world.stock >= 9", status=1)
        self.assertEqual([(f["kind"], f["rule"]) for f in found["findings"]][0], ("rule", "always"))
        self.assertEqual(found["findings"][0]["story"]["faults"], [])
        self.write("order.test.yaml", TESTS.replace("tests:", "at_end: .world.money < 10 or .task.state != "
                                                    "\"compensated\"\ntests:"))
        found = self.simulate("order.test.yaml", "--runs", "1500")
        self.assertEqual([f["kind"] for f in found["findings"]], [])
        found = self.simulate("order.test.yaml", "--runs", "300", "--at-end", ".task.steps.ship.state == \"completed\"",
                              status=1)
        self.assertEqual(found["findings"][0]["rule"], "at_end 2")

    def test_before_has_what_no_undo_takes_back(self):
        self.write("order.yaml", ORDER.replace("undo: {action: refund}", "undo: none"))
        rule = 'if .task.state == "compensated" then .world == .before else true end'
        found = self.simulate("order.test.yaml", "--runs", "500", "--at-end", rule)
        self.assertEqual({f["kind"] for f in found["findings"]}, {"stays"})

    def test_a_member_that_cannot_be_compared_is_told(self):
        self.write("list.yaml", "intact: 1\nworkflow: list\nsteps:\n"
                   "  - {name: add, agent: a, action: add, undo: {action: drop}}\n"
                   "  - {name: note, agent: a, action: note, undo: none}\n  - {name: last, agent: a, action: last, undo: none}\n")
        tests = ("workflow: list.yaml\nworld: {list: []}\nagents:\n"
                 "  a.add: {effect: {list: '.world.list + [1]'}, undone: {list: '.world.list - [1]'}}\n"
                 "  a.note: {effect: {list: '.world.list + [2]'}}\n  a.last: {}\ntests: [{name: t, expect: {state: processed}}]\n")
        self.write("list.test.yaml", tests)
        found = self.simulate("list.test.yaml", "--runs", "300")["findings"]
        self.assertIn(("unclear", "list"), [(f["kind"], f["subject"]) for f in found])
        self.assertNotIn("unclear", [f["kind"] for f in self.simulate("list.test.yaml", "--runs", "300", "--at-end", "true")["findings"]])
        reverse = tests.replace("[2]'}}", "[2]'}, undone: {list: '.world.list - [2]'}}")
        number = tests.replace("{list: []}", "{list: 0}").replace("[1]", "1").replace("[2]", "2")
        for mended in (reverse, number):
            self.write("list.test.yaml", mended)
            self.assertEqual({f["kind"] for f in self.simulate("list.test.yaml", "--runs", "300")["findings"]}, {"stays"})

    def test_rules_that_are_wrong(self):
        self.assertIn('--always, column 8 of ".world &&": ', self.refused("order.test.yaml", "--always", ".world &&"))
        self.write("order.test.yaml", TESTS.replace("tests:", "always: .world.stock >\ntests:"))
        self.assertIn("order.test.yaml:7:", self.refused("order.test.yaml"))
        self.write("order.test.yaml", TESTS.replace("tests:", "always: [.world.stock / .world.money > 0]\ntests:"))
        said = self.refused("order.test.yaml")
        self.assertRegex(said, r"^order.test.yaml:7:10: error: rule always, .world.stock / .world.money > 0: .*zero")
        self.write("order.test.yaml", TESTS)
        said = self.refused("order.test.yaml", "--always", ".world.stock")
        self.assertIn(".world.stock: it gives neither true nor false", said)

    def test_a_rule_that_never_ends(self):
        said = self.refused("order.test.yaml", "--always", "[range(10000000)] | length > 0")
        self.assertRegex(said, r"error: rule always, .* (steps|bytes)")

    # ---- stories that are kept ----

    def test_a_finding_becomes_a_test_that_fails_until_it_is_mended(self):
        wrong = TESTS.replace("bank.charge: {", "bank.charge: {idempotent: false, ")
        self.write("order.test.yaml", wrong)
        said = self.intact("simulate", "order.test.yaml", "--keep-as", "order.test.yaml", status=1).stderr
        self.assertIn("was added; it fails until the world is as before", said)
        failed = self.intact("test", status=1).stdout
        self.assertIn("1 passed, 1 failed", failed)
        self.assertRegex(failed, r"world.money: expected 0, found [1-4]0")
        self.write("order.test.yaml", self.read("order.test.yaml").replace("idempotent: false, ", ""))
        self.assertIn("2 passed, 0 failed", self.intact("test").stdout)

    def test_a_story_is_kept_in_another_folder(self):
        os.makedirs(os.path.join(self.folder.name, "kept/deep"))
        os.makedirs(os.path.join(self.folder.name, "flows"))
        self.write("family.yaml", FAMILY)
        self.write("flows/child.yaml", CHILD)
        self.write("family.test.yaml", FAMILY_TESTS.replace("child.yaml", "flows/child.yaml")
                   + "  - {name: t, input: {lines: [1]}, signals: [{after: 1h, payment: null}], expect: {state: processed}}\n")
        self.write("flows/order.yaml", ORDER)
        for file, kept in (("family.test.yaml", "kept/deep/family.test.yaml"), ("flows/order.yaml", "kept/order.test.yaml"),
                           (os.path.join(self.folder.name, "flows/order.yaml"), "flows/order.test.yaml"),
                           ("tiny.test.yaml", "./tiny2.test.yaml")):
            self.intact("simulate", file, "--runs", "100", "--keep-as", kept, "--end", "1")
            self.assertIn("1 passed, 0 failed", self.intact("test", kept).stdout)
        self.assertIn('workflow: "../../family.yaml"\nalso: ["../../flows/child.yaml"]', self.read("kept/deep/family.test.yaml"))
        self.assertIn('workflow: "order.yaml"', self.read("flows/order.test.yaml"))

    def test_every_end_can_be_kept(self):
        ends = self.simulate("order.test.yaml", "--runs", "400")["ends"]
        for number in range(1, min(len(ends), 12) + 1):
            self.intact("simulate", "order.test.yaml", "--runs", "400", "--keep-as", "kept.test.yaml", "--end",
                        str(number))
        done = self.intact("test", "kept.test.yaml")
        self.assertIn(f"{min(len(ends), 12)} passed, 0 failed", done.stdout)

    def test_stories_that_were_kept_are_no_tests_to_be_simulated(self):
        self.write("kept.test.yaml", TESTS.replace("expect:", "faults: [{stop: 1, is: undo}], expect:"))
        self.assertIn("all tests have faults", self.refused("kept.test.yaml"))

    def test_a_file_to_which_nothing_can_be_added(self):
        self.write("flow.test.yaml", "tests: []\nworkflow: order.yaml\n")
        said = self.intact("simulate", "order.test.yaml", "--runs", "50", "--keep-as", "flow.test.yaml", "--end", "1",
                           status=2).stderr
        self.assertIn("flow.test.yaml: nothing is kept: `tests` is not the last key", said)
        self.assertEqual(self.read("flow.test.yaml"), "tests: []\nworkflow: order.yaml\n")

    # ---- definitions without tests, and large ones ----

    def test_a_definition_alone(self):
        found = self.simulate("order.yaml", "--input", "{\"n\": 1}", "--runs", "500")
        self.assertEqual(found["findings"], [])
        self.assertIn("compensated", {e["end"]["state"] for e in found["ends"]})
        self.write("wait.yaml", "intact: 1\nworkflow: w\nsteps:\n  - {name: paid, signal: {name: payment}}\n")
        found = self.simulate("wait.yaml", "--runs", "100", status=1)
        self.assertEqual([(f["kind"], f["subject"]) for f in found["findings"]], [("waits", "payment")])
        self.assertIn("--input, column 2", self.refused("order.yaml", "--input", "{"))
        self.assertIn("--input is for a definition", self.refused("order.test.yaml", "--input", "1"))

    def test_what_a_definition_alone_lacks_is_said(self):
        self.write("family.yaml", FAMILY)
        self.write("input.yaml", TINY.replace("steps:", "inputs: {n: {type: integer, required: true}}\nsteps:"))
        for file, words, missing in (("family.yaml", ["--input", '{"lines": []}'], 'expected a workflow "child"'),
                                     ("input.yaml", [], 'input "n" is missing'), ("input.yaml", ["--input", '{"n": "x"}'], 'found "x"')):
            told = self.refused(file, *words)
            self.assertRegex(told, rf"^{file}: error: ")
            self.assertIn(missing, told)
            self.assertIn("a test file can say more", told)

    def test_a_definition_of_a_thousand_steps(self):
        steps = "".join(f"  - {{name: s{i}, agent: a, action: b{i}, after: [{f's{i - 1}' if i % 10 else ''}], "
                        "undo: {action: c}}\n" for i in range(1000))
        self.write("large.yaml", f"intact: 1\nworkflow: large\nsteps:\n{steps}")
        found = self.simulate("large.yaml", "--runs", "2")
        self.assertEqual(found["runs"], 2)
        said = self.refused("large.yaml", "--exhaustive", "--faults", "3")
        self.assertIn("more than --runs-max", said)

    def test_only_some_of_many_steps_are_named(self):
        steps = "".join(f"  - {{name: s{i}, agent: a, action: b{i}, undo: {{action: c}}}}\n" for i in range(40))
        self.write("many.yaml", f"intact: 1\nworkflow: many\nsteps:\n{steps}")
        self.write("many.test.yaml", "workflow: many.yaml\nworld: {}\nagents: {a: {}, a.b20: {refuse: no}}\n"
                   "tests: [{name: one, expect: {state: compensated}}]\n")
        told = self.intact("simulate", "many.test.yaml", "--runs", "1").stdout
        self.assertRegex(told, r"(?m)^ +40 steps: 20 undone, s20 failed, 19 (skipped|waiting)$")

    # ---- files and words that are wrong ----

    def test_names_that_do_not_exist(self):
        head = TESTS.replace("expect: {state: processed}}", "")
        for faults, said in (("{request: chrge, is: refused}", 'did you mean "charge"'),
                             ("{request: charge, is: gone}", '"answer lost"'),
                             ("{commit: 0, is: killed before}", "1"),
                             ("{signal: paid, is: never}", "a signal that workflow order waits for"),
                             ("{vote: ship, is: never}", "a step with approve"),
                             ("{is: refused}", "one of the keys request, undo, commit"),
                             ("{request: ship, is: refused, for: 3s}", "has no length"),
                             ("{request: ship, is: slow, always: true}", "strikes once"),
                             ("{request: ship, undo: ship, is: refused}", "a second place"),
                             ("{request: ship, is: refused, when: 3}", "an unknown key")):
            self.write("order.test.yaml", f"{head}faults: [{faults}], expect: {{state: processed}}}}\n")
            told = self.intact("test", "order.test.yaml", status=2).stderr
            self.assertRegex(told, r"order.test.yaml:\d+:\d+: ")
            self.assertIn(said, told)

    def test_a_world_that_divides_by_zero(self):
        self.write("order.test.yaml", TESTS.replace(".world.money + 10", "10 / .world.money"))
        said = self.refused("order.test.yaml")
        self.assertRegex(said, r"^order.test.yaml:5:\d+: error: the effect of charge failed: .*zero")

    def test_words_that_are_wrong(self):
        for words, said in ((["--allow", "fit,nothing"], 'no finding "nothing"'),
                            (["--faults", "1"], "--faults is for --exhaustive"),
                            (["--exhaustive", "--runs", "5"], "--runs is not for --exhaustive"),
                            (["--end", "1"], "--end is for --keep-as"),
                            (["--name", "nothing"], "no test without faults has"),
                            (["--seed", "x"], "--seed")):
            self.assertIn(said, self.refused("order.test.yaml", *words))
        self.refused("nothing.test.yaml")

    def test_findings_that_are_allowed(self):
        self.write("order.yaml", ORDER.replace("undo: {action: refund}", "undo: none"))
        self.assertEqual(self.simulate("order.test.yaml", "--runs", "300", "--allow", "stays")["findings"], [])


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[3:], verbosity=2)
