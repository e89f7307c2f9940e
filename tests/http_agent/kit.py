"""What the tests of the HTTP agent share: a server with it, services that do as they are told, certificates."""

import json
import os
import shutil
import signal
import socket
import ssl
import struct
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.request

sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), ".."))

from ports import free_port  # noqa: E402 pylint: disable=wrong-import-position

PATIENCE_S = 180  # only a failing test waits so long
HIDDEN = ("INTACT_SERVER", "INTACT_TOKEN", "INTACT_CA", "INTACT_INSTALLATION", "http_proxy", "HTTP_PROXY", "https_proxy", "HTTPS_PROXY", "ALL_PROXY")
ENVIRONMENT = {k: v for k, v in os.environ.items() if k not in HIDDEN} | {"LC_ALL": "C.UTF-8"}
if os.geteuid() != 0:
    ENVIRONMENT["INTACT_DUMPABLE"] = "1"  # who is not root looks into servers by /proc


def eventually(what, condition):
    end = time.monotonic() + PATIENCE_S
    while time.monotonic() < end:
        found = condition()
        if found:
            return found
        time.sleep(0.05)
    raise AssertionError(f"never: {what}")


def end_listener(listener, thread):
    """The thread that accepts ends before the socket is closed: it would go on by the same number, which may be that of the next
    listener, and take a connection of that one."""
    if listener.fileno() >= 0:
        listener.shutdown(socket.SHUT_RDWR)
        thread.join()
        listener.close()


class Service:
    """Reads a request, and hands the connection to a function of the path's last part."""

    def __init__(self, cases, context=None, port=0, host="127.0.0.1"):
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        self.listener = socket.create_server((host, port), family=family, backlog=1000)
        self.port = self.listener.getsockname()[1]
        self.cases, self.context = cases, context
        self.requests, self.connections = [], 0
        self.lock = threading.Lock()
        self.thread = threading.Thread(target=self.accept, daemon=True)
        self.thread.start()

    def close(self):
        end_listener(self.listener, self.thread)

    def accept(self):
        while True:
            try:
                connection, _ = self.listener.accept()
            except OSError:
                return
            self.connections += 1
            threading.Thread(target=self.serve, args=(connection,), daemon=True).start()

    def serve(self, connection):
        try:
            if self.context:
                connection = self.context.wrap_socket(connection, server_side=True)
            data = b""
            while True:
                while b"\r\n\r\n" not in data:
                    more = connection.recv(65536)
                    if not more:
                        return
                    data += more
                head, _, data = data.partition(b"\r\n\r\n")
                lines = head.decode("latin-1").split("\r\n")
                method, target, _ = lines[0].split(" ")
                headers = {k.lower(): v for k, v in (line.split(": ", 1) if ": " in line else (line.rstrip(":;"), "") for line in lines[1:])}
                length = int(headers.get("content-length", 0))
                while len(data) < length:
                    data += connection.recv(65536)
                body, data = data[:length], data[length:]
                request = {"method": method, "target": target, "headers": headers, "body": body, "at": time.monotonic()}
                with self.lock:
                    self.requests.append(request)
                case = target.split("?")[0].strip("/").split("/")[-1]
                case, _, number = case.partition("~")
                if not self.cases.get(case, self.cases["good"])(connection, request, int(number or 0)):
                    return
        except (OSError, ssl.SSLError):
            pass
        finally:
            connection.close()

    def of_key(self, key):
        with self.lock:
            return [r for r in self.requests if r["headers"].get("idempotency-key") == key]


def answer(status=200, body=b'{"ok": true}', headers=(), type_="application/json"):
    head = f"HTTP/1.1 {status} Whatever\r\n" + "".join(f"{k}: {v}\r\n" for k, v in headers)
    if type_:
        head += f"Content-Type: {type_}\r\n"
    return (head + f"Content-Length: {len(body)}\r\n\r\n").encode() + body


def reset(connection):
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    connection.close()


def flood(connection, piece):
    """Until the other side has enough. What it has taken by then."""
    sent = 0
    try:
        while True:
            connection.sendall(piece)
            sent += len(piece)
            if sent > 1 << 30:
                raise AssertionError("it takes a gigabyte and more")
    except OSError:
        pass
    return False


def certificates(folder):
    """ca.pem, and NAME.pem with NAME.key: good, wrong (another name), expired, self (signed by itself), client."""

    def openssl(*words):
        subprocess.run(["openssl", *words], check=True, cwd=folder, capture_output=True)

    openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2", "-subj", "/CN=test ca",
            "-keyout", "ca.key", "-out", "ca.pem")
    for name, host, days in (("good", "IP:127.0.0.1,DNS:localhost", "2"), ("wrong", "DNS:elsewhere.example.org", "2"),
                             ("expired", "IP:127.0.0.1", "-1"), ("client", "DNS:client", "2")):
        with open(f"{folder}/{name}.ext", "w") as f:
            f.write(f"subjectAltName={host}\n")
        openssl("req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-subj", f"/CN={name}", "-keyout", f"{name}.key",
                "-out", f"{name}.csr")
        openssl("x509", "-req", "-in", f"{name}.csr", "-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial", "-days", days, "-extfile",
                f"{name}.ext", "-out", f"{name}.pem")
    openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2", "-subj", "/CN=self", "-addext",
            "subjectAltName=IP:127.0.0.1", "-keyout", "self.key", "-out", "self.pem")


def tls_context(folder, name, client_ca=False):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(f"{folder}/{name}.pem", f"{folder}/{name}.key")
    if client_ca:
        context.load_verify_locations(f"{folder}/ca.pem")
        context.verify_mode = ssl.CERT_REQUIRED
    return context


class Server:
    """`intact serve --http`, or without it."""

    def __init__(self, intact, config=None, flags=(), environment=None, folder=None):
        self.intact = intact
        self.folder = folder or tempfile.mkdtemp(prefix="intact-http-test.")
        self.port = free_port()
        self.flags, self.environment = list(flags), ENVIRONMENT | (environment or {})
        self.config = None
        self.context = None
        if config:
            self.config = f"{self.folder}/services.json"
            self.configure(config)
        self.log = f"{self.folder}/log"
        self.process = None
        self.as_user = None  # of root alone

    def configure(self, config):
        with open(self.config, "w") as f:
            json.dump(config, f)

    def start(self):
        words = [self.intact, "serve", "--data", f"{self.folder}/data", "--listen", f"127.0.0.1:{self.port}", *self.flags]
        if self.config:
            words += ["--http", self.config]
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(words, env=self.environment, stdout=subprocess.DEVNULL, stderr=log, start_new_session=True,
                                            user=self.as_user, group=self.as_user, extra_groups=None if self.as_user is None else [])
        eventually("the server is ready", self.is_ready)
        token = f"{self.folder}/data/admin-token"
        self.token = None
        if os.path.exists(token):
            with open(token) as f:
                self.token = f.read().strip()
        return self

    def is_ready(self):
        assert self.process.poll() is None, self.read_log()
        try:
            with self.open("/readyz", None, "GET", None):
                return True
        except (urllib.error.URLError, OSError):
            return False

    def open(self, path, body, method, token):
        scheme = "https" if self.context else "http"
        request = urllib.request.Request(f"{scheme}://127.0.0.1:{self.port}{path}", method=method,
                                         data=json.dumps(body).encode() if body is not None else None)
        request.add_header("Content-Type", "application/json")
        if token:
            request.add_header("Authorization", f"Bearer {token}")
        return urllib.request.urlopen(request, timeout=PATIENCE_S, context=self.context)

    def call(self, method, path, body=None):
        with self.open(path, body, method, self.token) as reply:
            return json.loads(reply.read() or b"null")

    def put(self, workflow):
        self.call("PUT", f"/v1/workflows/{workflow['workflow']}", workflow)

    def submit(self, workflow, id_, input_, **more):
        self.call("POST", "/v1/tasks", {"workflow": workflow, "id": id_, "input": input_} | more)

    def task(self, id_):
        return self.call("GET", f"/v1/tasks/{id_}")

    def ended(self, id_):
        """The task at its end. A message may still be on its way to become it."""
        def look():
            try:
                task = self.call("GET", f"/v1/tasks/{id_}?wait=20s")
            except urllib.error.HTTPError as e:
                if e.code != 404:
                    raise
                return None
            return task if task["state"] in ("processed", "compensated", "error") else None

        return eventually(f"{id_} ends", look)

    def child(self):
        """The process id of the agent; None while there is none."""
        found = self.children()
        return found[0] if found else None

    def children(self):
        return [int(n) for n in subprocess.run(["pgrep", "-P", str(self.process.pid)], capture_output=True, text=True).stdout.split()]

    def read_log(self):
        with open(self.log, errors="replace") as log:
            return log.read()

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        status = self.process.wait(PATIENCE_S)
        assert status == 0, f"ended with {status}: {self.read_log()}"

    def kill(self):
        if self.process and self.process.poll() is None:
            self.process.kill()
            self.process.wait()

    def close(self):
        self.kill()
        text = self.read_log()
        shutil.rmtree(self.folder, ignore_errors=True)
        for word in ("ERROR: AddressSanitizer", "runtime error:", "assertion failed", "LeakSanitizer"):
            assert word not in text, text
        return text
