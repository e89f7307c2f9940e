#!/usr/bin/env python3
"""`intact console` against a real server, with a browser that is a script: it opens, or prints, an address that signs in once.

Usage: console_cli_test.py ROOT INTACT DOCUMENT
"""

import json
import os
import sys
import time
import unittest
import urllib.error
import urllib.request

from cli_kit import PATIENCE_S, Server, read


def sign_in(server, code):
    """-> (status, answer)"""
    request = urllib.request.Request(server.url + "/v1/session", json.dumps({"code": code}).encode(), {"Content-Type": "application/json"})
    try:
        with urllib.request.urlopen(request) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as e:
        with e:
            return e.code, json.load(e)


class Console(unittest.TestCase):
    def setUp(self):
        self.s = Server()
        self.addCleanup(self.s.close)
        self.opened = f"{self.s.folder}/opened"
        self.none = {"DISPLAY": "", "WAYLAND_DISPLAY": "", "BROWSER": ""}

    def browser(self, script):
        """A machine with a display, and with this xdg-open."""
        folder = f"{self.s.folder}/bin"
        os.makedirs(folder, exist_ok=True)
        with open(f"{folder}/xdg-open", "w", encoding="utf-8") as f:
            f.write(f"#!/bin/sh\n{script}\n")
        os.chmod(f"{folder}/xdg-open", 0o755)
        return {"PATH": f"{folder}:{os.environ['PATH']}", "DISPLAY": ":7"}

    def code_in(self, url):
        self.assertTrue(url.startswith(self.s.url + "/signin#code="), url)
        return url.split("=", 1)[1]

    def test_it_opens_the_browser_signed_in(self):
        env = self.browser(f"echo \"$@\" > {self.opened}.new && mv {self.opened}.new {self.opened}")
        done = self.s.run("console", env=env)
        self.assertEqual((done.stdout, done.stderr), ("The console is open in the browser.\n", ""))
        code = self.code_in(read(self.opened).strip())
        status, answer = sign_in(self.s, code)
        self.assertEqual((status, answer["name"], answer["roles"]), (201, "admin", ["admin"]))
        self.assertEqual(sign_in(self.s, code)[0], 401)
        self.assertNotIn(code, read(self.s.folder + "/log"))

    def test_a_browser_that_stays_is_not_waited_for(self):
        env = self.browser(f"echo $$ > {self.opened}; sleep {PATIENCE_S}")
        done = self.s.run("console", env=env)
        self.assertEqual(done.stdout, "The console is open in the browser.\n")
        while not os.path.exists(self.opened) or not read(self.opened).strip():
            time.sleep(0.01)
        os.killpg(int(read(self.opened)), 9)

    def test_without_a_browser_it_prints_the_address(self):
        for env in self.none, self.browser("exit 3"), {"PATH": "/nowhere", "DISPLAY": ":7"}:
            done = self.s.run("console", env=env)
            self.assertIn("within a minute; it works once", done.stderr)
            self.assertEqual(sign_in(self.s, self.code_in(done.stdout.strip()))[0], 201)
        env = self.browser(f"touch {self.opened}")
        done = self.s.run("console", "--print", env=env)
        self.assertEqual(sign_in(self.s, self.code_in(done.stdout.strip()))[0], 201)
        answer = json.loads(self.s.run("console", "--json", env=env).stdout)
        self.assertEqual(sorted(answer), ["expires_at", "url"])
        self.assertEqual(sign_in(self.s, self.code_in(answer["url"]))[0], 201)
        self.assertFalse(os.path.exists(self.opened), "a browser was opened")

    def test_who_gets_no_code_is_told(self):
        worker = self.s.run("token", "create", "worker", "--role", "agent:a").stdout.strip()
        done = self.s.run("console", env={**self.none, "INTACT_TOKEN": worker}, status=1)
        self.assertIn("is an agent's, and cannot sign in", done.stderr)
        off = Server("--no-console")
        self.addCleanup(off.close)
        self.assertIn("this server has no console", off.run("console", env=self.none, status=1).stderr)

    def test_an_open_server_needs_no_code(self):
        self.s.kill()
        self.s.flags = ("--open",)
        self.s.start()
        done = self.s.run("console", env=self.none)
        self.assertEqual((done.stdout, done.stderr), (self.s.url + "/\n", ""))


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[4:]], verbosity=2)
