#!/usr/bin/env python3
"""The command line where there is much to do: submissions from a pipe, verbs for many tasks; with a real server and real terminals.

Usage: cli_many_test.py ROOT INTACT DOCUMENT [TEST...]
"""

import json
import re
import resource
import shlex
import signal
import subprocess
import sys
import unittest

from cli_kit import INTACT, PATIENCE_S, WORKFLOW, Agent, Server, WithServer, lines, on_terminal, read, wait_for


class Bulk(WithServer):
    def test_without_threads_nothing_is_sent_and_that_is_said(self):
        soft, hard = resource.getrlimit(resource.RLIMIT_STACK)
        if hard != resource.RLIM_INFINITY:
            self.skipTest(f"the size of stacks is limited here ({soft}, {hard})")
        done = subprocess.run([INTACT, "submit", "--file", self.s.path("f", lines(3))], env=self.s.env, capture_output=True,
                              text=True, timeout=PATIENCE_S, check=False,
                              preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_STACK, (1 << 50, hard)))
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertIn("intact submit: no thread can be started: ", done.stderr)
        self.assertEqual(self.s.count(), [])

    def test_refused_lines_are_named_and_kept_and_a_repeat_is_harmless(self):
        text = lines(700) + "\n{]\n" + '{"workflow": "order", "id": "x", "input": {}}\n' + lines(700, 700)
        file, rejects = self.s.path("f", text), self.s.folder + "/rejects"
        done = self.s.run("submit", "--file", file, "--rejects", rejects, status=1)
        self.assertEqual(done.stdout, "1400 submitted, 0 existed already, 2 refused\n")
        kept = [json.loads(line) for line in read(rejects).splitlines()]
        self.assertEqual([(k["line"], k["status"], k["text"]) for k in kept],
                         [(702, 400, "{]"), (703, 422, '{"workflow": "order", "id": "x", "input": {}}')])
        self.assertIn("sku", kept[1]["reason"])
        done = self.s.run("submit", "--file", file, status=1)
        self.assertEqual(done.stdout, "0 submitted, 1400 existed already, 2 refused\n")
        self.assertRegex(done.stderr, r"f:702: not JSON: column 2.*\n.*f:703: .*sku")
        self.assertEqual(len(self.s.count()), 1400)

    def test_answers_come_in_the_order_of_the_lines(self):
        done = self.s.run("submit", "--file", self.s.path("f", lines(3000)), "--json")
        answers = [json.loads(line) for line in done.stdout.splitlines()]
        self.assertEqual([(a["line"], a["id"], a["status"]) for a in answers],
                         [(i + 1, f"o-{i}", 201) for i in range(3000)])

    def test_inputs_of_one_workflow_get_ids_of_the_run_or_of_a_member(self):
        file = self.s.path("f", '{"sku": "a"}\n\n{"sku": "b"}\n')
        self.s.run("submit", "order", "--file", file, "--run-id", "r", "--tag", "shop=north", "--priority", "8")
        self.assertEqual(self.s.call("/v1/tasks/r-3")["tags"], {"shop": "north"})
        self.assertEqual(self.s.call("/v1/tasks/r-3")["priority"], 8)
        self.s.run("submit", "order", "--file", file, "--id-from", "sku")
        self.assertEqual(self.s.call("/v1/tasks/b")["input"], {"sku": "b"})
        done = self.s.run("submit", "order", "--file", file, "--id-from", "nix", status=1)
        self.assertIn('f:1: it has no member "nix" that can be its id', done.stderr)
        for _ in range(2):  # without --run-id each run is one of its own
            self.s.run("submit", "order", "--file", file)
        self.assertEqual(len(self.s.count()), 8)

    def test_a_slow_pipe_is_sent_as_it_comes_and_an_interrupted_one_goes_on(self):
        p = subprocess.Popen([INTACT, "submit", "--file", "-", "--run-id", "r"], env=self.s.env, stdin=subprocess.PIPE,
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for i in range(3):
            p.stdin.write('{"workflow": "order", "input": {"sku": "s"}}\n')
            p.stdin.flush()
            wait_for(lambda: len(self.s.count()) == i + 1, "a line that came is submitted")
        p.stdin.write('{"workflow": "order"')  # half a line
        p.stdin.flush()
        p.send_signal(signal.SIGINT)
        p.wait(PATIENCE_S)
        out, err = p.stdout.read(), p.stderr.read()
        p.stdin.close(), p.stdout.close(), p.stderr.close()
        self.assertEqual((p.returncode, out), (1, "3 submitted, 0 existed already, 0 refused\n"))
        self.assertIn("intact submit --file - --from-line 4 --run-id r", err)
        again = '{"workflow": "order", "input": {"sku": "s"}}\n' * 5
        done = self.s.run("submit", "--file", "-", "--run-id", "r", "--from-line", "4", input=again)
        self.assertEqual(done.stdout, "2 submitted, 0 existed already, 0 refused\n")
        self.assertEqual(sorted(self.s.count()), [f"r-{i}" for i in range(1, 6)])

    def test_a_server_that_is_killed_again_and_again_has_each_line_once(self):
        count = 20000
        text = "".join('{"workflow": "order", "input": {"sku": "s"}}\n' for _ in range(count))
        p = subprocess.Popen([INTACT, "submit", "--file", self.s.path("f", text), "--run-id", "r", "--retry-for", "3m"],
                             env=self.s.env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for n in range(3):
            # by then a whole batch was answered: a server that was never reached is not tried again
            wait_for(lambda: len(self.s.count()) > (n + 1) * count / 4 or p.poll() is not None, "some were submitted")
            self.s.kill()
            self.s.start()
        out, err = p.communicate(timeout=PATIENCE_S)
        self.assertEqual(p.returncode, 0, out + err)
        fresh, existing, refused = map(int, re.findall(r"\d+", out))
        self.assertEqual((fresh + existing, refused), (count, 0))
        ids = self.s.count()
        self.assertEqual(len(ids), count)
        self.assertEqual(set(ids), {f"r-{i}" for i in range(1, count + 1)})

    def test_a_server_that_stays_away_is_told_with_how_to_go_on(self):
        p = subprocess.Popen([INTACT, "submit", "--file", "-", "--run-id", "r", "--retry-for", "100ms"], env=self.s.env,
                             stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        p.stdin.write(lines(1))
        p.stdin.flush()
        # In the store it is before the answer has left, and who was not answered does not count it.
        wait_for(lambda: self.s.answered("POST", "/v1/tasks") == 1, "the first is submitted")
        self.s.kill()
        p.stdin.write(lines(1, 1))
        out, err = p.communicate(timeout=PATIENCE_S)
        self.assertEqual((p.returncode, out), (3, "1 submitted, 0 existed already, 0 refused\n"))
        self.assertIn("--from-line 2", err)
        self.assertNotIn("--run-id", err)  # all had ids of their own
        done = self.s.run("submit", "--file", self.s.path("f", lines(2)), status=3)  # not there from the start
        self.assertIn("Is the server running?", done.stderr)
        self.s.start()

    def test_a_hint_at_how_to_go_on_is_the_whole_command(self):
        p = subprocess.Popen([INTACT, "submit", "order", "--file", "-", "--id-from", "sku", "--tag", "to=it's north"],
                             env=self.s.env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        p.stdin.write('{"sku": "a"}\n')
        p.stdin.flush()
        wait_for(lambda: self.s.count() == ["a"], "the first is submitted")
        p.send_signal(signal.SIGINT)
        p.wait(PATIENCE_S)
        command = p.stderr.read().splitlines()[-1].split("the same input: intact ")[1]
        p.stdin.close(), p.stdout.close(), p.stderr.close()
        self.assertNotIn("--run-id", command)
        self.assertIn("--from-line 2", command)
        done = self.s.run(*shlex.split(command), input='{"sku": "a"}\n{"sku": "b"}\n')
        self.assertEqual(done.stdout, "1 submitted, 0 existed already, 0 refused\n")
        self.assertEqual(self.s.call("/v1/tasks/b")["tags"], {"to": "it's north"})

    def test_refused_lines_that_cannot_be_kept_stop_it(self):
        file = self.s.path("f", lines(600) + "nonsense\n" + lines(3000, 600))
        done = self.s.run("submit", "--file", file, "--rejects", "/dev/full", status=2)
        self.assertRegex(done.stderr, r"/dev/full: No space left.*\n.*go on with: intact submit --file \S+ --from-line 501 ")
        self.assertEqual(done.stdout, "500 submitted, 0 existed already, 0 refused\n")
        rejects = self.s.path("rejects", "earlier\n")
        self.s.run("submit", "--file", file, "--rejects", rejects, "--from-line", "501", status=1)
        kept = read(rejects).splitlines()  # those of the first lines stay
        self.assertEqual((len(kept), kept[0], json.loads(kept[1])["line"]), (2, "earlier", 601))
        self.assertEqual(len(self.s.count()), 3600)

    def test_refused_lines_do_not_overwrite_the_file(self):
        file = self.s.path("f", lines(3))
        done = self.s.run("submit", "--file", file, "--rejects", file, status=2)
        self.assertIn("is --file and --rejects at once", done.stderr)
        self.assertEqual(read(file), lines(3))

    def test_the_ends_of_all_are_waited_for(self):
        agent = Agent(self.s)
        text = lines(1200) + '{"workflow": "order", "id": "bad", "input": {"sku": "fail"}}\n'
        done = self.s.run("submit", "--file", self.s.path("f", lines(1200)), "--wait", "3m")
        self.assertEqual(done.stdout.splitlines()[1], "1200 processed, 0 compensated, 0 in error, 0 not ended")
        done = self.s.run("submit", "--file", self.s.path("f", text), "--wait", "3m", status=1)
        self.assertEqual(done.stdout.splitlines()[1], "1200 processed, 1 compensated, 0 in error, 0 not ended")
        self.assertIn("f:1201: the task is compensated", done.stderr)
        agent.close()
        done = self.s.run("submit", "--file", self.s.path("f", lines(1, 5000)), "--wait", "50ms", status=1)
        self.assertEqual(done.stdout.splitlines()[1], "0 processed, 0 compensated, 0 in error, 1 not ended")

    def test_a_line_that_is_sent_again_counts_as_it_was_answered_first(self):
        """A server that ends answers whoever waits: that the tasks were made. Its successor says that they were there."""
        server = Server("--drain", f"{PATIENCE_S}s")
        self.addCleanup(server.close)
        server.run("workflow", "put", server.path("order.yaml", WORKFLOW))
        p = subprocess.Popen([INTACT, "submit", "--file", server.path("f", lines(3)), "--wait", "3m", "--retry-for", "3m"],
                             env=server.env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        wait_for(lambda: len(server.count()) == 3, "they are submitted")
        server.end()
        server.start()
        agent = Agent(server)
        out, err = p.communicate(timeout=PATIENCE_S)
        agent.close()
        self.assertEqual((p.returncode, out), (0, "3 submitted, 0 existed already, 0 refused\n"
                                                  "3 processed, 0 compensated, 0 in error, 0 not ended\n"), err)

    def test_progress_is_drawn_on_a_terminal_and_only_there(self):
        file = self.s.path("f", lines(2000))
        shown = self.s.at_terminal("submit", "--file", file)
        self.assertIn("2000 submitted, 0 existed already, 0 refused\n", shown)
        self.assertEqual(self.s.run("submit", "--file", file).stderr, "")


class Many(WithServer):
    def paused(self):
        return sum(t["paused_at"] is not None for t in json.loads(self.s.run("list", "--limit", "500", "--json").stdout)["tasks"])

    def test_what_concerns_many_is_asked_about_on_a_terminal(self):
        self.s.run("submit", "--file", self.s.path("f", lines(101)))
        pause = ("pause", "--all", "--workflow", "order", "--reason", "stock-taking")
        shown = on_terminal(pause, self.s.env, b"n\n")
        self.assertIn("pause 101 tasks? [y/N]", shown)
        self.assertIn("nothing was done\n", shown)
        self.assertEqual(self.paused(), 0)
        shown = on_terminal((*pause, "--limit", "100"), self.s.env)
        self.assertNotIn("[y/N]", shown)
        self.assertRegex(shown, r"done +100\n")
        self.assertEqual(self.paused(), 100)
        resume = ("resume", "--all", "--reason", "done")
        self.assertRegex(self.s.run(*resume, "--dry-run").stdout, r"possible +100\nrefused +1: the task is already in that state\n")
        shown = on_terminal((*resume, "--yes"), self.s.env)
        self.assertNotIn("[y/N]", shown)
        self.assertRegex(shown, r"done +100\nrefused +1: the task is already in that state\n")
        shown = on_terminal(pause, self.s.env, b"y\n")
        self.assertRegex(shown, r"done +101\n")
        self.assertEqual(self.paused(), 101)

    def test_verbs_of_one_task_are_done_to_many_by_filters(self):
        self.s.run("submit", "--file", self.s.path("f", lines(5)))
        for words, says in ((("pause", "o-1", "--all"), "--all is for many tasks"), (("pause",), "a TASK is required"),
                            (("pause", "o-1", "--limit", "3"), "--limit is for many tasks"),
                            (("pause", "--workflow", "order"), "a TASK is required"), (("supply", "--all"), "--step STEP is required"),
                            (("resolve", "--all"), "--step STEP is required"), (("resolve", "--all", "--step", "a"), "--effect none"),
                            (("resolve", "o-1", "--step", "a", "--effect", "happened"), "there is intact supply"),
                            (("operation", "start", "resolve", "--step", "a", "--effect", "no"), "--effect none"),
                            (("pause", "--all", "--rate", "1/m"), "--rate is")):
            self.assertIn(says, self.s.run(*words, "--reason", "x", status=2).stderr)
        self.assertIn("--reason TEXT is required", self.s.run("pause", "--all", status=2).stderr)
        dry = self.s.run("pause", "--all", "--reason", "x", "--dry-run").stdout
        self.assertRegex(dry, "^pause would concern 5 tasks\npossible  5\nnewest    ")
        self.assertEqual(self.paused(), 0)
        self.assertIn("done      5\n", self.s.run("pause", "--all", "--reason", "x").stdout)
        done = self.s.run("pause", "--all", "--reason", "x", "--state", "pending", status=1).stdout
        self.assertIn("refused   5: the task is already in that state\n", done)
        done = self.s.run("skip", "--all", "--step", "\u00e9" * 300, "--reason", "x", status=1).stdout
        self.assertIn('refused   5: the task has no step "' + "\u00e9" * 40 + '"\n', done)
        dry = self.s.run("skip", "--all", "--step", "\u00e9" * 300, "--reason", "x", "--dry-run").stdout
        self.assertIn('refused   5: the task has no step "' + "\u00e9" * 40 + '"\n', dry)
        self.assertEqual(self.s.run("operation", "list", "--json").stdout.count('"state":"done"'), 3)

    def test_a_signal_is_sent_to_many_by_filters(self):
        waits = "intact: 1\nworkflow: waits\nsteps:\n  - {name: a, signal: {name: go}}\n  - {name: b, signal: {name: go}}\n"
        self.s.run("workflow", "put", self.s.path("waits.yaml", waits))
        for i in range(3):
            self.s.run("submit", "waits", "--id", f"w-{i}")
        self.s.run("submit", "--file", self.s.path("f", lines(2)))
        send = ("operation", "start", "signal", "--all", "--name", "go", "--reason", "x")
        self.assertIn("--data is not JSON", self.s.run(*send, "--data", "{", status=2).stderr)
        self.assertIn("signal needs arguments.name",
                      self.s.run("operation", "start", "signal", "--all", "--reason", "x", status=None).stderr)
        self.assertRegex(self.s.run(*send, "--dry-run").stdout, "possible  3\nrefused   2: no step waits for that signal\n")
        self.assertRegex(self.s.run(*send, "--data", '{"n": 1}', status=1).stdout, "done      3\nrefused   2: no step waits for that signal\n")
        self.assertEqual(json.loads(self.s.run("get", "w-1", "--json").stdout)["steps"][0]["output"]["data"], {"n": 1})


class Small(WithServer):
    flags = ("--limit", "body=4KiB")

    def test_a_server_with_small_limits_gets_smaller_calls(self):
        text = lines(300) + json.dumps({"workflow": "order", "id": "long", "input": {"sku": "x" * 9000}}) + "\n"
        done = self.s.run("submit", "--file", self.s.path("f", text), status=1)
        self.assertEqual(done.stdout, "300 submitted, 0 existed already, 1 refused\n")
        self.assertRegex(done.stderr, r"f:301: .*\(status 413\)")


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[4:]])
