#!/usr/bin/python3
"""What is sent, before the public libraries of both specifications, from npm: the receiver in examples/webhook.

Usage: npm_test.py ROOT DRIVER
"""

import base64
import json
import os
import shutil
import subprocess
import sys
import tempfile
import urllib.error
import urllib.request

ROOT, DRIVER = (os.path.realpath(p) for p in sys.argv[1:3])
HERE = os.path.dirname(os.path.realpath(__file__))
sys.path[:0] = [os.path.join(HERE, "../http_agent"), os.path.join(HERE, "..")]

import kit  # noqa: E402
import npm_modules  # noqa: E402


class Receiver:
    def __init__(self, folder, script, *words):
        self.port = kit.free_port()
        self.process = subprocess.Popen(["node", script, str(self.port), *words], cwd=folder, stdout=subprocess.PIPE, text=True)
        assert self.process.stdout.readline() == "listening\n"

    def next(self):
        line = self.process.stdout.readline()
        assert line, "it ended"
        return line.split()

    def close(self):
        self.process.kill()
        self.process.wait()


def drive(folder, targets, lines, environment):
    """What the channel says of each delivery."""
    with open(f"{folder}/config.json", "w") as f:
        json.dump({"webhooks": targets}, f)
    done = subprocess.run([DRIVER, f"{folder}/config.json"], input="".join(line + "\n" for line in [*lines, "wait"]), capture_output=True, text=True,
                          env=kit.ENVIRONMENT | environment, timeout=kit.PATIENCE_S)
    assert done.returncode == 0, done.stderr
    return [line.split(" ", 3) for line in done.stdout.splitlines()]


def target(receiver, secret, **more):
    return {"url": f"http://127.0.0.1:{receiver.port}/", "secret": secret, "private": ["127.0.0.1"], "timeout": "2m", **more}


def check_libraries(folder, receiver, secret, other):
    url = f"http://127.0.0.1:{receiver.port}/"
    good, wrong = {"env": "GOOD"}, {"env": "OTHER"}
    environment = {"GOOD": secret, "OTHER": other}

    [end] = drive(folder, [target(receiver, good)], [f"{url} o-17/3/processed o-17"], environment)
    assert end[1] == "delivered", end
    assert receiver.next() == ["o-17/3/processed", "intact.task.processed", "o-17"]

    [end] = drive(folder, [target(receiver, [wrong, good])], [f"{url} o-18/1/started o-18"], environment)
    assert end[1] == "delivered", end
    assert receiver.next()[0] == "o-18/1/started"

    ends = drive(folder, [target(receiver, good, batch=10)], [url + " " + " ".join(f"b-{n} t-{n}" for n in range(7))], environment)
    assert [e[:2] for e in ends] == [[f"b-{n}", "delivered"] for n in range(7)], ends
    assert [receiver.next()[0] for _ in range(7)] == [f"b-{n}" for n in range(7)]

    [end] = drive(folder, [target(receiver, wrong)], [f"{url} o-19 o-19"], environment)
    assert end[1] == "retry" and "401" in end[3] and "No matching signature" in end[3], end

    request = urllib.request.Request(url, data=b"{}", headers={"webhook-id": "x", "webhook-timestamp": "1", "webhook-signature": "v1,AAAA"})
    try:
        urllib.request.urlopen(request, timeout=kit.PATIENCE_S)
        raise AssertionError("it takes what is not signed")
    except urllib.error.HTTPError as error:
        assert error.code == 401, error
        error.close()


ED25519 = """
import { createServer } from "node:http";
import { createPublicKey, verify } from "node:crypto";
const raw = Buffer.from(process.argv[3], "base64");
const key = createPublicKey({ key: Buffer.concat([Buffer.from("302a300506032b6570032100", "hex"), raw]), format: "der", type: "spki" });
createServer(async (request, response) => {
    const parts = [];
    for await (const part of request) parts.push(part);
    const text = Buffer.concat([Buffer.from(`${request.headers["webhook-id"]}.${request.headers["webhook-timestamp"]}.`), ...parts]);
    const [version, signature] = request.headers["webhook-signature"].split(",");
    const good = version === "v1a" && verify(null, text, key, Buffer.from(signature, "base64"));
    response.writeHead(good ? 204 : 401).end();
}).listen(Number(process.argv[2]), "127.0.0.1", () => console.log("listening"));
"""


def check_private_keys(folder):
    pem = subprocess.run(["openssl", "genpkey", "-algorithm", "ed25519", "-outform", "DER"], check=True, capture_output=True).stdout
    public = subprocess.run(["openssl", "pkey", "-inform", "DER", "-pubout", "-outform", "DER"], input=pem, check=True, capture_output=True).stdout[-32:]
    with open(f"{folder}/ed25519.mjs", "w") as f:
        f.write(ED25519)
    receiver = Receiver(folder, "ed25519.mjs", base64.b64encode(public).decode())
    url = f"http://127.0.0.1:{receiver.port}/"
    try:
        for seed in (pem[-32:], pem[-32:] + public):
            [end] = drive(folder, [target(receiver, {"env": "KEY"})], [f"{url} o-1 o-1"], {"KEY": "whsk_" + base64.b64encode(seed).decode()})
            assert end[1] == "delivered", end
        [end] = drive(folder, [target(receiver, {"env": "KEY"})], [f"{url} o-1 o-1"], {"KEY": "whsk_" + base64.b64encode(os.urandom(32)).decode()})
        assert end[1] == "retry", end
    finally:
        receiver.close()


def main():
    try:
        home = npm_modules.install(f"{HERE}/npm", "webhook-npm")
    except subprocess.CalledProcessError:
        if subprocess.run(["npm", "view", "standardwebhooks", "version"], capture_output=True).returncode != 0:
            print("skipped: npm's registry cannot be reached")
            sys.exit(77)
        raise
    folder = tempfile.mkdtemp(prefix="intact-webhook-npm.")
    receiver = None
    try:
        os.symlink(f"{home}/node_modules", f"{folder}/node_modules")
        secret, other = ("whsec_" + base64.b64encode(os.urandom(32)).decode() for _ in range(2))
        shutil.copy(f"{ROOT}/examples/webhook/receiver.mjs", folder)
        with open(f"{folder}/shop-secret", "w") as f:
            f.write(secret + "\n")
        receiver = Receiver(folder, "receiver.mjs")
        check_libraries(folder, receiver, secret, other)
        check_private_keys(folder)
    finally:
        if receiver:
            receiver.close()
        shutil.rmtree(folder)


main()
