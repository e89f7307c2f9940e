#!/usr/bin/env python3
"""Does what documents show: README.md and all docs/*.md, the blocks that begin with ```console.

    $ a command         run by one bash for all of a document, from top to bottom. A line that ends with a
    its output          backslash goes on in the next one; lines that begin with `> ` belong to the command
                        before them; a here-document goes on to its last line. The command has to end with status 0.
    $ another &         runs on beside the others; what it writes is not looked at. After `intact serve`
                        the server is waited for; not so in the documents of PASTED, which newcomers paste a block at
                        a time: these have to show how to wait.

The output has to be as shown, where `...` in a line stands for any text, also none, and a line that is nothing but `...` for
any number of lines; how many spaces there are in a row does not matter. Where no output is shown, none is compared.

Each document has a fresh folder that looks like a clone of the project (build/release/src, include, examples,
docs), in which its commands run; /tmp/, port 7420 and the port 8000 of a service become a folder and ports of its own. `intact` is found, as
if the program were installed, and INTACT_SERVER is set; `cc` compiles for the build that is tested. A document that
shows no `intact serve` finds a server running, with its data in ./intact-data. `./run build` does nothing: there is a build.
One that shows `psql` has a PostgreSQL database of its own, which psql finds by itself.

A command that is shown in another way is a mistake, but for those of ./run, and after <!-- not run: REASON -->.

<!-- file: greeter.c --> on the line before a block of any language: what the block shows is written into that file of the
folder, when its turn comes. pkg-config finds the library as it is installed, and `cc` compiles for it; `tsc` is the compiler that lib/typescript pins.

<!-- pending --> on the line before a block: the block is not run, and is listed at the end. With a file, as in
<!-- pending: tests/docs/meanwhile/x.sh -->, the commands of the file are run in its place.

Usage: docs_test.py ROOT INTACT [--all] [DOCUMENT...]      --all: pending blocks are run like the others
SHARD=1/2 in the environment: of all documents but the longest only the first half, every second one. SHARD=long: the
longest.
"""

import ctypes
import glob
import json
import os
import re
import shutil
import signal
import ssl
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request

sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), ".."))

from ports import free_port  # noqa: E402 pylint: disable=wrong-import-position

os.environ["no_proxy"] = "*"  # of who runs the tests
INSTALLED = {}
PATIENCE_S = 240  # only a failing test waits so long
PASTED = "README.md", "docs/tutorial.md"
LONG = ["docs/simulating.md", "docs/typescript.md"]  # a minute of processor time each
ROOT, INTACT = (os.path.realpath(p) for p in sys.argv[1:3])
BUILD = os.path.normpath(f"{INTACT}/../../..")


class Mistake(Exception):
    pass


class Listing:
    """A block that is written into a file."""

    def __init__(self, line, name, heading):
        self.line, self.name, self.text, self.pending, self.commands = line, name, "", None, []
        self.heading = heading

    def add(self, number, text):
        self.text += text + "\n"

    @staticmethod
    def is_whole():
        return True


class Block:
    """A console block: its place, and commands with the output that is shown for each."""

    def __init__(self, line, pending, heading):
        self.line, self.pending, self.heading, self.commands = line, pending, heading, []

    def add(self, number, text):
        if not self.is_whole():
            self.commands[-1][1] += "\n" + text
        elif text.startswith("$ "):
            self.commands.append([number, text[2:], []])
        elif text.startswith("> ") and self.commands and not self.commands[-1][2]:
            self.commands[-1][1] += "\n" + text[2:]
        elif self.commands:
            self.commands[-1][2].append(text.rstrip())
        else:
            raise Mistake(f"line {number}: a console block begins with a command: $ ...")

    def is_whole(self):
        if not self.commands:
            return True
        command = self.commands[-1][1]
        here = re.search(r"<<-?\s*['\"]?(\w+)['\"]?", command)
        if here and here[1] not in command.split("\n")[1:]:
            return False
        return not command.endswith("\\") or bool(here)


def shown_otherwise(path):
    """Commands that a reader would type, and this test would not."""
    with open(path, encoding="utf-8") as f:
        lines = f.read().split("\n")
    fence = None
    for number, text in enumerate(lines, 1):
        if text.startswith("```"):
            if not fence and re.match("```(sh|bash|shell)", text) and not re.fullmatch("<!-- not run: .+ -->", lines[number - 2]):
                raise Mistake(f"line {number}: commands belong into a block ```console, or after <!-- not run: REASON -->")
            fence = None if fence else text
        elif not fence and re.match(r" {4,}(intact|curl|sudo|sqlite3|examples/|tools/|kill|python3)\b", text):
            raise Mistake(f"line {number}: commands belong into a block ```console")


def read_blocks(path):
    blocks, block, before, heading = [], None, "", ""
    with open(path, encoding="utf-8") as f:
        for number, text in enumerate(f.read().split("\n"), 1):
            if block and text.startswith("```"):
                if not block.is_whole():
                    raise Mistake(f"line {number}: the command does not end")
                blocks.append(block)
                block = None
            elif block:
                block.add(number, text)
            elif text == "```console":
                pending = re.fullmatch(r"<!-- pending(?:: (\S+))? -->", before)
                block = Block(number, pending and (pending[1] or ""), heading)
            elif text.startswith("```") and re.fullmatch(r"<!-- file: [\w.-]+ -->", before):
                block = Listing(number, before.split()[2], heading)
            elif re.match("#+ ", text):
                heading = text.lstrip("# ")
            elif text.startswith("<!-- pending") and not re.fullmatch(r"<!-- pending(: \S+)? -->", text):
                raise Mistake(f"line {number}: expected <!-- pending --> or <!-- pending: FILE -->")
            before = text
    return blocks


def expect(shown, got, place):
    """Compares output with what is shown for it."""
    pattern = ""
    for line in shown:
        if line == "...":
            pattern += r"(?:[^\n]*\n)*"
        else:
            words = (re.escape(part) for part in re.sub(" +", " ", line).split("..."))
            pattern += r"[^\n]*".join(words) + r"\n"
    text = "".join(re.sub(" +", " ", line.rstrip()) + "\n" for line in got.rstrip("\n").split("\n"))
    if not re.fullmatch(pattern, text):
        raise Mistake(f"{place}: shown is\n" + "\n".join(shown) + "\n--- but there was\n" + got)


class Place:
    """Where a document runs: a folder, a port, and a bash that keeps its variables."""

    def __init__(self, starts_server, has_listings=False, waits=True, has_database=False):
        self.waits = waits
        self.database = None
        self.work = tempfile.mkdtemp(prefix="intact-docs.")
        os.mkdir(f"{self.work}/tmp")
        hidden = ("INTACT_SERVER", "INTACT_TOKEN", "INTACT_CA", "INTACT_INSTALLATION", "http_proxy", "HTTP_PROXY", "NOTIFY_SOCKET",
                  "WATCHDOG_USEC")
        self.environment = {k: v for k, v in os.environ.items() if k not in hidden}
        self.environment.update(TMPDIR=f"{self.work}/tmp", LC_ALL="C.UTF-8")
        self.prepare()
        if has_listings:
            self.environment.update(installed())
        if has_database:
            self.start_database()
        self.bash = subprocess.Popen(["bash"], cwd=f"{self.work}/clone", env=self.environment, stdin=subprocess.PIPE,
                                     stdout=subprocess.PIPE, text=True, start_new_session=True)
        self.count = 0
        if not starts_server:
            self.run("intact serve &")

    def prepare(self):
        """What looks like a clone with a build, and its programs on the PATH."""
        self.port = free_port()
        self.service_port = free_port()
        clone = f"{self.work}/clone"
        programs = f"{clone}/build/release/src/cli"
        os.makedirs(programs)
        for name in ("examples", "include", "docs", "README.md"):
            os.symlink(f"{ROOT}/{name}", f"{clone}/{name}")
        os.symlink(f"{BUILD}/src/libintact", f"{clone}/build/release/src/libintact")
        # A copy, since what is run from it would leave traces; what is compiled is that of the project.
        shutil.copytree(f"{ROOT}/lib", f"{clone}/lib", ignore=shutil.ignore_patterns("__pycache__"))
        os.makedirs(f"{ROOT}/build/typescript", exist_ok=True)
        os.symlink(f"{ROOT}/build/typescript", f"{clone}/build/typescript")
        compiler_home = f"{ROOT}/build/typescript/node_modules"
        self.script(f"{programs}/tsc", f'exec {compiler_home}/.bin/tsc --types node --typeRoots {compiler_home}/@types "$@"')
        self.script(f"{programs}/cc", f'PATH=${{PATH#*:}} exec {compiler()} "$@"')
        self.script(f"{clone}/run", "exit 0")
        # Without --listen it takes the port that is ours.
        self.script(f"{programs}/intact", f'''
            listen=" --listen 127.0.0.1:{self.port}"
            [[ "$*" != *--listen* ]] || listen=
            [ "$1" != serve ] || set -- "$@" $listen --log error
            exec {INTACT} "$@"''')
        self.environment.update(PATH=f"{programs}:{self.environment['PATH']}",
                                INTACT_SERVER=f"http://127.0.0.1:{self.port}")

    def start_database(self):
        """As tests/postgres/server.h says: it ends by SIGQUIT, also if we are killed."""
        programs = sorted(glob.glob("/usr/lib/postgresql/*/bin"))[-1]
        place = tempfile.mkdtemp(prefix="intact-docs-pg.", dir="/tmp")  # a socket's path is short
        user = "postgres" if os.getuid() == 0 else None
        if user:
            shutil.chown(place, user)
        options = {"user": user, "cwd": place, "stdout": subprocess.DEVNULL, "extra_groups": [] if user else None}
        subprocess.run([f"{programs}/initdb", "-D", f"{place}/data", "-U", "intact", "-A", "trust", "-E", "UTF8", "--locale=C",
                        "--no-sync"], check=True, **options)
        self.database = subprocess.Popen(
            [f"{programs}/postgres", "-D", f"{place}/data", "-k", place, "-c", "listen_addresses=", "-c", "fsync=off",
             "-c", "dynamic_shared_memory_type=mmap"], stderr=subprocess.DEVNULL,
            preexec_fn=lambda: ctypes.CDLL(None).prctl(1, signal.SIGQUIT), **options)  # PR_SET_PDEATHSIG
        self.environment.update(PGHOST=place, PGUSER="intact", PGDATABASE="postgres")
        deadline = time.monotonic() + PATIENCE_S
        while subprocess.run(["psql", "-c", ""], env=self.environment, capture_output=True, check=False).returncode:
            if time.monotonic() > deadline or self.database.poll() is not None:
                raise Mistake("the database does not start")
            time.sleep(0.1)

    @staticmethod
    def script(path, text):
        with open(path, "w", encoding="utf-8") as f:
            f.write("#!/usr/bin/env bash\n" + text + "\n")
        os.chmod(path, 0o755)

    def here(self, text):
        text = re.sub(r"(?<![\w.])/tmp/", f"{self.work}/tmp/", text)
        text = re.sub(r"(?<=[: ])8000\b", str(self.service_port), text)
        return re.sub(r":7420\b", f":{self.port}", text)

    def there(self, text):
        text = text.replace(f"{self.work}/tmp/", "/tmp/")
        text = re.sub(rf":{self.service_port}\b", ":8000", text)
        return re.sub(rf":{self.port}\b", ":7420", text)

    def run(self, command):
        """Runs one command; its status and output."""
        self.count += 1
        path = f"{self.work}/{self.count}"
        with open(path + ".sh", "w", encoding="utf-8") as f:
            f.write(self.here(command) + "\n")
        self.bash.stdin.write(f". {path}.sh >{path}.out 2>&1 </dev/null; echo $?\n")
        self.bash.stdin.flush()
        status = self.bash.stdout.readline().strip()
        if self.waits and re.search(r"\bintact serve\b.*&$", command):
            self.wait_ready("https" if "--tls-cert" in command else "http", path + ".out")
        with open(path + ".out", encoding="utf-8", errors="replace") as f:
            said = f.read()
        # The shell says that a program in the background was killed, with whichever command it notices that.
        said = re.sub(rf"^{re.escape(self.work)}/\d+\.sh: line \d+: +\d+ Killed .*\n", "", said, flags=re.M)
        return status, self.there(said)

    def wait_ready(self, scheme, log):
        end = time.monotonic() + PATIENCE_S
        trust = ssl._create_unverified_context()
        while time.monotonic() < end:
            try:
                with urllib.request.urlopen(f"{scheme}://127.0.0.1:{self.port}/readyz", timeout=PATIENCE_S, context=trust):
                    return
            except OSError:
                time.sleep(0.05)
        with open(log, encoding="utf-8", errors="replace") as f:
            raise Mistake(f"the server does not become ready: {f.read()}")

    def end(self):
        """All that the document started, and its folder."""
        group = self.bash.pid
        os.killpg(group, signal.SIGKILL)
        self.bash.communicate()
        if self.database:
            self.database.send_signal(signal.SIGQUIT)
            self.database.wait()
            subprocess.run(["rm", "-rf", self.environment["PGHOST"]], check=True)
        subprocess.run(["rm", "-rf", self.work], check=True)


def compiler():
    """The command that compiled this build: a program that uses its library needs the same sanitizers."""
    def told(what):
        with open(f"{BUILD}/meson-info/intro-{what}.json", encoding="utf-8") as f:
            return json.load(f)

    wanted = next(option["value"] for option in told("buildoptions") if option["name"] == "b_sanitize")
    command = told("targets")[0]["target_sources"][0]["compiler"]
    return " ".join(command + ([] if wanted == "none" else [f"-fsanitize={wanted}"]))


def installed():
    """The variables with which the library is found, as a package would install it; once for all documents."""
    if not INSTALLED:
        dest = tempfile.mkdtemp(prefix="intact-docs.")
        INSTALLED["DEST"] = dest
        subprocess.run(["meson", "install", "-C", BUILD, "--no-rebuild", "--quiet", "--destdir", dest], check=True,
                       stdout=subprocess.DEVNULL)
        pc = glob.glob(f"{dest}/**/libintact.pc", recursive=True)[0]
        lib = os.path.dirname(os.path.dirname(pc))
        INSTALLED.update(PKG_CONFIG_PATH=os.path.dirname(pc), PKG_CONFIG_SYSROOT_DIR=dest, LD_LIBRARY_PATH=lib)
    return {k: v for k, v in INSTALLED.items() if k != "DEST"}


def run_block(place, document, block):
    if isinstance(block, Listing):
        with open(f"{place.work}/clone/{block.name}", "w", encoding="utf-8") as f:
            f.write(block.text)
        return
    if block.pending is None:
        commands = block.commands
    else:
        with open(f"{ROOT}/{block.pending}", encoding="utf-8") as f:
            commands = [[block.line, f.read(), []]]
    for line, command, shown in commands:
        where = f"{document}:{line}: $ {command}"
        status, output = place.run(command)
        if status != "0":
            raise Mistake(f"{where}\nended with status {status}:\n{output}")
        if shown:
            expect(shown, output, where)


def run_document(document):
    """Runs all of its blocks; the pending ones."""
    if document != "docs/command-line.md":  # the examples of --help, which tests/e2e/cli_test.py reads
        shown_otherwise(f"{ROOT}/{document}")
    blocks = read_blocks(f"{ROOT}/{document}")
    for block in blocks if "--all" in sys.argv else []:
        block.pending = None
    pending = [f"{document}:{b.line}" for b in blocks if b.pending is not None]
    todo = [b for b in blocks if b.pending != ""]
    if not todo:
        return 0, pending
    starts = any(re.search(r"\bintact serve\b.*&$", c[1]) for b in blocks for c in b.commands)
    place = Place(starts, any(isinstance(b, Listing) for b in blocks), document not in PASTED,
                  any(re.match(r"psql\b", c[1]) for b in blocks for c in b.commands))
    try:
        for block in todo:
            run_block(place, document, block)
    finally:
        place.end()
    return sum(len(b.commands) for b in todo), pending


def main():
    documents = [arg for arg in sys.argv[3:] if arg != "--all"] or ["README.md"] + sorted(
        os.path.relpath(p, ROOT) for p in glob.glob(f"{ROOT}/docs/**/*.md", recursive=True))
    shard = os.environ.get("SHARD", "1/1")
    if shard == "long":
        documents = LONG
    elif shard != "1/1":
        part, parts = map(int, shard.split("/"))
        documents = [document for document in documents if document not in LONG][part - 1 :: parts]
    failed, pending = False, []
    for document in documents:
        try:
            count, skipped = run_document(document)
            pending += skipped
            if count:
                print(f"{document}: {count} commands do what it shows")
        except Mistake as mistake:
            print(f"{document}: {mistake}", file=sys.stderr)
            failed = True
    if INSTALLED:
        subprocess.run(["rm", "-rf", INSTALLED["DEST"]], check=True)
    if pending:
        print("pending, not run as shown:\n  " + "\n  ".join(pending))
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
