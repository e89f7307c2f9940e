#!/usr/bin/env python3
"""The command line as a whole: a real server, real pipes, real terminals, real shells.

Usage: cli_test.py ROOT INTACT DOCUMENT [TEST...]      DOCUMENT: the program intact-document
"""

import functools
import glob
import json
import os
import pty
import re
import select
import shlex
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import unittest
import urllib.parse
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from cli_kit import CONTROLS, DOCUMENT, INTACT, PATIENCE_S, ROOT, SGR, WORKFLOW, Agent, WithServer, lines, on_terminal, read, wait_for


EACH = unittest.skipUnless("INTACT_EACH" in os.environ, "a process or two for each flag: with INTACT_EACH")
EXPENSE = """intact: 1
workflow: expense
steps:
  - name: allow
    approve: {by: finance, question: "Pay ${ .input.amount }?"}
"""


class Shown(WithServer):
    def test_colours_are_for_terminals(self):
        self.s.run("submit", "order", "--input", '{"sku": "fail"}', "--id", "o-1")
        agent = Agent(self.s)
        self.s.run("get", "o-1", "--wait", "3m", status=1)
        agent.close()
        for words in ("list",), ("get", "o-1"):
            self.assertIn("\x1b[33mcompensated\x1b[0m", self.s.at_terminal(*words))
            self.assertNotIn("\x1b", self.s.at_terminal(*words, "--color", "never"))
            self.assertNotIn("\x1b", self.s.at_terminal(*words, env={"NO_COLOR": "1"}))
            self.assertNotIn("\x1b", self.s.at_terminal(*words, env={"TERM": "dumb"}))
            self.assertIn("\x1b[33m", self.s.at_terminal(*words, env={"NO_COLOR": ""}))
            self.assertIn("\x1b[33m", self.s.at_terminal(*words, "--color", "always", env={"NO_COLOR": "1"}))
            self.assertNotIn("\x1b", self.s.run(*words).stdout)
            self.assertIn("\x1b[33m", self.s.run(*words, "--color", "always").stdout)

    def test_what_an_agent_says_does_not_reach_the_terminal_as_commands(self):
        evil = "\x1b]0;owned\x07\x1b[2J\u009b31m\u202e\x7f\r\nfake"
        agent = Agent(self.s, {"code": "sold_out", "message": evil, "retry": "no"})
        self.s.run("submit", "order", "--input", json.dumps({"sku": "fail" + evil}), "--id", "o-1")
        self.s.run("get", "o-1", "--wait", "3m", status=1)
        agent.close()
        for words in ("get", "o-1"), ("list",), ("why", "o-1"), ("watch", "o-1"), ("get", "o-1", "--json"):
            shown = SGR.sub("", self.s.at_terminal(*words))
            self.assertIsNone(CONTROLS.search(re.sub(r"\x1b\[(\?25[hl]|\d*[AJK])|\r", "", shown)), shown)
        shown = self.s.run("get", "o-1").stdout
        self.assertIsNone(CONTROLS.search(shown), shown)
        self.assertNotIn("\nfake", shown)
        whole = json.loads(self.s.run("get", "o-1", "--json").stdout)  # as it came
        self.assertEqual(whole["input"]["sku"], "fail" + evil)

    def test_what_a_file_says_does_not_reach_the_terminal_as_commands(self):
        file = self.s.path("evil.yaml", 'intact: 1\nworkflow: "a\\e]0;x\\a\\x9b2J\\u202e"\nsteps: [{name: b, agent: q, action: z, undo: none}]\n')
        for words in ("validate", file), ("validate", file, "--json"), ("simulate", file):
            shown = SGR.sub("", self.s.at_terminal(*words))
            self.assertIn("expected", shown)
            self.assertIsNone(CONTROLS.search(shown.replace("\r", "")), shown)
        [whole] = json.loads(self.s.run("validate", file, "--json", status=1).stdout)["files"]
        self.assertIn("\u202e", whole["errors"][0]["found"])  # as it came

    def test_a_refused_verb_says_what_can_be_done_with_a_task_that_has_ended(self):
        by_hand = ("--reason", "r")
        agent = Agent(self.s)
        final = WORKFLOW.replace("workflow: order", "workflow: final").replace("undo: none", "pivot: true")
        self.s.run("workflow", "put", self.s.path("final.yaml", final))
        for id, workflow, sku, status in (("done", "order", "s", 0), ("back", "order", "fail", 1), ("sold", "final", "s", 0)):
            self.s.run("submit", workflow, "--input", json.dumps({"sku": sku}), "--id", id)
            self.s.run("get", id, "--wait", "3m", status=status)
        agent.close()
        for words, says in (
                (("cancel", "done"), "task done is processed: it is too late to cancel it, but an operator can undo it; "
                                     "what can be done: intact undo done --reason '...'"),
                (("retry", "done"), "while task done is processed; what can be done: intact undo done --reason '...'"),
                (("cancel", "sold"), 'step "reserve" is a pivot that took effect or may have: the processed task cannot be '
                                     "undone; it has ended, and nothing more can be done with it"),
                (("undo", "back"), "while task back is compensated; it was undone: to run it again, submit it under "
                                   "another id")):
            with self.subTest(words):
                self.assertIn(says, self.s.run(*words, *by_hand, status=1).stderr)

    def test_a_long_value_does_not_fill_a_terminal(self):
        text = "".join(f"{i:05}." for i in range(10000))
        self.s.run("submit", "order", "--input", "-", "--id", "long", input=json.dumps({"sku": text}))
        shown = SGR.sub("", self.s.at_terminal("get", "long"))
        [line] = [line for line in shown.splitlines() if line.startswith("input ")]
        self.assertIn("00000.00001.", line)
        self.assertLessEqual(len(line), 20 * 80)
        self.assertIn("\n            59 KiB in all, see intact get long --json\n", shown)
        self.assertIn(text, self.s.run("get", "long").stdout)  # what a program reads is whole
        self.assertIn(text, self.s.at_terminal("get", "long", "--json"))
        self.assertNotIn("in all", SGR.sub("", self.s.at_terminal("get", "long", env={"TERM": "dumb"})))

    def test_why_has_colours_by_what_they_mean(self):
        self.s.run("workflow", "put", self.s.path("held.yaml", WORKFLOW.replace("order", "held") + "on_failure: hold\n"))
        self.s.run("submit", "held", "--input", '{"sku": "fail"}', "--id", "-x")
        agent = Agent(self.s)
        self.s.run("get", "--wait", "3m", "--", "-x", status=1)
        shown = self.s.at_terminal("why", "--", "-x")
        self.assertIn("\x1b[31mTask -x has stopped in error. ", shown)
        self.assertRegex(shown, "\x1b\\[2msince .*\x1b\\[0m\n")
        self.assertIn("\x1b[1mintact retry --step reserve --reason '...' -- -x\x1b[0m\n", shown)
        plain = self.s.run("why", "--", "-x").stdout
        self.assertNotIn("\x1b", plain)
        self.assertEqual(SGR.sub("", shown).split("since")[0], plain.split("since")[0])
        self.assertIn("\x1b[31m", self.s.run("why", "--color", "always", "--", "-x").stdout)
        command = next(line for line in plain.splitlines() if "intact undo" in line)
        self.s.run(*shlex.split(command)[1:])  # as it stands there
        self.s.run("get", "--wait", "3m", "--", "-x", status=1)
        self.assertIn("\x1b[33mThe task was undone", self.s.at_terminal("why", "--", "-x"))
        agent.close()

    def test_a_backup_says_what_it_does_on_a_terminal_only(self):
        file = self.s.folder + "/b.db"
        shown = self.s.at_terminal("backup", file)
        for what in "the server copies its store", "checking it":
            self.assertIn("\r" + what + "\x1b[K", shown)
        self.assertRegex(shown, r"\r\x1b\[K\S+b.db: \d+ bytes, checked.*\n$")
        self.assertRegex(self.s.run("backup", file, "--force").stderr, r"^\S+b.db: \d+ bytes, checked.*\n$")
        shown = self.s.at_terminal("backup", file, "--force", env={"TERM": "dumb"})
        self.assertRegex(shown, r"^\S+b.db: \d+ bytes, checked.*\n$")

    def test_wide_characters_and_long_ids_do_not_break_tables(self):
        long = "x" * 128
        for name in "a", long:
            self.s.run("submit", "order", "--input", '{"sku": "s"}', "--id", name)
        rows = self.s.run("list").stdout.splitlines()
        self.assertEqual(len(rows), 3)
        self.assertEqual({row.find("order ") for row in rows[1:]}, {130})
        rows = SGR.sub("", self.s.at_terminal("list", "--color", "never")).splitlines()
        self.assertEqual(rows[1], long)
        self.assertEqual(rows[2].strip().split()[0], "order")
        self.assertEqual(rows[2].find("order"), rows[3].find("order"))

    def test_an_agent_that_never_called_is_listed_by_those_who_wait_for_it(self):
        lonely = "intact: 1\nworkflow: lonely\nsteps: [{name: a, agent: nobody, action: x, undo: none}]\n"
        self.s.run("workflow", "put", self.s.path("lonely.yaml", lonely))
        self.s.run("submit", "lonely", "--id", "lonely-1")
        self.assertRegex(self.s.run("agent", "list").stdout, r"nobody +1 +no-instance +not connected +- +- +- +-")

    def test_agents_and_their_instances_are_listed_by_name(self):
        for name in ("sort-b", "sort-d", "sort-a", "sort-c"):
            self.s.run("agent", "set", name, "--action", "count=5")
            for instance in ("i2", "i4", "i1", "i3"):
                self.s.call(f"/v1/agents/{name}/work", {"instance": instance, "holding": []})
        listed = [tuple(line.split()[i] for i in (0, 3)) for line in self.s.run("agent", "list").stdout.splitlines()]
        listed = [row for row in listed if row[0].startswith("sort-")]
        self.assertEqual(len(listed), 16)
        self.assertEqual(listed, sorted(listed))
        self.assertRegex(self.s.run("agent", "get", "sort-a").stdout, r"\nlimits +of actions alone\n +count +5 at a time\n")

    def test_lists_of_the_installation(self):
        self.s.run("submit", "order", "--input", '{"sku": "s"}', "--id", "o-1")
        agent = Agent(self.s)
        self.s.run("get", "o-1", "--wait", "3m")
        self.assertRegex(self.s.run("agent", "list").stdout, r"stock +0 +- +one +100 +0 +good +\d\d:\d\d:\d\d")
        agent.close()
        self.assertRegex(self.s.run("node", "list").stdout, r"n1 +leads +http://\S+ +scheduler,supervisor +1 +\S.* \d")
        self.s.run("submit", "order", "--input", '{"sku": "s"}', "--id", "o-2")
        self.s.run("cancel", "o-2", "--reason", "ordered twice")
        listed = self.s.run("audit", "list", "--task", "o-2").stdout.splitlines()
        self.assertEqual(len(listed), 2)
        self.assertRegex(listed[1], r"admin +127\.0\.0\.1 +cancel +o-2 +- +ordered twice")
        self.assertRegex(self.s.run("audit", "list").stdout, r"workflow\.put")
        pages = self.s.run("audit", "list", "--limit", "1", "--all").stdout
        self.assertRegex(pages, r"(?s)cancel.*workflow\.put")
        self.assertEqual(self.s.run("workflow", "get", "order").stdout, WORKFLOW)
        self.assertEqual(self.s.run("workflow", "get", "order", "--version", "1").stdout, WORKFLOW)
        self.s.run("workflow", "get", "order", "--version", "2", status=1)

    def test_refusals_say_what_to_do(self):
        self.s.run("submit", "order", "--input", '{"sku": "s"}', "--id", "o-1")
        weak = self.s.run("token", "create", "weak", "--role", "submit").stdout.strip()
        for words, env, status, says in (
            (("list",), {"INTACT_SERVER": "http://127.0.0.1:1"}, 3, "`intact serve` starts one; --server"),
            (("list",), {"INTACT_TOKEN": "x"}, 1, "Set INTACT_TOKEN or use --token-file; `intact token create`"),
            (("list",), {"INTACT_TOKEN": weak}, 1, "it requires the role read, repair, operate or admin; an admin "
             "can create such a token: intact token create NAME --role ROLE"),
            (("submit", "ordr"), {}, 1, 'there is no workflow "ordr"; did you mean '
             '"order"?'),
            (("submit", "other"), {}, 1, "; intact workflow list shows all workflows"),
            (("submit", "order", "--version", "9"), {}, 1, "the newest is 1; intact workflow list"),
            (("submit", "order"), {}, 1, "sku"),
            (("submit", "order", "--input", '{"sku": "other"}', "--id", "o-1"), {}, 1, "; use another --id"),
            (("get", "nix"), {}, 1, "there is no task nix; intact list shows the newest"),
            (("retry", "o-1", "--reason", "x"), {}, 1, "; intact why o-1 explains what the task waits for"),
            (("agent", "open", "stokc", "--reason", "x"), {}, 1, 'did you mean "stock"?; intact agent list shows all agents'),
            (("agent", "close", "nobody"), {}, 1, 'there is no agent "nobody": it has not called this node'),
            (("token", "delete", "nix"), {}, 1, "; intact token list shows all tokens"),
            (("token", "delete", "admin"), {}, 1, "; intact token create NAME --role admin first"),
            (("token", "create", "weak", "--role", "read"), {}, 1, "; use another name"),
            (("list", "--server", "localhost"), {}, 2, "expected http://HOST:PORT"),
        ):
            done = self.s.run(*words, env=env, status=status)
            self.assertIn(says, done.stderr)
            self.assertEqual(done.stderr.count("\n"), 1, done.stderr)

    def test_output_that_cannot_be_written_is_a_failure(self):
        with open("/dev/full", "w", encoding="utf-8") as full:
            done = subprocess.run([INTACT, "list"], env=self.s.env, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
        self.assertEqual((done.returncode, done.stderr), (1, "intact: standard output cannot be written: No space left on device; the answer is not complete\n"))


SHIP = """intact: 1
workflow: ship
steps:
  - {name: pack, agent: stock, action: pack, input: "${ .input }", retry: {attempts: 1}, undo: none, on_failure: hold}
"""
TRIP = """intact: 1
workflow: trip
steps:
  - {name: go, task: {workflow: ship, input: "${ .input }"}, complete_by: 7d}
"""
TOUR = """intact: 1
workflow: tour
steps:
  - {name: out, task: {workflow: trip, input: "${ .input }"}}
  - {name: back, after: [], task: {workflow: ship, input: {sku: s}}}
"""


class Families(WithServer):
    def setUp(self):
        super().setUp()
        for name, text in ("ship", SHIP), ("trip", TRIP), ("tour", TOUR):
            self.s.run("workflow", "put", self.s.path(name + ".yaml", text))

    def state(self, task):
        return json.loads(self.s.run("get", task, "--json").stdout)["state"]

    def test_a_family_is_shown_from_each_of_its_tasks(self):
        self.s.run("submit", "tour", "--id", "t-1", "--input", '{"sku": "fail"}')
        agent = Agent(self.s)
        wait_for(lambda: self.state("t-1") == "error", "it stops")
        agent.close()
        shown = self.s.run("get", "t-1@out@go").stdout
        self.assertRegex(shown, r"\nparent +t-1@out \(step go\)\nroot +t-1\nstate +error\n")
        shown = self.s.run("get", "t-1@out").stdout
        self.assertRegex(shown, r"\nparent +t-1 \(step out\)\nstate +error\n")
        self.assertIn("\ngo: its child t-1@out@go stopped in error\n", shown)
        shown = self.s.run("get", "t-1").stdout
        self.assertNotIn("parent", shown)
        self.assertRegex(shown, r"\nout: its child t-1@out stopped in error\nback: its child t-1@back is processed\n$")
        tree = [re.match(r"( *\S+) +(\S+) +(\S+)", l).groups() for l in self.s.run("get", "t-1", "--family").stdout.splitlines()[1:]]
        self.assertEqual(tree[0], ("t-1", "tour", "error"))
        self.assertEqual(sorted(tree[1:]), sorted([("  t-1@out", "trip", "error"), ("    t-1@out@go", "ship", "error"),
                                                   ("  t-1@back", "ship", "processed")]))
        self.assertLess(tree.index(("  t-1@out", "trip", "error")), tree.index(("    t-1@out@go", "ship", "error")))
        self.assertEqual(self.s.run("get", "t-1@out@go", "--family").stdout, self.s.run("get", "t-1", "--family").stdout)
        self.assertIn("intact list --root", self.s.run("get", "t-1", "--family", "--json", status=2).stderr)
        said = self.s.run("close", "t-1@out", "--reason", "x", status=1).stderr
        self.assertIn("task t-1@out is a child; send the request to the root of its family, task t-1", said)
        why = self.s.run("why", "t-1").stdout
        self.assertIn("intact why t-1@out\n", why)

    def test_children_are_listed_and_chosen_by_filters(self):
        for i in range(3):
            self.s.run("submit", "tour", "--id", f"t-{i}", "--input", '{"sku": "s"}')
        wait_for(lambda: len(self.ids("--all", "--children").split()) == 12, "all have started")
        self.assertEqual(self.ids("--all"), "t-2 t-1 t-0")
        self.assertEqual(self.ids("--parent", "t-1", "--workflow", "trip"), "t-1@out")
        self.assertEqual(sorted(self.ids("--root", "t-1").split()), ["t-1@back", "t-1@out", "t-1@out@go"])
        self.assertIn("t-0@out", self.ids("--workflow", "trip", "--state", "pending"))
        self.assertEqual(self.ids("--workflow", "trip"), "")
        self.assertIn("expected the id of a task", self.s.run("list", "--root", "a b", status=1).stderr)
        dry = ("pause", "--all", "--reason", "x", "--dry-run")
        self.assertIn("would concern 3 tasks\n", self.s.run(*dry).stdout)
        self.assertIn("would concern 12 tasks\n", self.s.run(*dry, "--children").stdout)
        self.assertIn("would concern 2 tasks\n", self.s.run(*dry, "--parent", "t-0").stdout)
        self.assertRegex(self.s.run(*dry, "--root", "t-0").stdout, r"would concern 3 tasks\n(.*\n)*refused +3: the task is a child")
        done = self.s.run("operation", "start", "cancel", "--root", "t-0", "--workflow", "trip", "--reason", "x").stdout
        self.assertIn("done      1\n", done)
        wait_for(lambda: self.state("t-0") == "compensated", "its parent follows")

    def test_a_watch_says_what_becomes_of_a_child(self):
        self.s.run("submit", "trip", "--id", "w-1", "--input", '{"sku": "s"}')
        wait_for(lambda: self.ids("--root", "w-1"), "it has started")
        watch = subprocess.Popen([INTACT, "watch", "w-1"], env=self.s.env, stdout=subprocess.PIPE, text=True)
        seen = ""
        while "is running" not in seen:
            seen = watch.stdout.readline()
            self.assertTrue(seen)
        self.assertRegex(seen, r"  go +waiting +its child w-1@go is running\n$")
        agent = Agent(self.s)
        rest, _ = watch.communicate(timeout=PATIENCE_S)
        agent.close()
        self.assertRegex(rest, r"  go +completed +its child w-1@go is processed\n")

    def ids(self, *filters):
        pages = self.s.run("list", "--json", *filters).stdout.splitlines()
        return " ".join(t["id"] for p in pages for t in json.loads(p)["tasks"])


HAUL = """intact: 1
workflow: haul
on_failure: hold
steps:
  - name: load
    for_each: ${ .input }
    max_items: 2000
    on_item_failure: {tolerate: 0.1%}
    agent: stock
    action: load
    input: ${ .item }
    retry: {attempts: 1}
    undo: {action: unload}
"""

FLEET = """intact: 1
workflow: fleet
steps:
  - {name: go, for_each: "${ .input }", max_items: 9, task: {workflow: ship, input: "${ .item }"}}
"""


class Items(WithServer):
    def setUp(self):
        super().setUp()
        self.s.run("workflow", "put", self.s.path("haul.yaml", HAUL))

    def submit(self, task, items):
        self.s.run("submit", "haul", "--id", task, "--input", json.dumps(items))

    def state(self, task):
        return json.loads(self.s.run("get", task, "--json").stdout)["state"]

    def test_those_that_failed_are_shown_and_repaired(self):
        self.submit("h-1", ["a", "fail 1", "b", "fail 3", "c"])
        agent = Agent(self.s)
        wait_for(lambda: self.state("h-1") == "error", "it stops")
        agent.close()
        shown = self.s.run("get", "h-1").stdout
        self.assertRegex(shown, r"\nload +failed +stock +load +0 +0 +yes +sold_out\nload\.1 +failed +stock +load +1 +1 +yes +sold_out\n")
        done = len(re.findall(r"^load\.\d +completed", self.s.run("items", "h-1", "load").stdout, re.M))
        failed = [line.split()[0] for line in self.s.run("items", "h-1", "load", "--state", "failed").stdout.splitlines()[1:]]
        self.assertIn("load.1", failed)
        self.assertRegex(shown, rf"\nload: {done} of 5 items completed, {len(failed)} failed, {len(failed)} in doubt\n")
        for item in failed:
            repaired = self.s.run("supply", "h-1", "--step", item, "--output", "1", "--reason", "loaded by hand").stdout
        self.assertRegex(repaired, r"\nload: \d of 5 items completed")
        agent = Agent(self.s)
        wait_for(lambda: self.state("h-1") == "processed", "it goes on")
        agent.close()
        self.assertIn("\nload: 5 of 5 items completed\n", self.s.run("get", "h-1").stdout)
        self.assertRegex(self.s.run("audit", "list", "--task", "h-1").stdout, r"supply +h-1 +load\.1 ")

    def test_they_are_listed_in_pages(self):
        self.submit("h-2", [f"i{n}" if n != 1100 else "fail" for n in range(1200)])
        agent = Agent(self.s)
        watch = subprocess.Popen([INTACT, "watch", "h-2"], env=self.s.env, stdout=subprocess.PIPE, text=True)
        seen, _ = watch.communicate(timeout=PATIENCE_S)
        agent.close()
        self.assertEqual(watch.returncode, 0, seen)
        self.assertRegex(seen, r"  load +completed +1199 of 1200 items completed, 1 failed, 1 in doubt\n")
        self.assertLess(seen.count("\n"), 30)
        names = [f"load.{n}" for n in range(1200)]
        self.assertEqual(self.names("--limit", "3"), names[:3])
        self.assertEqual(self.names(), names[:50])
        self.assertEqual(self.names("--all"), names)
        self.assertEqual(self.names("--state", "failed"), ["load.1100"])
        self.assertEqual(self.names("--state", "running"), [])
        pages = [json.loads(p) for p in self.s.run("items", "h-2", "load", "--all", "--limit", "500", "--json").stdout.splitlines()]
        self.assertEqual([len(p["items"]) for p in pages], [500, 500, 200])
        self.assertEqual(pages[2]["items"][199]["output"], {"id": 7})
        self.assertIn("--limit", self.s.run("items", "h-2", "load", "--state", "failed", "--limit", "3", status=2).stderr)
        self.assertIn('no step "unload"', self.s.run("items", "h-2", "unload", status=1).stderr)
        self.assertIn("no task h-3", self.s.run("items", "h-3", "load", status=1).stderr)

    def test_children_of_items_are_shown(self):
        for name, text in ("ship", SHIP), ("fleet", FLEET):
            self.s.run("workflow", "put", self.s.path(name + ".yaml", text))
        self.s.run("submit", "fleet", "--id", "f-1", "--input", '[{"sku": "a"}, {"sku": "fail"}]')
        agent = Agent(self.s)
        wait_for(lambda: self.state("f-1") == "error", "it stops")
        agent.close()
        shown = self.s.run("get", "f-1").stdout
        self.assertRegex(shown, r"\ngo: 1 of 2 items completed, 1 at work\ngo\.1: its child f-1@go\.1 stopped in error\n")
        listed = self.s.run("items", "f-1", "go").stdout
        self.assertRegex(listed, r"\ngo\.0 +completed .* f-1@go\.0\ngo\.1 +waiting .* f-1@go\.1\n")

    def names(self, *flags):
        return [line.split()[0] for line in self.s.run("items", "h-2", "load", *flags).stdout.splitlines()[1:]]


class Asked(WithServer):
    def test_a_decision_is_on_the_question_that_was_read(self):
        self.s.run("workflow", "put", self.s.path("expense.yaml", EXPENSE))
        self.env = {"INTACT_TOKEN": self.s.run("token", "create", "ann", "--role", "approve", "--group", "finance").stdout.strip()}
        for i in range(1, 5):
            self.s.run("submit", "expense", "--id", f"e-{i}", "--input", '{"amount": 80}')
        self.assertEqual(self.s.run("approve", "e-1", env=self.env).stdout, "approved: Pay 80?\n1 of 1 agreed\n")
        for i in range(2, 5):
            self.s.run("correct", f"e-{i}", "--input", '{"amount": 9000}', "--reason", "x")
            wait_for(lambda task=f"e-{i}": "Pay 9000?" in self.listed(task), "it is asked anew")
        self.assertRegex(self.listed("e-2"), r"ASKING\ne-2 +allow +Pay 9000\? .* 2\n")
        self.assertIn("intact approve e-2 allow --asking 2\n", self.s.run("why", "e-2").stdout)
        done = self.s.run("approve", "e-2", env=self.env, status=1)
        self.assertIn("was asked anew: Pay 9000?\nTo decide on that, add --asking 2\n", done.stderr)
        self.assertEqual(done.stdout, "")
        self.s.run("reject", "e-2", "--comment", "x", env=self.env, status=1)
        self.assertIn("asked anew", self.s.run("approve", "e-2", "--asking", "1", env=self.env, status=None).stderr)
        self.assertIn("Pay 9000?", self.listed("e-2"))  # nothing was decided
        self.assertEqual(self.s.run("approve", "e-2", "--asking", "2", env=self.env).stdout, "approved: Pay 9000?\n1 of 1 agreed\n")
        shown = on_terminal(("approve", "e-3"), {**self.s.env, **self.env}, b"n\n")
        self.assertIn("Pay 9000? (asked anew)\napprove it? [y/N]", shown)
        self.assertIn("nothing was done\n", shown)
        shown = on_terminal(("approve", "e-3"), {**self.s.env, **self.env}, b"y\n")
        self.assertIn("approved: Pay 9000?\n1 of 1 agreed\n", shown)
        shown = on_terminal(("reject", "e-4", "--comment", "no", "--asking", "2"), {**self.s.env, **self.env})
        self.assertEqual(shown, "rejected: Pay 9000?\n")

    def test_a_link_is_all_that_is_printed(self):
        self.s.run("workflow", "put", self.s.path("expense.yaml", EXPENSE))
        self.env = {"INTACT_TOKEN": self.s.run("token", "create", "leo", "--role", "approve", "--group", "finance").stdout.strip()}
        self.s.run("submit", "expense", "--id", "l-1", "--input", '{"amount": 80}')
        link = self.s.run("approval", "link", "l-1", env=self.env).stdout
        self.assertRegex(link, r"^http://[^/]+/v1/approvals/[A-Za-z0-9_-]+\n$")
        with urllib.request.urlopen(link.strip()) as page:
            self.assertIn("Pay 80?", page.read().decode())
        self.assertRegex(self.s.run("approval", "link", "l-1", "--person", "leo", "--expires-in", "1h").stdout, "^http://")  # an admin
        made = json.loads(self.s.run("approval", "link", "l-1", "allow", "--json", env=self.env).stdout)
        self.assertEqual((made["person"], made["step"], made["asking"]), ("leo", "allow", 1))
        done = self.s.run("approval", "link", "l-1", "--person", "nobody", status=1)
        self.assertIn('"nobody" has no token with the role approve', done.stderr)
        self.assertIn("nothing of task l-2 waits", self.s.run("approval", "link", "l-2", env=self.env, status=1).stderr)
        form = urllib.parse.urlencode({"decision": "approve"}).encode()
        with urllib.request.urlopen(made["url"], form) as page:
            self.assertIn("You approved", page.read().decode())
        self.assertEqual(self.listed("l-1").count("\n"), 1)

    def listed(self, task):
        return self.s.run("approval", "list", "--task", task, env=self.env).stdout


class Liar(BaseHTTPRequestHandler):
    """A server that answers with what a terminal would obey."""

    def do_GET(self):
        text = "\x1b[2J\x1b]0;owned\x07"
        if self.path.startswith("/v1/workflows"):
            body, status = {"workflows": [{"name": "$(touch x)"}, {"name": "a b"}, {"name": "good"}, {"name": "-x"},
                                          {"name": text}]}, 200
        else:
            body, status = {"title": text, "detail": text}, 409
        raw = json.dumps(body, ensure_ascii=False).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(raw)))
        self.end_headers()
        self.wfile.write(raw)

    def log_message(self, *_):
        pass


EVIL = "\x1b[2J\x1b]0;owned\x07\u009b31m\u202e\x7f\n"


class Poet(Liar):
    """A server that answers well, and has such words for all that there is to say."""

    def evil_answer(self):
        item = {key: EVIL for key in (
            "id workflow state name agent action instance node version actor verb task step reason summary text moves kind "
            "direction waiting_for error_code message code failure_count priority boot definition output input outcome "
            "expected found line column complete_by submitted_at ended_at roles by filter sink trouble installation ended_before").split()}
        attempt = item | {"attempt": 1, "error": item, "started_at": "2026-01-31T10:00:00.000Z", "direction": "forward"}
        step = item | {"attempts": [attempt], "error": item, "in_doubt": True, "begun_at": "2026-01-31T10:00:00.000Z"}
        step = step | {"items": {"count": 3, "completed": 1, "at_work": [step]}}
        agent = item | {"instances": [item], "waiting_steps": 1, "connected": True}
        agents_own = {"settings": {"limits": {"actions": {EVIL: {"concurrency": 1, "rate": EVIL}}}, "breaker": item | {"window": EVIL}},
                      "breaker": item | {"until": EVIL}, "refused": {EVIL: 1}, "ids": [EVIL], "counts": [item | {"tasks": 1}]}
        lists = {key: [item | {"roles": [EVIL]}] for key in
                 "tasks nodes workflows tokens entries reasons errors alerts sinks operations messages submissions items".split()}
        stats = {"counters": {}, "now": "2026-01-31T10:00:00.000Z", "trouble": EVIL, "stored": {}, "store_files": {}}
        return json.dumps(item | lists | stats | agents_own | {"steps": [step], "error": item, "agents": [agent], "token": EVIL, "next": None},
                          ensure_ascii=False)

    def do_GET(self):
        length = int(self.headers.get("Content-Length") or 0)
        self.rfile.read(length)
        raw = self.evil_answer().encode()
        stream = "/events" in self.path
        if stream:
            raw = b"id: 1\nevent: task\ndata: " + raw + b"\n\nevent: end\ndata: {}\n\n"
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream" if stream else "application/json")
        self.send_header("Content-Length", str(len(raw)))
        self.end_headers()
        self.wfile.write(raw)

    do_POST = do_PUT = do_DELETE = do_GET


class Head(Liar):
    """A server whose words are in the head of its answers."""

    def do_GET(self):
        status = {"/v1/tasks/a": 401, "/v1/tasks/b": 429, "/v1/tasks/c": 503, "/v1/tasks/d": 307}.get(self.path.split("?")[0], 404)
        bad = "\x1b[2J\x1b]0;owned\x07\x9b31m"
        raw = json.dumps({"type": "about:blank", "status": status, "detail": "no"}).encode()
        self.send_response(status, bad)
        for name in ("Retry-After", "Location", "Warning", "Server", "Intact-Installation", "Intact-Token-Proof", "WWW-Authenticate", "Date"):
            self.send_header(name, "1" + bad)
        self.send_header("Intact-Token-File", f"/nowhere/{bad}/admin-token")
        self.send_header("Content-Type", "application/problem+json")
        self.send_header("Content-Length", str(len(raw)))
        self.end_headers()
        self.wfile.write(raw)

    do_POST = do_GET


class Ahead(Liar):
    """A server whose clock is three hours ahead of ours."""

    def date_time_string(self, timestamp=None):
        return super().date_time_string(time.time() + 3 * 3600)

    def do_GET(self):
        since = time.strftime("%Y-%m-%dT%H:%M:%S.000Z", time.gmtime(time.time() + 3600))
        raw = json.dumps({"summary": "It waits.", "reasons": [{"kind": "x", "since": since, "until": None, "text": "It waits.",
                                                               "moves": "Wait."}]}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(raw)))
        self.end_headers()
        self.wfile.write(raw)


class Distrust(unittest.TestCase):
    def test_no_verb_lets_words_of_a_server_command_the_terminal(self):
        server = ThreadingHTTPServer(("127.0.0.1", 0), Poet)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        env = {"INTACT_SERVER": f"http://127.0.0.1:{server.server_port}", "LC_ALL": "C.UTF-8", "TERM": "xterm"}
        folder = tempfile.mkdtemp(prefix="intact-cli-")
        with open(folder + "/order.yaml", "w", encoding="utf-8") as f:
            f.write(WORKFLOW)
        by_hand = ("--reason", "x")
        for words in (("get", "x"), ("get", "x", "--wait", "1s"), ("list",), ("watch", "x"), ("why", "x"), ("items", "x", "y"), ("top", "--once", "--every", "100ms"),
                      ("agent", "list"), ("node", "list"), ("audit", "list"), ("token", "list"), ("token", "create", "x", "--role", "read"),
                      ("token", "delete", "x"), ("workflow", "list"), ("workflow", "get", "x"), ("submit", "order"),
                      ("submit", "order", "--wait", "1s"), ("retry", "x", *by_hand), ("undo", "x", *by_hand), ("cancel", "x", *by_hand),
                      ("skip", "x", "--step", "s", *by_hand), ("workflow", "put", folder + "/order.yaml"),
                      ("agent", "get", "x"), ("alert", "list"), ("operation", "list"), ("operation", "get", "x"), ("outbox", "list"),
                      ("submission", "list"), ("token", "rotate", "x"), ("retire", "--older-than", "30d", "--dry-run"),
                      ("operation", "start", "retry", "--all", "--dry-run", *by_hand),
                      ("complete", "--", "get", ""), ("complete", "--", "agent", "")):
            for more in ((), ("--json",)) if words[0] != "complete" else ((),):
                shown = on_terminal([*words, *more], env)
                left = re.sub(r"\x1b\[(\?25[hl]|\d*[AJK])|\r", "", SGR.sub("", shown))
                found = CONTROLS.search(left)
                self.assertIsNone(found, (words, more, left[max(found.start() - 40, 0):][:80] if found else ""))
        shutil.rmtree(folder)
        server.shutdown()
        server.server_close()

    def test_no_header_of_a_server_commands_the_terminal(self):
        server = ThreadingHTTPServer(("127.0.0.1", 0), Head)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        env = {"INTACT_SERVER": f"http://127.0.0.1:{server.server_port}", "LC_ALL": "C.UTF-8", "TERM": "xterm"}
        for words in (("get", "a"), ("get", "b"), ("get", "c"), ("get", "d"), ("get", "e"), ("why", "a"), ("watch", "a"),
                      ("cancel", "a", "--reason", "x"), ("node", "list"), ("submit", "order")):
            done = subprocess.run([INTACT, *words], env=env, capture_output=True, check=False, timeout=60)
            said = (done.stdout + done.stderr).decode("utf-8", "replace")
            self.assertNotEqual(done.returncode, 0, words)
            self.assertIsNone(CONTROLS.search(said), (words, said))
            if words == ("get", "a"):
                self.assertIn("admin-token is not used", said)
        server.shutdown()
        server.server_close()

    def test_times_are_told_by_the_clock_of_the_server(self):
        server = ThreadingHTTPServer(("127.0.0.1", 0), Ahead)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        env = dict(os.environ, INTACT_SERVER=f"http://127.0.0.1:{server.server_port}")
        done = subprocess.run([INTACT, "why", "x"], env=env, capture_output=True, text=True, check=True)
        self.assertRegex(done.stdout, r"since .* \((2h 0\dm|1h 59m) ago\)")
        server.shutdown()
        server.server_close()

    def test_a_server_that_lies_cannot_write_to_the_terminal_or_the_command_line(self):
        liar = ThreadingHTTPServer(("127.0.0.1", 0), Liar)
        threading.Thread(target=liar.serve_forever, daemon=True).start()
        env = dict(os.environ, INTACT_SERVER=f"http://127.0.0.1:{liar.server_port}", LC_ALL="C.UTF-8")
        done = subprocess.run([INTACT, "get", "x"], env=env, capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 1)
        self.assertIsNone(CONTROLS.search(done.stdout + done.stderr), done.stderr)
        done = subprocess.run([INTACT, "complete", "--", "workflow", "get", ""], env=env, capture_output=True, text=True,
                              check=False)
        self.assertEqual(done.stdout, "good\n")
        liar.shutdown()
        liar.server_close()


VALUES = {  # for each kind of value, as --help names it: one that is right, and one that is not
    "BOOL": ("true", "perhaps"), "COUNT": ("5", "some"), "COMMAND": ("echo 1", None), "TIME": ("1s", "soon"), "N": ("1", "some"), "DATE": ("2026-01-31T10:00:00Z", "yesterday"),
    "KEY=VALUE": ("a=b", "ab"), "WHEN": ("never", "sometimes"), "LEVEL": ("warn", "loud"), "STATE": ("error", "broken"),
    "CURSOR": ("7", None), "JSON": ('{"sku": "s"}', "{"), "ADDR:PORT": (None, "here"), "NAME=VALUE": ("body=1MiB", "body"), "NAME=NUMBER": ("calls=5", "calls=some"),
    "URL": (None, None), "FILE": (None, None), "TOKEN": (None, None), "DIR": (None, None), "TEXT": ("text", None),
    "ID": ("id-1", None), "NAME": ("order", None), "STEP": ("reserve", None), "ROLE": ("read", None), "TASK": ("o-1", None),
    "MEMBER": ("sku", None), "LIST": ("scheduler", "both"), "RATE": ("10/s", "fast"), "PERCENT": ("50", "half"),
    "ACTION=LIMIT": ("charge=5", "charge"), "SWITCH": ("on", "maybe"),
    "EVENTS": ("all", None), "SOURCE": ("sql", None), "TARGET": ("amqp:x", None), "N/s": ("50/s", "fast"), "AGENT": ("stock", None), "CODE": ("sold_out", None),
    "ID,...": ("o-1", None), "yes|no": ("no", "perhaps"), "VERB": ("retry", None),
    "GROUP": ("finance", None), "MODE": ("auto", "sometimes"),
    "KEY": ("k-1", None), "EFFECT": ("none", "happened"), "ACTION": ("count", None), "SCENARIO": ("completes", "compleats"),
}


def verbs():
    found = []
    for line in told("complete", "--", "").splitlines():
        word = line.split("\t")[0]
        if "\t" in line:
            found.append([word])
            if word == "signal":  # a verb, and the first word of another one
                found.append(["signal", "drop"])
        else:
            found += [[word, b.split("\t")[0]] for b in told("complete", "--", word, "").splitlines()]
    return found


def pipeline(line):
    """The commands of a line, each as its words."""
    commands = [[]]
    for word in shlex.split(line):
        if word == "|":
            commands.append([])
        else:
            commands[-1].append(word)
    return commands


@functools.cache  # a process of each verb is enough
def told(*words):
    return subprocess.run([INTACT, *words], capture_output=True, text=True, check=True).stdout


def help_of(verb):
    return told(*verb, "--help")


class Described(WithServer):
    def test_help_of_every_verb_teaches_by_example_and_fits(self):
        self.assertGreater(len(verbs()), 18)
        for verb in verbs():
            text = help_of(verb)
            self.assertIn("\nexamples:\n", text, verb)
            self.assertLessEqual(max(map(len, text.splitlines())), 100, verb)
            self.assertEqual(told("help", *verb), text)
            self.assertIn(" ".join(verb), told("--help"))

    @EACH
    def test_every_flag_is_accepted_and_a_bad_value_is_refused_by_its_name(self):
        self.s.run("submit", "order", "--input", '{"sku": "s"}', "--id", "o-1")
        arguments = {"TASK": "o-1", "WORKFLOW": "order", "NAME": "order", "FILE": self.s.folder + "/order.yaml",
                     "SHELL": "bash", "VERB": "pause", "ALERT": "x", "ID": "x", "STEP": "reserve"}
        services = self.s.folder + "/services.yaml"
        with open(services, "w", encoding="utf-8") as f:
            f.write("intact_http: 1\nservices: {shop: {url: 'https://shop.example.org'}}\n")
        commands = self.s.path("commands.yaml", "intact_exec: 1\nagents: {a: {actions: {b: {command: [cat]}}}}\n")
        queues = self.s.path("queues.yaml", "intact_server: 1\namqp: {brokers: [{name: b, url: 'amqp://localhost'}]}\n")
        needs = {"skip": ["--step", "reserve", "--reason", "x"], "correct": ["--input", "1", "--reason", "x"],
                 "supply": ["--step", "reserve", "--output", "1", "--reason", "x"],
                 "resolve": ["--step", "reserve", "--effect", "none", "--reason", "x"], "token create": ["--role", "read"],
                 "agent http": ["--config", services, "--check"], "agent exec": ["--config", commands, "--check"],
                 "agent amqp": ["--config", queues, "--check"],
                 "operation start": ["--workflow", "order", "--reason", "x"],
                 "schedule backfill": ["--from", VALUES["DATE"][0], "--to", VALUES["DATE"][0], "--reason", "x"],
                 "agent set": ["--calls", "5"], "signal": [], "reject": ["--comment", "x"], "archive list": ["--folder", self.s.folder],
                 "archive get": ["--folder", self.s.folder], "archive cat": ["--folder", self.s.folder],
                 "agent check": ["true", "--action", "count", "--only", "completes"]}
        of_many = set(re.findall(r"^  (--[a-z-]+)", help_of(["operation", "start"]), re.M))
        of_many -= {"--step", "--from", "--input", "--output", "--effect", "--reason"}
        of_many -= set(re.findall(r"^  (--[a-z-]+)", help_of(["get"]), re.M))
        for verb in verbs():
            if verb[0] in ("serve", "top", "watch", "backup", "restore", "test", "simulate", "eval"):
                continue  # they stay; they have tests of their own
            text = help_of(verb)
            words = [arguments[a] for a in re.findall(r" \[?([A-Z]+)", text.splitlines()[0].split("[FLAG")[0]) if a in arguments]
            words = [] if verb == ["archive", "cat"] else words  # a file of an archive
            more = needs.get(" ".join(verb), ["--reason", "x"] if "--reason" in text else [])
            for flag, value in re.findall(r"^  (?:-\w, )?(--[a-z-]+)(?: (ID,\.\.\.|N/s|yes\|no|[A-Z][A-Z=:]*))?", text, re.M):
                many = "[TASK]" in text.splitlines()[0] and flag in of_many
                if many and verb != ["retry"]:
                    continue  # they are the same
                good, bad = VALUES[value] if value else (None, None)
                if verb == ["retire"]:  # one of two, and not both
                    more = [] if flag in ("--older-than", "--ended-before") else ["--older-than", "365d"]
                    more += ["--workflow", "order"] if flag == "--keep-last" else []
                good = "any" if flag == "--installation" else good
                beside = {"--events": ["--reply-to", "amqp:x"]}.get(flag, [])
                if many:
                    words, beside = [], ["--all"]
                elif verb == ["operation", "start"] and flag == "--all":
                    words, more = ["pause"], ["--reason", "x"]
                elif verb == ["operation", "start"]:
                    words = {"--step": ["skip"], "--output": ["supply", "--step", "reserve"], "--from": ["retry"],
                             "--input": ["correct"], "--effect": ["resolve", "--step", "reserve"]}.get(flag, ["pause"])
                    more = ["--workflow", "order", "--reason", "x"]
                elif flag == "--state" and verb == ["items"]:
                    good = "failed"
                elif flag == "--state" and verb[1:] == ["list"]:
                    good = {"submission": "refused", "outbox": "dead", "alert": "open"}.get(verb[0], good)
                elif verb[0] in ("outbox", "submission") and verb[1] in ("retry", "drop"):
                    which = flag in ("--all", "--target", "--task", "--message")
                    more = ["--reason", "x"] + ([] if which else ["--all"])
                elif verb == ["signal"]:
                    to_many = {"--workflow": ["--workflow", "order"], "--tag": ["--tag", "a=b"], "--cursor": []}
                    words = ["paid"] if flag in to_many else ["o-1", "paid"]
                    beside = sum((m for f, m in to_many.items() if f != flag), []) if flag in to_many else beside
                elif "[TASK]" in text.splitlines()[0]:
                    words = ["o-1"]
                with self.subTest(verb=verb, flag=flag):
                    if bad:
                        done = self.s.run(*verb, *words, *more, *beside, flag, bad, status=None)
                        self.assertEqual(done.returncode, 2, done.stderr)
                        self.assertIn(flag, done.stderr)
                    if good or not value:
                        if flag in ("--id-from", "--rejects", "--run-id", "--from-line", "--retry-for"):
                            beside = ["--file", "/dev/null"]
                        done = self.s.run(*verb, *words, *more, *beside, flag, *([good] if good else []), status=None)
                        self.assertIn(done.returncode, (0, 1), done.stderr)

    def test_bad_values_of_serve_are_refused_by_the_flags_name(self):
        for flag, value in re.findall(r"^  (--[a-z-]+)(?: ([A-Z][A-Z=:]*))?", help_of(["serve"]), re.M):
            bad = VALUES[value][1] if value else None
            if bad and flag != "--key-prefix":
                done = self.s.run("serve", "--data", self.s.folder + "/never", flag, bad, status=2)
                self.assertIn(flag.lstrip("-"), done.stderr)
        self.assertFalse(os.path.exists(self.s.folder + "/never"))

    def test_what_a_database_is_told_wrongly_is_said_once_with_the_word_for_it(self):
        store = ["--store", "host=/nowhere dbname=x"]
        for said, *flags in (
                ("--store", "--store", ""), ("not understood", "--store", "mysql://db1/x"), ("not understood", "--store", "/var/lib/db"),
                ("the schema is", *store, "--schema", ""), ("the schema is", *store, "--schema", 'A"b'),
                ("--node", *store, "--node", ""), ("--node", *store, "--node", "a b"), ("--node", *store, "--node", "n" * 64),
                ("--node", "--node", "n2"), ("--schema", "--schema", "other"), ("--roles", "--roles", "supervisor"),
                ("--roles", *store, "--roles", ""), ("--roles", *store, "--roles", "scheduler,"),
                ("--advertise", "--advertise", "node-1"), ("--advertise", "--advertise", "http://"),
                ("--advertise", "--advertise", "http://node-1:0"), ("--advertise", "--advertise", "http://node-1:7420/"),
                ("--advertise", "--advertise", "http://[::1"), ("--migrate", "--migrate"), ("--adopt", *store, "--adopt"),
                ("--keep", "--keep", "1s"), ("--keep", "--keep", "for ever")):
            with self.subTest(flags=flags):
                done = self.s.run("serve", "--data", self.s.folder + "/home", *flags, status=2)
                self.assertIn(said, done.stderr)
                self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
        # Nothing is wrong with what was said: it may be there tomorrow.
        done = self.s.run("serve", "--data", self.s.folder + "/home", *store, status=1)
        self.assertIn("/nowhere", done.stderr)

    def test_a_store_of_no_name_is_a_folder(self):
        done = self.s.run("serve", "--data", "/dev/null/x", env={"INTACT_STORE": ""}, status=1)
        self.assertIn("/dev/null/x", done.stderr)

    def test_every_flag_is_read_somewhere(self):
        source = "".join(read(f) for f in glob.glob(ROOT + "/src/cli/**/*.c", recursive=True))
        for name in set(re.findall(r'\.name = "([a-z-]+)",\s*\.(?:letter|value|help)', source)):
            self.assertRegex(source, rf'(?<!\.name = )"{name}"', name)

    @EACH
    def test_the_examples_are_command_lines_that_are_understood(self):
        tried = 0
        for verb in verbs():
            text = help_of(verb).split("\nexamples:\n")[1].split("\n\n")[0].replace("\\\n", " ")
            for line in re.findall(r"^  ([^# ].*)$", text, re.M):
                for words in pipeline(line):
                    if words[0] != "intact" or words[1] in ("serve", "top", "watch", "backup", "restore", "test") or ">" in words:
                        continue
                    done = self.s.run(*words[1:], status=None, input="", env={"INTACT_SERVER": "http://127.0.0.1:1"})
                    tried += 1
                    if "No such file" not in done.stderr:
                        self.assertIn(done.returncode, (0, 1, 3), f"{line}: {done.stderr}")
        self.assertGreater(tried, 25)

    def test_agents_of_the_program_say_what_is_wrong_with_their_files(self):
        wrong = self.s.path("wrong.yaml", "places: 0\n")
        for verb in ("http", "exec"):
            self.assertIn("No such file", self.s.run("agent", verb, "--config", "/none.yaml", status=2).stderr)
            said = self.s.run("agent", verb, "--config", wrong, status=1).stderr
            self.assertIn(f"wrong.yaml:1:1: error: intact_{verb}: found nothing", said)
            self.assertIn("--config FILE is missing", self.s.run("agent", verb, status=2).stderr)
            self.assertIn("No such file", self.s.run("agent", verb, "--config", wrong, "--token-file", "/none", status=2).stderr)

    def test_help_says_what_each_exit_status_means(self):
        for verb in verbs():
            text = help_of(verb).split("exit status: ")[1]
            self.assertRegex(text, r"^0, or (1 if |nothing else, 2)", verb)

    def test_what_is_misspelt_is_guessed(self):
        for words, says in ((["sumbit"], 'did you mean "submit"?'), (["workflow", "lsit"], 'did you mean "list"?'),
                            (["list", "--sate", "x"], "did you mean --state?"), (["list", "--color", "nver"], "did you mean never?"),
                            (["completion", "bsah"], "did you mean bash?"), (["help", "reti"], "no verb"),
                            (["tokn", "list"], 'did you mean "token"?')):
            self.assertIn(says, self.s.run(*words, status=2).stderr)


class Written(unittest.TestCase):
    def test_the_page_of_the_documentation_is_the_current_one(self):
        page = subprocess.run([DOCUMENT, "page"], capture_output=True, text=True, check=True).stdout
        self.assertEqual(page, read(ROOT + "/docs/command-line.md"),
                         "make it anew: intact-document page > docs/command-line.md")

    def test_the_manual_pages_are_without_fault(self):
        with tempfile.TemporaryDirectory() as folder:
            subprocess.run([DOCUMENT, "man", folder], check=True)
            pages = glob.glob(folder + "/man1/*.1")
            self.assertEqual(len(pages), len(verbs()) + 1)
            lint = subprocess.run(["mandoc", "-T", "lint", *pages], capture_output=True, text=True, check=False)
            self.assertEqual((lint.returncode, lint.stdout), (0, ""))
            for page in pages:
                shown = subprocess.run(["man", "--warnings", "-l", page], capture_output=True, text=True, check=True,
                                       env=dict(os.environ, LC_ALL="C.UTF-8", MANWIDTH="80"))
                self.assertEqual(shown.stderr, "", page)
                self.assertIn("EXIT STATUS", shown.stdout)


class Completed(WithServer):
    def setUp(self):
        super().setUp()
        self.s.run("submit", "order", "--input", '{"sku": "s"}', "--id", "o:17")
        self.s.run("submit", "order", "--input", '{"sku": "s"}', "--id", "p-1")
        os.mkdir(self.s.folder + "/here")
        os.mkdir(self.s.folder + "/here/folder")
        self.s.path("here/file.json", "{}")
        os.mkdir(self.s.folder + "/bin")
        os.symlink(INTACT, self.s.folder + "/bin/intact")
        self.env = dict(self.s.env, PATH=self.s.folder + "/bin:" + os.environ["PATH"], HOME=self.s.folder)

    def ask(self, shell, line):
        return getattr(self, shell)(line)

    def bash(self, line):
        script = r"""
source <(intact completion bash)
COMP_LINE=$1 COMP_POINT=${#1}
# as readline takes it apart
mapfile -t COMP_WORDS < <(python3 - "$1" <<'PY'
import re, sys
words = []
for w in re.split(r" +", sys.argv[1]):
    words += [p for p in re.split(r"([:=])", w) if p] or [""]
print("\n".join(words))
PY
)
COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
_intact
printf '%s\n' "${COMPREPLY[@]}"
"""
        return self.lines(["bash", "--norc", "-c", script, "bash", line])

    def zsh(self, line):
        script = r"""
autoload -Uz compinit && compinit -u -D
source <(intact completion zsh)
# what would be offered, instead of a menu
compadd() {
    local -a offered
    builtin compadd -O offered "$@"
    print -rl -- $offered >> $OUT
    builtin compadd "$@"
}
bindkey '^I' complete-word
zle -C complete-word complete-word _main_complete
PS1='ready> '
"""
        out = os.path.join(self.s.folder, "zsh-out")
        self.s.path("zsh-out", "")
        self.s.path(".zshrc", script)
        pid, fd = pty.fork()
        if pid == 0:
            os.chdir(self.s.folder + "/here")
            os.execvpe("zsh", ["zsh", "-d", "-i"], dict(self.env, OUT=out, ZDOTDIR=self.s.folder))
        self.until(fd, b"ready> ")
        os.write(fd, line.encode() + b"\t")
        os.write(fd, b"\x15print done-\x01\x05$((40+2))\r")  # the line is thrown away
        self.until(fd, b"done-42")
        os.write(fd, b"exit\r")
        os.close(fd)
        os.waitpid(pid, 0)
        return sorted(set(read(out).split()))

    def until(self, fd, text):
        seen, end = b"", time.monotonic() + PATIENCE_S
        while text not in seen:
            self.assertLess(time.monotonic(), end, seen)
            if select.select([fd], [], [], 1)[0]:
                seen += os.read(fd, 65536)

    def fish(self, line):
        script = "intact completion fish | source; complete -C $argv[1]"
        return sorted({l.split("\t")[0] for l in self.lines(["fish", "-N", "-c", script, line])})

    def lines(self, command):
        done = subprocess.run(command, env=self.env, cwd=self.s.folder + "/here", capture_output=True, text=True,
                              timeout=PATIENCE_S, check=False)
        self.assertEqual(done.stderr, "")
        return sorted(l for l in done.stdout.splitlines() if l)

    def check(self, shell):
        self.assertEqual(self.ask(shell, "intact wor"), ["workflow"])
        self.assertEqual(self.ask(shell, "intact workflow "), ["get", "list", "put"])
        self.assertEqual(self.ask(shell, "intact list --st"), ["--state"])
        self.assertEqual(self.ask(shell, "intact list --color "), ["always", "auto", "never"])
        self.assertEqual(self.ask(shell, "intact list --workflow o"), ["order"])
        self.assertEqual(self.ask(shell, "intact get p"), ["p-1"])
        self.assertEqual(self.ask(shell, "intact completion f"), ["fish"])
        self.assertEqual(self.ask(shell, "intact token delete a"), ["admin"])
        self.assertEqual(self.ask(shell, "intact help token c"), ["create"])
        self.assertIn("file.json", self.ask(shell, "intact validate fi"))
        self.assertIn("folder", [w.rstrip("/") for w in self.ask(shell, "intact serve --data fo")])
        self.assertEqual(self.ask(shell, "intact nonsense "), [])
        self.s.kill()  # nobody to ask is no mistake
        self.assertEqual(self.ask(shell, "intact get p"), [])
        self.s.start()

    def test_bash(self):
        self.check("bash")
        self.assertEqual(self.bash("intact get o:1"), ["17"])  # readline has o: already
        self.assertEqual(self.bash("intact list --color=n"), ["never"])

    def test_zsh(self):
        self.check("zsh")

    def test_fish(self):
        self.check("fish")
        self.assertEqual(self.fish("intact get o:1"), ["o:17"])
        self.assertEqual(self.fish("intact list --color=n"), ["--color=never"])


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[4:]])
