#!/usr/bin/env python3
"""`intact eval`: values, mistakes with their places, limits, contexts from files, flags and real tasks, and a terminal.

Usage: eval_test.py ROOT INTACT DOCUMENT [TEST...]"""

import json
import os
import subprocess
import sys
import tempfile
import unittest

from cli_kit import INTACT, PATIENCE_S, Agent, Server, on_terminal

# All that an expression sees, as the server saw it: in the output of a task, and in its last step on the way back.
SEEN = '{input: "${ .input }", steps: "${ .steps }", task: "${ .task }"}'
SEES = f"""intact: 1
workflow: sees
steps:
  - {{name: first, agent: stock, action: do, input: {{n: "${{ .input.n }}"}}, undo: {{action: un}}}}
  - {{name: may, agent: stock, action: do, input: {{sku: fail}}, retry: {{attempts: 1}}, on_failure: continue, undo: none}}
  - {{name: not, agent: stock, action: do, if: .input.n > 100, undo: none}}
  - {{name: each, for_each: "${{ .input.list }}", max_items: 10, agent: stock, action: do, input: {{sku: "${{ .item }}"}},
     retry: {{attempts: 1}}, on_item_failure: continue, undo: none}}
  - {{name: last, agent: stock, action: do, input: {{sku: "${{ .input.end }}"}}, retry: {{attempts: 1}}, undo: none}}
on_undo:
  - {{name: tell, agent: stock, action: do, input: {SEEN.replace("input:", "given:", 1)}, undo: none, on_failure: continue, retry: {{attempts: 1}}}}
output: {SEEN}
"""


class Case(unittest.TestCase):
    maxDiff = None

    def setUp(self):
        self.folder = tempfile.TemporaryDirectory(prefix="intact-eval-")

    def tearDown(self):
        self.folder.cleanup()

    def write(self, name, text):
        path = os.path.join(self.folder.name, name)
        with open(path, "wb" if isinstance(text, bytes) else "w") as f:
            f.write(text)
        return path

    @staticmethod
    def run_it(*words, status=0, stdin=b"", env=None):
        done = subprocess.run([INTACT, "eval", *words], input=stdin, capture_output=True, timeout=PATIENCE_S, check=False,
                              env={**os.environ, "LC_ALL": "C.UTF-8", **(env or {})})
        done.stdout, done.stderr = done.stdout.decode(), done.stderr.decode()
        if done.returncode != status:
            raise AssertionError(f"{words}: {done.returncode}, expected {status}: {done.stdout}{done.stderr}")
        return done

    def gives(self, text, *words, stdin=b""):
        done = self.run_it(text, *words, stdin=stdin)
        self.assertEqual(done.stderr, "")
        return done.stdout

    def is_wrong(self, text, *lines, words=()):
        """The lines of the mistake, the caret among them."""
        done = self.run_it(text, *words, status=1)
        self.assertEqual(done.stdout, "")
        self.assertEqual(done.stderr.split("\n")[:-1], list(lines))


class Values(Case):
    def test_expressions(self):
        self.assertEqual(self.gives("[range(3) | . * 2]"), "[0,2,4]\n")
        self.assertEqual(self.gives('"a\\(1 + 1)"'), '"a2"\n')
        self.assertEqual(self.gives('"a\\(1 + 1)"', "--raw"), "a2\n")
        self.assertEqual(self.gives("[1]", "--raw"), "[1]\n")
        self.assertEqual(self.gives("."), "{}\n")
        self.assertEqual(self.gives(".steps.charge.output"), "null\n")
        self.assertEqual(self.run_it(stdin=b".input\n  | type\n").stdout, '"null"\n')

    def test_values_of_definitions(self):
        words = ("--set", "input={sku: a-1, n: 2}")
        self.assertEqual(self.gives("${ .input.n }", *words), "2\n")
        self.assertEqual(self.gives("Order ${ .input.sku } x${ .input.n }", *words), '"Order a-1 x2"\n')
        self.assertEqual(self.gives('{a: "${ .input.n + 1 }", b: [5, "$${x}"]}', *words), '{"a":3,"b":[5,"${x}"]}\n')
        self.assertEqual(self.gives('"${ .input }"', *words), '{"sku":"a-1","n":2}\n')
        self.assertEqual(self.run_it(*words, stdin=b"a:\n  b: ${ .input.n }\nc: x\n").stdout, '{"a":{"b":2},"c":"x"}\n')

    def test_values_stay_exact(self):
        self.assertEqual(self.gives(".input", "--set", "input=123456789012345678901234567890.10"), "123456789012345678901234567890.10\n")
        self.assertEqual(self.gives(".input", "--set", 'input={ "a" :  [ 1.0 ] }'), '{"a":[1.0]}\n')


class Mistakes(Case):
    def test_the_place_of_a_mistake(self):
        self.is_wrong(".input.total +", "intact eval: column 15: the expression ends, expected an expression",
                      "  .input.total +", "                ^")
        self.is_wrong(".a | foo", "intact eval: column 6: " + self.run_it(".a | foo", status=1).stderr.split(": ", 2)[2].split("\n")[0],
                      "  .a | foo", "       ^")
        self.is_wrong('"é" + .input.x.y', 'intact eval: column 16: cannot index number with "y"', '  "é" + .input.x.y',
                      "                ^", words=("--set", "input={x: 5}"))

    def test_the_line_of_a_mistake(self):
        done = self.run_it(status=1, stdin=b".input\n | .a\n | .b +\n")
        self.assertEqual(done.stderr.split("\n")[0].split(": ")[1], "line 3, column 8")
        self.assertEqual(done.stderr.split("\n")[1:], ["   | .b +", "         ^", ""])

    def test_the_place_in_a_value(self):
        self.is_wrong("Order ${ .input.sku | foo }", "intact eval: column 23: " + self.message("foo"),
                      "  Order ${ .input.sku | foo }", "                        ^")
        self.is_wrong('{a: "${ .input }", b: "${ .input.x }"}', 'intact eval: column 33: .b: cannot index number with "x"',
                      '  {a: "${ .input }", b: "${ .input.x }"}', "                                  ^", words=("--set", "input=5"))
        self.is_wrong('{a: "${ .input }"', *self.run_it('{a: "${ .input }"', status=1).stderr.split("\n")[:-1])
        self.assertIn("column ", self.run_it('{a: "${ .input }"', status=1).stderr)

    def message(self, name):
        return self.run_it(f".a | {name}", status=1).stderr.split(": ", 2)[2].split("\n")[0]

    def test_long_lines_are_shown_in_part(self):
        text = "[" + ", ".join(["1"] * 300) + ", foo" + ", 1" * 200 + "]"
        done = self.run_it(text, status=1)
        shown, caret = done.stderr.split("\n")[1:3]
        self.assertLess(len(shown), 200)
        self.assertEqual(shown[caret.index("^"):][:3], "foo")

    def test_failures_without_a_place(self):
        self.is_wrong("empty", "intact eval: yields no value; // null would be one")
        self.is_wrong("1, 2", "intact eval: yields several values; [...] makes an array of them")
        self.is_wrong(" ", "intact eval: there is no expression")

    def test_limits(self):
        self.assertIn("the expression takes more than 100000 steps",
                      self.run_it("[range(0; 1000000000) | select(. < 0)] | length", status=1).stderr)
        self.assertIn("the expression makes more than 4194304 bytes", self.run_it("[range(2000)] | map(\"x\" * 9000) | length", status=1).stderr)
        many = " ".join(["${ [range(9000) | select(. < 0)] | length }"] * 100)
        self.assertIn("all expressions here together take more than 200000 steps", self.run_it(many, status=1).stderr)
        self.assertIn("nested", self.run_it("(" * 200 + "1" + ")" * 200, status=1).stderr)

    def test_bytes_that_are_no_text(self):
        self.assertIn("column 5: found bytes that are not UTF-8", self.run_it(status=1, stdin=b'"abc\xff"').stderr)
        self.assertIn("column 3: found a NUL character", self.run_it(status=1, stdin=b'"a\0b"').stderr)
        self.assertIn("column 2: found a NUL character", self.run_it(status=1, stdin=b'1\0').stderr)
        self.assertNotIn("\x1b", self.run_it("\x1b[31m", status=1).stderr)

    def test_json(self):
        self.assertEqual(json.loads(self.run_it("1 + 1", "--json").stdout), {"value": 2})
        self.assertEqual(json.loads(self.run_it(".a.b", "--json", "--set", "a=5", status=1).stdout),
                         {"error": {"message": 'cannot index number with "b"', "line": 1, "column": 3}})

    def test_the_command_line(self):
        self.assertIn("expected NAME=VALUE", self.run_it(".", "--set", "a", status=2).stderr)
        self.assertIn("--set a:1:2: error", self.run_it(".", "--set", "a=[", status=2).stderr)
        self.assertIn("--step is a step of --task", self.run_it(".", "--step", "a", status=2).stderr)
        self.assertIn("standard input can be only one", self.run_it("--input", "-", status=2).stderr)
        self.assertIn("No such file", self.run_it(".", "--input", "/none", status=2).stderr)


class Contexts(Case):
    def test_files(self):
        context = self.write("c.yaml", "input: {n: 5}\nsteps: {a: {output: 7}}\n")
        self.assertEqual(self.gives(".input.n + .steps.a.output", "--context", context), "12\n")
        self.assertEqual(self.gives(".", "--context", context, "--input", "-", "--set", "item=x", "--set", "item=[y]", stdin=b"6"),
                         '{"steps":{"a":{"output":7}},"input":6,"item":["y"]}\n')
        self.assertEqual(self.gives(".[1]", "--context", self.write("c.json", "[1, 2]")), "2\n")
        done = self.run_it(".", "--context", self.write("c.json", "[1, 2]"), "--set", "a=1", status=2)
        self.assertIn("--context is an array, expected an object", done.stderr)
        self.assertIn("bad.yaml:2:1: error: ", self.run_it(".", "--input", self.write("bad.yaml", "a: 1\na: 2\n"), status=2).stderr)

    def test_a_deep_context(self):
        deep = "[" * 47 + "]" * 47
        self.assertEqual(self.gives("[.input]|length", "--set", "input=" + deep), "1\n")
        self.assertIn("error", self.run_it(".", "--set", "input=" + "[" * 500 + "]" * 500, status=2).stderr)

    def test_a_terminal(self):
        context = self.write("c.yaml", "input: {n: 5}\n")
        out = on_terminal(("eval", "--context", context), {**os.environ, "LC_ALL": "C.UTF-8"},
                          b".input.n * 2\n.input.n +\n\n$\x1b\nn ${ .input.n }\n\x04")
        self.assertIn("the context has .input; end with Ctrl-D", out)
        self.assertIn("\n> 10\n", out)
        self.assertRegex(out, r"\n> column 11: [^\n]*\n  \.input\.n \+\n            \^\n")
        self.assertTrue(out.endswith('\n> "n 5"\n> \n'), out)


class Tasks(Case):
    def setUp(self):
        super().setUp()
        self.s = Server()
        self.agent = Agent(self.s)
        self.s.run("workflow", "put", self.s.path("sees.yaml", SEES))

    def tearDown(self):
        self.agent.close()
        self.s.close()
        super().tearDown()

    def seen(self, task, *words, text="."):
        return json.loads(self.s.run("eval", text, "--task", task, *words).stdout)

    def submit(self, task, end, state):
        self.s.run("submit", "sees", "--id", task, "--input", json.dumps({"n": 5, "list": ["x", "fail", "z"], "end": end}), "--wait", "200s",
                   status=0 if state == "processed" else 1)
        record = self.s.call("/v1/tasks/" + task)
        self.assertEqual(record["state"], state)
        return record

    def test_what_the_output_saw(self):
        record = self.submit("p-1", "well", "processed")
        self.assertEqual(self.seen("p-1"), record["output"])
        self.assertEqual(record["output"]["steps"]["each"]["failed"], 1)
        self.assertEqual(record["output"]["task"]["error"]["code"], "sold_out")

    def test_what_the_way_back_saw(self):
        record = self.submit("c-1", "fail", "compensated")
        saw = record["steps"][-1]["input"]
        seen = self.seen("c-1")
        for steps in (seen["steps"], saw["steps"]):
            del steps["tell"]
        self.assertEqual((seen["input"], seen["steps"], seen["task"]), (saw["given"], saw["steps"], saw["task"]))
        self.assertEqual(saw["task"]["error"]["step"], "last")

    def test_more_than_the_task(self):
        self.submit("p-2", "well", "processed")
        self.assertEqual(self.seen("p-2", "--set", "input=9", text=".input + (.steps.first.output.id)"), 16)
        self.assertEqual(self.seen("p-2", "--step", "first", text=".output"), {"id": 7})
        self.assertIn('the task has no step "second"', self.s.run("eval", ".", "--task", "p-2", "--step", "second", status=2).stderr)
        self.assertIn("intact eval: ", self.s.run("eval", ".", "--task", "none", status=1).stderr)
        self.agent.close()
        self.s.kill()
        self.s.run("eval", ".", "--task", "p-2", status=3)
        self.s.start()


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0]] + sys.argv[4:])
