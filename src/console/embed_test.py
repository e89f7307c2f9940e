#!/usr/bin/env python3
"""Does the build embed the console's files as they are, and nothing else (embed)? And without the console, none?

Usage: embed_test.py ROOT CC"""

import gzip
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT, CC = os.path.realpath(sys.argv[1]), sys.argv[2]
SHOW = """
#include <stdio.h>
#include "console/embedded.h"
int main(int argc, char **argv)
{
    for (const struct console_file *f = console_files; f->path; f++) {
        if (argc < 2)
            printf("%s %s %d%d%d\\n", f->path, f->type, f->plain.ptr != NULL, f->gzip.ptr != NULL, f->br.ptr != NULL);
        else if (strcmp(f->path, argv[1]) == 0) {
            struct slice s = argv[2][0] == 'g' ? f->gzip : f->plain;
            fwrite(s.ptr, 1, s.len, stdout);
        }
    }
}
"""
TEXT = b"console.log('the same again');\n" * 100


class Embed(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.home, self.bundle = folder.name, f"{folder.name}/a bundle"
        self.write("index.html", b"<!doctype html>")
        self.write("assets/main-ABCDEFGH.js", TEXT)
        self.write("assets/type-12345678.woff2", bytes(range(256)) * 8)

    def write(self, name, data):
        os.makedirs(os.path.dirname(f"{self.bundle}/{name}"), exist_ok=True)
        with open(f"{self.bundle}/{name}", "wb") as f:
            f.write(data)

    def embed(self, mode="enabled", bundle=None, path=None, root=ROOT):
        """-> (exit status, what it complained of, the text that it wrote)"""
        out = f"{self.home}/out.c"
        done = subprocess.run([sys.executable, f"{ROOT}/src/console/embed", root, mode, self.bundle if bundle is None else bundle, out,
                               f"{self.home}/out.d"], capture_output=True, text=True, check=False,
                              env={**os.environ, **({"PATH": path} if path else {})})
        text = ""
        if done.returncode == 0:
            with open(out, encoding="utf-8") as f:
                text = f.read()
        return done.returncode, done.stderr, text

    def program(self):
        with open(f"{self.home}/show.c", "w", encoding="utf-8") as f:
            f.write(SHOW)
        subprocess.run([CC, f"-I{ROOT}/src", "-D_GNU_SOURCE", "-o", f"{self.home}/show", f"{self.home}/show.c", f"{self.home}/out.c"],
                       check=True)
        return lambda *words: subprocess.run([f"{self.home}/show", *words], capture_output=True, check=True).stdout

    def test_files_are_embedded_as_they_are_and_compressed(self):
        self.assertEqual(self.embed()[0], 0)
        show = self.program()
        lines = show().decode().splitlines()
        self.assertEqual([line.split()[0] for line in lines], ["/assets/main-ABCDEFGH.js", "/assets/type-12345678.woff2", "/index.html"])
        forms = "111" if shutil.which("brotli") else "110"
        self.assertEqual(lines[0], f"/assets/main-ABCDEFGH.js text/javascript; charset=utf-8 {forms}")
        self.assertTrue(lines[1].endswith("font/woff2 100"), "fonts are compressed already: " + lines[1])
        self.assertIn(" 10", lines[2], "gzip saves nothing of so little")
        self.assertEqual(show("/assets/main-ABCDEFGH.js", "plain"), TEXT)
        self.assertEqual(gzip.decompress(show("/assets/main-ABCDEFGH.js", "gzip")), TEXT)
        self.assertEqual(show("/assets/type-12345678.woff2", "plain"), bytes(range(256)) * 8)

    def test_the_same_files_give_the_same_program(self):
        first = self.embed()[2]
        self.assertEqual(self.embed()[2], first)
        self.write("assets/main-ABCDEFGH.js", TEXT + b"\n")
        self.assertNotEqual(self.embed()[2], first)

    def test_nothing_else_is_embedded(self):
        for name in ("assets/main.js", "assets/main-ABCDEFGH.js.map", "secret.txt", "assets/deep/main-ABCDEFGH.js",
                     "assets/main-ABCDEFGH.exe", "assets/ma in-ABCDEFGH.js", "assets/main-ABC\"FGHI.js"):
            self.write(name, b"x")
            status, story, _ = self.embed()
            self.assertNotEqual(status, 0, name)
            self.assertIn("is neither index.html nor", story)
            os.remove(f"{self.bundle}/{name}")
        os.remove(f"{self.bundle}/index.html")
        self.assertIn("there is no index.html", self.embed()[1])

    def test_without_the_console_there_are_none(self):
        status, _, _ = self.embed("disabled", "")
        self.assertEqual(status, 0)
        self.assertEqual(self.program()(), b"")
        self.assertFalse(os.path.exists(f"{self.home}/out.c.left-out"), "it was not wanted")

    def test_without_node_it_is_left_out_or_an_error(self):
        path = f"{self.home}/bin"
        os.makedirs(path)
        for name in ("bash", "env", "dirname", "mkdir", "flock"):
            os.symlink(subprocess.run(["which", name], capture_output=True, text=True, check=True).stdout.strip(), f"{path}/{name}")
        status, story, _ = self.embed("enabled", "", path, self.clone())
        self.assertNotEqual(status, 0)
        self.assertIn("there is no node", story)
        status, story, _ = self.embed("auto", "", path, self.clone())
        self.assertEqual(status, 0, story)
        self.assertIn("there is no node", story)
        self.assertEqual(self.program()(), b"")
        self.assertTrue(os.path.exists(f"{self.home}/out.c.left-out"), "it is not told that it was left out")
        self.embed()
        self.assertFalse(os.path.exists(f"{self.home}/out.c.left-out"), "it is there again")

    def test_only_a_registry_out_of_reach_leaves_it_out(self):
        """npm is one that is made here, and fails as npm does."""
        for log, is_left_out in (("npm error code EAI_AGAIN", True), ("npm ERR! code ETIMEDOUT", True), ("npm error code ECONNREFUSED", True),
                                 ("npm error code E503", True), ("npm error code EINTEGRITY", False), ("npm error code EUSAGE", False),
                                 ("npm error code ENOENT", False), ("npm error code E404", False)):
            status, story, _ = self.embed("auto", "", self.programs(npm=f"echo '{log}' >&2; exit 1"), self.clone())
            self.assertEqual(status == 0, is_left_out, log + story)
            self.assertIn("reaches no registry" if is_left_out else "cannot install what", story)
            self.assertEqual(os.path.exists(f"{self.home}/out.c.left-out"), is_left_out, log)
            shutil.rmtree(f"{self.home}/clone/build")
            if is_left_out:
                os.remove(f"{self.home}/out.c.left-out")

    def test_a_mistake_in_the_console_fails_the_build(self):
        status, story, _ = self.embed("auto", "", self.programs(npm="exit 0", node="echo 'page.tsx: Unexpected end of file'; exit 1"), self.clone())
        self.assertNotEqual(status, 0)
        self.assertIn("Unexpected end of file", story)
        self.assertIn("it cannot be bundled", story)

    def programs(self, **given):
        """A PATH on which these programs are before all others."""
        folder = tempfile.mkdtemp(dir=self.home)
        for name, script in {"node": "exit 0", **given}.items():
            with open(f"{folder}/{name}", "w", encoding="ascii") as f:
                f.write(f"#!/bin/sh\n{script}\n")
            os.chmod(f"{folder}/{name}", 0o755)
        return f"{folder}:{os.environ['PATH']}"

    def clone(self):
        """What tools/console needs of one, so that it writes here."""
        root = f"{self.home}/clone"
        os.makedirs(f"{root}/tools", exist_ok=True)
        for name in ("console", "docs", "tools/console"):
            if not os.path.exists(f"{root}/{name}"):
                if name.startswith("tools/"):
                    with open(f"{ROOT}/{name}", "rb") as f, open(f"{root}/{name}", "wb") as to:
                        to.write(f.read())
                    os.chmod(f"{root}/{name}", 0o755)
                elif name == "console":
                    shutil.copytree(f"{ROOT}/{name}", f"{root}/{name}", ignore=shutil.ignore_patterns("node_modules", "bundle"))
                else:
                    os.symlink(f"{ROOT}/{name}", f"{root}/{name}")
        return root


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]], verbosity=2)
