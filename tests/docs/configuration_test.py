#!/usr/bin/env python3
"""Starts a server with each file that a document shows for `intact serve --config`: every block ```yaml with `intact_server:` in it.

Files and variables that secrets are kept in are made for it (all hold a secret of webhooks, which does for a password, too), so are
certificates (*.pem) and folders, below /etc, /run or /var. Usage: configuration_test.py ROOT INTACT
"""

import base64
import glob
import os
import re
import shutil
import subprocess
import sys
import tempfile

ROOT, INTACT = (os.path.realpath(p) for p in sys.argv[1:3])
HIDDEN = ("INTACT_SERVER", "INTACT_TOKEN", "INTACT_CA", "INTACT_INSTALLATION", "INTACT_STORE", "NOTIFY_SOCKET", "WATCHDOG_USEC")
SECRET = "whsec_" + base64.b64encode(os.urandom(32)).decode()


def certificate(path):
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2", "-subj", "/CN=x",
                    "-keyout", path + ".key", "-out", path], check=True, capture_output=True)


def blocks():
    for path in sorted(glob.glob(f"{ROOT}/docs/*.md")):
        with open(path, encoding="utf-8") as f:
            for block in re.findall(r"^```yaml\n(.*?)^```", f.read(), re.S | re.M):
                if re.search(r"^intact_server:", block, re.M):
                    yield os.path.relpath(path, ROOT), block


def check(place, text, folder):
    """Every absolute path gets into the folder."""
    environment = {k: v for k, v in os.environ.items() if k not in HIDDEN} | {name: SECRET for name in re.findall(r"\benv: *(\w+)", text)}
    for path in re.findall(r"(?<=[\s:{\[])/(?:etc|run|var)/[\w./-]+", text):
        made = folder + path
        os.makedirs(os.path.dirname(made), exist_ok=True)
        if path.endswith(".pem"):
            certificate(made)
        elif "." in os.path.basename(path) or re.search(rf"file: *{re.escape(path)}", text):
            with open(made, "w") as f:
                f.write(SECRET + "\n")
        else:
            os.makedirs(made, exist_ok=True)
        text = re.sub(rf"(?<=[\s:{{\[]){re.escape(path)}(?![\w./-])", made, text)
    config = f"{folder}/server.yaml"
    with open(config, "w") as f:
        f.write(text)
    with open(f"{folder}/log", "w") as log:
        server = subprocess.Popen([INTACT, "serve", "--data", f"{folder}/data", "--listen", "127.0.0.1:0", "--open", "--config", config],
                                  stdout=subprocess.PIPE, stderr=log, text=True, env=environment)
    ready = server.stdout.readline()  # nothing, if it ends
    if ready:
        server.terminate()
    status = server.wait()
    with open(f"{folder}/log", errors="replace") as log:
        assert ready and status == 0, f"{place}: ended with {status}:\n{log.read()}"


count = 0
for place, text in blocks():
    folder = tempfile.mkdtemp(prefix="intact-configuration.")
    try:
        check(place, text, folder)
    finally:
        shutil.rmtree(folder)
    count += 1
assert count > 0, "no document shows a configuration"
print(f"{count} configurations")
