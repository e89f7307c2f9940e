"""What the tests of AMQP share: a RabbitMQ of their own, clients of it, a wire that can be cut, a server with the bridge."""

import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), "..", "http_agent"))

from kit import ENVIRONMENT, PATIENCE_S, Server, certificates, end_listener, eventually, free_port  # noqa: E402,F401

import npm_modules  # noqa: E402

from proton import Message, ProtonException, Timeout  # noqa: E402
from proton.utils import BlockingConnection  # noqa: E402

RABBIT = "/usr/lib/rabbitmq/bin"
PASSWORD = "not-for-everybody"
LARGEST = 1 << 27  # what RabbitMQ 3 takes by default


def install_rhea():
    return npm_modules.install(f"{os.path.dirname(os.path.realpath(__file__))}/npm", "rhea")


# Waits until whoever started it is gone, however that came, and ends all that has our folder for its home: Erlang's helpers have
# sessions of their own, and a script between them and us.
KEEPER = """
import os, shutil, signal, sys, time
folder = sys.argv[1]
sys.stdin.buffer.read()
mine, clean = ("HOME=" + folder).encode(), 0
while clean < 3:
    found = 0
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/environ", "rb") as f:
                if mine in f.read().split(bytes(1)):
                    found += 1
                    os.kill(int(pid), signal.SIGKILL)
        except OSError:
            pass
    clean = 0 if found else clean + 1
    time.sleep(0.05)
shutil.rmtree(folder, ignore_errors=True)
"""


class Broker:
    """RabbitMQ with its plugin for AMQP 1.0: one node of our own, all of it in a temporary folder, gone when the test is."""

    def __init__(self):
        self.folder = tempfile.mkdtemp(prefix="intact-amqp-broker.")
        self.keeper = subprocess.Popen([sys.executable, "-c", KEEPER, self.folder], stdin=subprocess.PIPE, start_new_session=True)
        self.port, self.tls_port, self.epmd_port, self.node_port = free_port(), free_port(), free_port(), free_port()
        certificates(self.folder)
        with open(f"{self.folder}/rabbitmq.conf", "w") as f:
            f.write(f"""listeners.tcp.1 = 127.0.0.1:{self.port}
listeners.ssl.1 = 127.0.0.1:{self.tls_port}
ssl_options.certfile = {self.folder}/good.pem
ssl_options.keyfile = {self.folder}/good.key
ssl_options.cacertfile = {self.folder}/ca.pem
default_user = intact
default_pass = {PASSWORD}
vm_memory_high_watermark.absolute = 1GB
disk_free_limit.absolute = 1MB
""")
        with open(f"{self.folder}/plugins", "w") as f:
            f.write("[rabbitmq_amqp1_0].")
        ours = {"HOME": self.folder, "ERL_EPMD_PORT": str(self.epmd_port), "ERL_EPMD_ADDRESS": "127.0.0.1"}
        names = {"NODENAME": f"intact-{self.port}@localhost", "MNESIA_BASE": f"{self.folder}/db", "LOG_BASE": f"{self.folder}/log",
                 "CONFIG_FILE": f"{self.folder}/rabbitmq.conf", "ENABLED_PLUGINS_FILE": f"{self.folder}/plugins",
                 "CONF_ENV_FILE": "/dev/null", "DIST_PORT": str(self.node_port), "GENERATED_CONFIG_DIR": f"{self.folder}/generated",
                 "FEATURE_FLAGS_FILE": f"{self.folder}/flags", "ADVANCED_CONFIG_FILE": f"{self.folder}/advanced",
                 "SERVER_ADDITIONAL_ERL_ARGS": "+S 1:1 -kernel inet_dist_use_interface {127,0,0,1}"}
        self.environment = ENVIRONMENT | ours | {f"RABBITMQ_{k}": v for k, v in names.items()}
        self.epmd = subprocess.Popen(["epmd", "-port", str(self.epmd_port), "-address", "127.0.0.1"], stdout=subprocess.DEVNULL,
                                     stderr=subprocess.DEVNULL, start_new_session=True, env=self.environment)
        self.process = None

    def launch(self):
        with open(f"{self.folder}/out", "wb") as out:
            self.process = subprocess.Popen([f"{RABBIT}/rabbitmq-server"], stdout=out, stderr=out, env=self.environment,
                                            start_new_session=True)

    def start(self):
        self.launch()
        eventually("the broker is there", self.is_ready)
        return self

    def is_ready(self):
        with open(f"{self.folder}/out", errors="replace") as f:
            text = f.read()
        assert self.process.poll() is None, text
        return "completed with" in text

    def kill(self):
        """SIGKILL, and all of it is gone."""
        if self.process and self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()

    def control(self, *words):
        subprocess.run([f"{RABBIT}/rabbitmqctl", *words], env=self.environment, check=True, capture_output=True, timeout=PATIENCE_S)

    def limit(self, size):
        """Of a message's body, in the sessions that are begun from now on."""
        self.control("eval", f"application:set_env(rabbit, max_message_size, {size}).")

    def close(self):
        self.keeper.stdin.close()
        self.keeper.wait()
        for process in (self.process, self.epmd):
            if process:
                process.wait()


class Client:
    """A connection to the broker for one thread. It is made again when it breaks."""

    def __init__(self, broker):
        self.broker, self.connection, self.senders, self.receivers = broker, None, {}, {}
        self.sends = 0  # how often anything was sent, with what was sent again

    def open(self):
        if not self.connection:
            self.connection = BlockingConnection(f"amqp://127.0.0.1:{self.broker.port}", timeout=20, user="intact", password=PASSWORD,
                                                 allowed_mechs="PLAIN", heartbeat=0)
        return self.connection

    def close(self):
        connection, self.connection, self.senders, self.receivers = self.connection, None, {}, {}
        try:
            if connection:
                connection.close()
        except (ProtonException, OSError):
            pass

    def again(self, do):
        """Until it was done: what is sent may then be there twice."""
        def look():
            try:
                return [do()]
            except (ProtonException, OSError):
                self.close()
                return None

        return eventually("the broker answers", look)[0]

    def send(self, queue, body, **properties):
        def do():
            if queue not in self.senders:
                sender = self.open().create_sender(None, name=f"to-{queue}", options=Durable(f"/queue/{queue}"))
                self.senders[queue] = sender
            self.sends += 1
            self.senders[queue].send(Message(body=body, durable=True, **properties))

        self.again(do)

    def receive_raw(self, queue, timeout):
        if queue not in self.receivers:
            self.receivers[queue] = self.open().create_receiver(None, credit=1, name=f"from-{queue}", options=Durable(f"/queue/{queue}"))
        try:
            return self.receivers[queue].receive(timeout=timeout)
        except Timeout:
            return None

    def accept(self, queue):
        self.receivers[queue].accept()

    def receive(self, queue):
        """The next message, taken."""
        def do():
            message = self.receive_raw(queue, 1)
            if message is not None:
                self.accept(queue)
            return message

        return eventually(f"a message in {queue}", lambda: self.again(do))


class Durable:
    """A queue that outlives the broker: what RabbitMQ makes it of, if it is not there."""

    def __init__(self, address):
        self.address = address

    def test(self, link):
        return True

    def apply(self, link):
        terminus = link.target if link.is_sender else link.source
        terminus.address = self.address
        terminus.durability = terminus.DELIVERIES
        terminus.expiry_policy = terminus.EXPIRE_NEVER


class Wire:
    """Between the bridge and the broker: `cut` breaks all connections, `is_held` lets nothing through while they look well,
    `is_mute` nothing of what goes to the broker; while it `is_away` nobody gets a connection."""

    def __init__(self, port):
        self.to, self.is_held, self.is_mute, self.is_away, self.pairs = port, False, False, False, []
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port, self.is_closed = self.listener.getsockname()[1], False
        self.thread = threading.Thread(target=self.accept, daemon=True)
        self.thread.start()

    def accept(self):
        while True:
            try:
                near, _ = self.listener.accept()
            except OSError:
                if self.is_closed:
                    return
                continue
            try:
                if self.is_away:
                    near.close()
                    continue
                far = socket.create_connection(("127.0.0.1", self.to))
            except OSError:
                near.close()
                continue
            self.pairs.append((near, far))
            for a, b in ((near, far), (far, near)):
                threading.Thread(target=self.pump, args=(a, b, a is near), daemon=True).start()

    def pump(self, a, b, is_to_broker):
        try:
            while data := a.recv(65536):
                while self.is_held or (self.is_mute and is_to_broker):
                    time.sleep(0.02)
                b.sendall(data)
        except OSError:
            pass
        for s in (a, b):
            try:
                s.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass

    def cut(self):
        pairs, self.pairs = self.pairs, []
        for s in [s for pair in pairs for s in pair]:
            try:
                s.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass

    def close(self):
        self.is_held, self.is_closed = False, True
        end_listener(self.listener, self.thread)
        self.cut()


def body_of(message):
    body = message.body
    return json.loads(bytes(body) if not isinstance(body, str) else body)


class Agent(threading.Thread):
    """An agent behind a queue: does what `work` says, once for each key, and replies as the standard has it."""

    def __init__(self, broker, queue, work):
        super().__init__(daemon=True)
        self.client, self.queue, self.work = Client(broker), queue, work
        self.record, self.messages, self.is_over = {}, [], False
        self.start()

    def run(self):
        while not self.is_over:
            try:
                message = self.client.receive_raw(self.queue, 0.2)
                if message is None:
                    continue
                request = body_of(message)
                self.messages.append(message)
                key = request["idempotency_key"]
                if key not in self.record:
                    self.record[key] = self.work(request)
                if self.record[key] is not None:
                    self.reply(message, self.record[key])
                self.client.accept(self.queue)
            except (ProtonException, OSError):
                self.client.close()
                time.sleep(0.1)
        self.client.close()

    def reply(self, message, result, **properties):
        queue = message.reply_to.removeprefix("/queue/")
        if queue not in self.client.senders:
            self.client.senders[queue] = self.client.open().create_sender(None, name=f"to-{queue}", options=Durable(message.reply_to))
        self.client.senders[queue].send(Message(body=json.dumps(result), durable=True, correlation_id=message.correlation_id, **properties))

    def end(self):
        self.is_over = True
        self.join(PATIENCE_S)
