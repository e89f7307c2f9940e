#!/usr/bin/python3
"""A server that dies by SIGKILL at one exact commit, at the first, the second, and so on, until the scenario comes to its end without. It
is started again, what got no answer is asked again, and everything has to be as if nothing had been. What the dead server has left
behind is looked at, too: it shows what had been promised by then, and nothing done by half.

Usage: commits_test.py PROGRAM SCENARIO sqlite|postgres WAY...
    PROGRAM   intact-faulty (see kill.h)
    SCENARIO  signal: signals by HTTP and by SQL; schedule: moments, and a run by hand; lock: three tasks of one key;
              family: children that end, and a family that is undone; items: a list that ends, and one that is undone
    WAY       before, after: when it dies at a commit; torn: in the middle of its last frame (SQLite)
"""

import calendar
import http.client
import json
import os
import signal
import sys
import time
import urllib.error
import urllib.request

import commits_kit
import items_rules
import kit

MOST = 200  # commits of a run; with so many something never ends


class Server(kit.Server):
    """Dies as planned, once, and is started again by whoever misses it."""

    def __init__(self, program, store):
        super().__init__(program)
        self.store = store(self)
        self.flags = ["--scan-every", "100ms", *self.store.flags]
        self.rules, self.killed = [], False  # (sql, words): each has a row, whose first value is true

    def begin(self, *plan):
        """Of a new process."""
        self.kill()
        self.process = None
        self.killed, self.rules = False, []
        self.environment = kit.ENVIRONMENT | self.store.plan(*plan)
        self.there()

    def there(self):
        """It is; it may die while it starts."""
        while self.process is None or self.process.poll() is not None:
            if self.process is not None:
                self.has_died()
            try:
                self.start()
            except AssertionError:
                if self.process.poll() is None or self.killed:
                    raise

    def has_died(self):
        assert self.process.returncode == -signal.SIGKILL and not self.killed, self.read_log()
        self.killed, self.environment = True, kit.ENVIRONMENT
        self.store.plan()
        with self.store.left() as rows:
            self.check(rows)

    def check(self, rows=None):
        for sql, words in self.rules:
            found = (rows or self.store.rows)(sql, **words)
            assert found and found[0][0], f"not so: {sql} {words}: {found}"

    def rule(self, sql, **words):
        """From now on, whenever it is looked at, also in what a dead server left behind."""
        self.rules.append((sql, words))

    def send(self, method, path, body, headers):
        request = urllib.request.Request(f"http://127.0.0.1:{self.port}{path}", method=method, headers=headers,
                                         data=json.dumps(body).encode() if body is not None else None)
        request.add_header("Authorization", f"Bearer {self.token}")
        request.add_header("Content-Type", "application/json")
        with urllib.request.urlopen(request, timeout=kit.PATIENCE_S) as reply:
            return reply.status, json.loads(reply.read() or b"null")

    def ask(self, method, path, body=None, key=None):
        """Until there is an answer."""
        def once():
            self.there()
            try:
                return self.send(method, path, body, {"Idempotency-Key": key} if key else {})
            except urllib.error.HTTPError as e:
                return None if e.code == 503 else (e.code, json.loads(e.read()))
            except (OSError, http.client.HTTPException):
                return None

        return kit.eventually(f"{method} {path} is answered", once)

    def expect(self, statuses, method, path, body=None, key=None):
        status, said = self.ask(method, path, body, key)
        assert status in statuses, f"{method} {path}: {status} {said}"
        return said

    def until(self, what, sql, **words):
        """The first row's first value is true. The rules hold all the time."""
        def once():
            self.there()
            self.check()
            found = self.store.rows(sql, **words)
            return found and found[0][0]

        kit.eventually(what, once)

    def state_is(self, id_, state):
        self.until(f"{id_} is {state}", "SELECT state = :state FROM task WHERE id = :id", id=id_, state=state)

    def submit_once(self, workflow, id_, input_):
        self.expect((200, 201), "POST", "/v1/tasks", {"workflow": workflow, "id": id_, "input": input_})
        self.rule("SELECT count(*) = 1 FROM task WHERE id = :id", id=id_)


# ---- scenarios: what is set up once, and what is done with each process; `name` is new each time ----

class Signal:
    """Two signals of one name by HTTP, two of another by SQL. Four steps take them, each its own."""

    least = 4  # its begin, the submission, signals by HTTP; others may share a commit
    # A signal by SQL is at one place: still to be decided, or with its task.
    ONE_PLACE = """SELECT (SELECT count(*) FROM signal WHERE task = :id AND id = :key) +
        (SELECT count(*) FROM task_signal WHERE task = :id AND key = :key) = 1"""
    ENDED = "SELECT count(*) FROM task_step WHERE task = :id AND name = :step AND state = 'completed'"
    KEPT = "SELECT count(*) = 1 FROM task_signal WHERE task = :id AND key = :key"
    # What has ended took one, and what was taken has ended the step that took it.
    TAKEN = """SELECT NOT EXISTS (SELECT 1 FROM task_step AS s WHERE s.task = :id AND s.state = 'completed'
            AND 1 <> (SELECT count(*) FROM task_signal AS g WHERE g.task = s.task AND g.step = s.name))
        AND NOT EXISTS (SELECT 1 FROM task_signal AS g WHERE g.task = :id AND g.step IS NOT NULL
            AND 1 <> (SELECT count(*) FROM task_step AS s WHERE s.task = g.task AND s.name = g.step AND s.state = 'completed'))"""

    def __init__(self, server):
        self.server = server
        steps = [("paid", "payment"), ("again", "payment"), ("picked", "pickup"), ("back", "pickup")]
        server.put({"intact": 1, "workflow": "parcel", "steps": [{"name": n, "signal": {"name": s}} for n, s in steps],
                    "output": {n: f"${{ .steps.{n}.output.data.n }}" for n, _ in steps}})

    def pay(self, id_, number):
        key = f"pay-{number}"
        self.server.expect((200,), "POST", f"/v1/tasks/{id_}/signals/payment", {"n": number}, key)
        self.server.rule(self.KEPT, id=id_, key=key)

    def pick_up(self, id_, number):
        """An application says so, whether the server is there or not."""
        key = f"pick-{number}"
        self.server.store.rows("INSERT INTO signal (task, name, data, id) VALUES (:id, 'pickup', :data, :key)", id=id_,
                               data=json.dumps({"n": number}), key=key)
        self.server.rule(self.ONE_PLACE, id=id_, key=key)

    def play(self, name):
        server = self.server
        server.rule(self.TAKEN, id=name)
        server.submit_once("parcel", name, {})
        self.pick_up(name, 1)
        self.pay(name, 1)
        server.until("it is paid", self.ENDED, id=name, step="paid")
        server.until("the first pickup is decided", "SELECT count(*) = 0 FROM notice")
        self.pay(name, 2)
        server.until("the first pickup is taken", self.ENDED, id=name, step="picked")
        self.pick_up(name, 2)
        server.state_is(name, "processed")
        output = server.expect((200,), "GET", f"/v1/tasks/{name}")["output"]
        # The order of those by SQL is promised only while nobody dies.
        picked = [output.pop("picked"), output.pop("back")]
        assert output == {"paid": 1, "again": 2} and sorted(picked) == [1, 2], (output, picked)
        server.until("nothing is left to be decided", "SELECT count(*) = 0 FROM notice")


class Schedule:
    """A moment each second, and a run by hand: each moment has one task, and none is left out."""

    least = 6  # its begin, the schedule, the run, two moments, their tasks
    IS_MOMENT = "substr(id, 1, length(:name) + 2) = :name || '@2'"
    # The tasks, and the submissions that are not tasks yet, are those that the schedule has counted. (A run by hand is none.)
    COUNTED = f"""SELECT coalesce((SELECT fired FROM schedule_view WHERE name = :name), 0) =
        (SELECT count(*) FROM (SELECT id FROM task WHERE {IS_MOMENT} UNION SELECT id FROM submission WHERE {IS_MOMENT}) AS x)"""

    def __init__(self, server):
        self.server = server
        server.put({"intact": 1, "workflow": "quick", "steps": [
            {"name": "x", "agent": "nobody", "action": "x", "if": ".input.never == true", "undo": "none"}]})

    def play(self, name):
        server, path = self.server, f"/v1/schedules/{name}"
        server.rule(self.COUNTED, name=name)
        server.expect((200, 201), "PUT", path, {
            "intact": 1, "schedule": name, "workflow": "quick", "every": "1s", "overlap": "allow", "missed": "all",
            "input": {"at": "${ .time }", "before": "${ .previous }"}})
        server.rule("SELECT count(*) = 1 FROM schedule WHERE name = :name", name=name)
        run = server.expect((202,), "POST", f"{path}/run", {"reason": "by hand"})["task"]
        server.rule("SELECT (SELECT count(*) FROM task WHERE id = :id) + (SELECT count(*) FROM submission WHERE id = :id) = 1", id=run)
        server.until("two moments are over", f"SELECT count(*) >= 2 FROM task WHERE {self.IS_MOMENT} AND state = 'processed'", name=name)
        server.expect((200,), "POST", f"{path}/pause", {"reason": "that will do"})
        server.rule("SELECT paused_at IS NOT NULL FROM schedule WHERE name = :name", name=name)
        server.until("all are tasks", "SELECT count(*) = 0 FROM submission")
        server.state_is(run, "processed")
        self.verify(name, server.expect((200,), "GET", path)["counts"]["fired"])
        server.rules.clear()
        server.expect((200, 404), "DELETE", path)

    def verify(self, name, fired):
        server, before = self.server, None
        ids = [row[0] for row in server.store.rows(f"SELECT id FROM task WHERE {self.IS_MOMENT} ORDER BY id", name=name)]
        assert len(ids) == fired, (ids, fired)
        for id_ in ids:
            server.state_is(id_, "processed")
            given, moment = server.expect((200,), "GET", f"/v1/tasks/{id_}")["input"], self.second(id_.partition("@")[2])
            assert self.second(given["at"]) == moment, (id_, given)
            assert before == (given["before"] and self.second(given["before"])), (ids, given)
            assert before is None or moment == before + 1, ids
            before = moment

    @staticmethod
    def second(moment):
        return calendar.timegm(time.strptime(moment[:19], "%Y-%m-%dT%H:%M:%S"))


class Lock:
    """Three tasks of one key. The first ends as processed, the second is cancelled, the third has its turn."""

    least = 6  # its begin, the submissions, signals, the cancellation
    ONE = "SELECT count(*) <= 1 FROM lock_holder WHERE lock = :lock"
    # Who has begun and not ended holds it, and who has ended does not; it is counted as it is.
    HELD = """SELECT NOT EXISTS (SELECT 1 FROM task AS t WHERE t.lock = :lock AND t.ended_at IS NULL
            AND EXISTS (SELECT 1 FROM task_step AS s WHERE s.task = t.id AND s.begun_at IS NOT NULL)
            AND NOT EXISTS (SELECT 1 FROM lock_holder AS h WHERE h.task = t.seq))
        AND NOT EXISTS (SELECT 1 FROM task AS t JOIN lock_holder AS h ON h.task = t.seq WHERE t.lock = :lock AND t.ended_at IS NOT NULL)
        AND coalesce((SELECT held FROM lock_key WHERE lock = :lock), 0) = (SELECT count(*) FROM lock_holder WHERE lock = :lock)"""
    # Nobody began between another one's begin and end.
    TURNS = """SELECT count(*) = 0 FROM task AS t, task_view AS a, task AS u, task_step AS b
        WHERE t.lock = :lock AND u.lock = :lock AND t.seq <> u.seq AND a.id = t.id AND b.task = u.id
        AND b.begun_at > (SELECT min(s.begun_at) FROM task_step AS s WHERE s.task = t.id) AND b.begun_at < a.ended_at"""

    def __init__(self, server):
        self.server = server
        server.put({"intact": 1, "workflow": "turn", "lock": {"key": "${ .input.key }"}, "steps": [
            {"name": "go", "signal": {"name": "go"}}, {"name": "nap", "wait": "1ms"}]})

    def holds(self, lock, id_):
        self.server.until(f"{id_} holds it", "SELECT count(*) FROM lock_view WHERE lock = :lock AND task = :id", lock=lock, id=id_)

    def go(self, id_):
        self.server.expect((200,), "POST", f"/v1/tasks/{id_}/signals/go", 1, "go")

    def play(self, name):
        server, lock = self.server, f"turn/{name}"
        first, second, third = (f"{name}-{n}" for n in (1, 2, 3))
        server.rule(self.ONE, lock=lock)
        server.rule(self.HELD, lock=lock)
        for id_ in (first, second, third):
            server.submit_once("turn", id_, {"key": name})
        self.holds(lock, first)
        self.go(third)  # kept, until it is its turn
        self.go(first)
        self.holds(lock, second)
        server.state_is(first, "processed")
        server.ask("POST", f"/v1/tasks/{second}/cancel", {"reason": "no more"})
        server.state_is(second, "compensated")
        server.state_is(third, "processed")
        server.until("nobody holds it", "SELECT count(*) = 0 FROM lock_holder WHERE lock = :lock", lock=lock)
        server.until("each had its turn", self.TURNS, lock=lock)


class Family:
    """A child, then one that has a child itself; the family is undone after its end. Another root is cancelled while its child runs."""

    least = 10  # its begin, the submissions, what starts and ends each of the children, signals, undo
    CHILDREN = "SELECT s.task AS parent, s.name, s.state, s.begun_at, s.task || '@' || s.name AS id FROM task_step AS s " \
        "WHERE (s.task = :id OR substr(s.task, 1, length(:id) + 1) = :id || '@') AND substr(s.name, 1, 5) = 'child'"
    # A step that has begun has a child, which is in one place; one that has not has none.
    ONE_PLACE = f"""SELECT NOT EXISTS (SELECT 1 FROM ({CHILDREN}) AS c
        WHERE (SELECT count(*) FROM task WHERE id = c.id) + (SELECT count(*) FROM submission WHERE id = c.id)
            <> CASE WHEN c.begun_at IS NULL THEN 0 ELSE 1 END)"""
    # What has ended is known to the parent, or a notice is on its way; and the parent knows of no end that there was not.
    TOLD = f"""SELECT NOT EXISTS (SELECT 1 FROM ({CHILDREN}) AS c JOIN task AS t ON t.id = c.id
        WHERE (t.state = 'processed' AND c.state = 'waiting' OR t.state = 'compensated' AND c.state IN ('waiting', 'undoing'))
            AND NOT EXISTS (SELECT 1 FROM notice AS n WHERE n.task = c.parent AND n.sender = c.id)
        OR c.state = 'completed' AND t.state NOT IN ('processed', 'pending', 'processing', 'compensating', 'compensated')
        OR c.state = 'completed' AND t.direction = 'forward' AND t.state <> 'processed'
        OR c.state = 'undone' AND t.state <> 'compensated')"""
    UNDONE = """SELECT NOT EXISTS (SELECT 1 FROM task WHERE id = :id AND state = 'compensated')
        OR NOT EXISTS (SELECT 1 FROM task WHERE root = :id AND state <> 'compensated')"""

    def __init__(self, server):
        self.server = server
        server.put({"intact": 1, "workflow": "leaf", "steps": [{"name": "go", "signal": {"name": "go"}}], "output": "${ 7 }"})
        server.put({"intact": 1, "workflow": "branch", "steps": [{"name": "child", "task": {"workflow": "leaf"}}],
                    "output": "${ .steps.child.output + 1 }"})
        server.put({"intact": 1, "workflow": "root", "steps": [
            {"name": "child_a", "task": {"workflow": "leaf"}}, {"name": "child_b", "task": {"workflow": "branch"}}],
            "output": "${ [.steps.child_a.output, .steps.child_b.output] }"})

    def begin(self, name):
        for sql in self.ONE_PLACE, self.TOLD, self.UNDONE:
            self.server.rule(sql, id=name)
        self.server.submit_once("root", name, {})

    def go(self, id_):
        self.server.until(f"{id_} is there", "SELECT count(*) FROM task WHERE id = :id", id=id_)
        self.server.expect((200,), "POST", f"/v1/tasks/{id_}/signals/go", 1, "go")

    def family_is(self, name, count, state):
        self.server.state_is(name, state)
        self.server.until(f"all of {name} are {state}", "SELECT count(*) = :n FROM task WHERE root = :id AND state = :state", id=name,
                          n=count, state=state)
        self.server.until("nothing is left to be told", "SELECT count(*) = 0 FROM notice")

    def play(self, name):
        server, other = self.server, f"{name}-other"
        self.begin(name)
        self.go(f"{name}@child_a")
        self.go(f"{name}@child_b@child")
        self.family_is(name, 3, "processed")
        assert server.expect((200,), "GET", f"/v1/tasks/{name}")["output"] == [7, 8]
        server.ask("POST", f"/v1/tasks/{name}/undo", {"reason": "all of it"})
        self.family_is(name, 3, "compensated")
        self.begin(other)
        server.until("its child is there", "SELECT count(*) FROM task WHERE id = :id", id=f"{other}@child_a")
        server.ask("POST", f"/v1/tasks/{other}/cancel", {"reason": "no more"})
        self.family_is(other, 1, "compensated")


class Items:
    """Twelve items, three at a time. Of one list all are done; of another the tenth fails, so that the others are undone."""

    least = 12  # its begin, two submissions, at least four turns of an agent forward for each, as many back
    COUNT, BAD = 12, 9
    IS = "SELECT (SELECT count(*) FROM task_item WHERE task = :id AND number IN ({}) AND state IN ({})) = {}"

    def __init__(self, server):
        self.server, self.done, self.asked = server, {}, {}
        self.taken, self.undone = set(), set()  # of the present list: what was answered
        common = {"agent": "a", "retry": {"attempts": 3, "wait": "1ms"}}
        server.put({"intact": 1, "workflow": "list", "output": "${ .steps.pack.output | map(.n) }", "steps": [
            {"name": "pack", "for_each": "${ .input.lines }", "max_items": 100, "concurrency": 3, "action": "take",
             "input": {"n": "${ .item }", "index": "${ .index }"},
             "undo": {"action": "put-back", "input": {"n": "${ .item }", "taken": "${ .output }"}}} | common,
            {"name": "tell", "action": "tell", "undo": "none", "input": {"taken": "${ .steps.pack.output }"}} | common]})

    def output(self, n):
        """Some are long enough to lie in rows of their own."""
        return {"n": n, "text": "x" * (3000 if n % 4 == 0 else 10)}

    def result(self, id_, request):
        """What the agent does, by key: what it did stays done. One key stands for one request."""
        key, action, given = request["idempotency_key"], request["action"], request["input"]
        assert self.asked.setdefault(key, given) == given, (key, given, self.asked[key])
        if action == "tell":
            assert given == {"taken": [self.output(n) for n in range(self.COUNT)]}, given
            return {"output": None}
        n, back = given["n"], action == "put-back"
        assert key == f"{id_}/pack.{n}" + ("/undo" if back else ""), (key, given)
        if n == self.BAD and id_.endswith("bad"):
            if back:
                return {"output": None}  # a request that was sent again leaves a doubt
            return {"error": {"code": "no", "message": "no", "retryable": False, "effect": "none"}}
        if back:
            assert given["taken"] == self.output(n) and self.done[key.removesuffix("/undo")] == n, (key, given)
        else:
            assert given["index"] == n and f"{key}/undo" not in self.done, key
        tried = key in self.done
        self.done[key] = n
        if n == 2 and not tried:
            return {"error": {"code": "later", "message": "later", "retryable": True}}  # it took effect, and is tried again
        return {"output": None if back else self.output(n)}

    def settled(self, requests, outcomes):
        for outcome in outcomes:
            request, said = requests.pop(outcome["token"])
            assert outcome["status"] in ("accepted", "repeated", "late"), (outcome, request)  # late: it came to rest before
            if "output" not in said or request["action"] == "tell":
                continue
            (self.undone if request["action"] == "put-back" else self.taken).add(request["input"]["n"])

    def look(self, id_):
        """What was answered is durable, and the sums hold."""
        server = self.server
        server.there()
        server.check()
        for numbers, states in (self.taken, "'completed', 'undoing', 'undone'"), (self.undone, "'undone'"):
            if numbers:
                sql = self.IS.format(", ".join(map(str, numbers)), states, len(numbers))
                assert server.store.rows(sql, id=id_)[0][0], f"not so: {sql} {id_}"
        return server.store.rows("SELECT state FROM task WHERE id = :id", id=id_)[0][0]

    def serve(self, id_, state):
        """The agent; what gets no answer is sent again."""
        server, requests, results, end = self.server, {}, [], time.monotonic() + kit.PATIENCE_S
        self.taken, self.undone = set(), set()
        while self.look(id_) != state or results:
            assert time.monotonic() < end, f"{id_} is never {state}"
            said = server.expect((200,), "POST", "/v1/agents/a/work",
                                 {"instance": "i", "max": 0 if results else 3, "wait": "100ms", "results": results, "holding": []})
            self.settled(requests, said["outcomes"])
            results = []
            for request in said["requests"]:
                result = self.result(id_, request) | {"token": request["token"]}
                requests[request["token"]] = request, result
                results.append(result)

    def one_list(self, id_, state):
        server = self.server
        for sql in items_rules.ALL:
            server.rule(sql, id=id_)
        server.submit_once("list", id_, {"lines": list(range(self.COUNT))})
        self.serve(id_, state)
        server.check()
        effects = {key for key in self.done if key.startswith(f"{id_}/")}
        undone = {key for key in effects if key.endswith("/undo")}
        assert undone == ({f"{key}/undo" for key in effects - undone} if state == "compensated" else set()), effects
        items = server.expect((200,), "GET", f"/v1/tasks/{id_}/items?step=pack&limit=100")["items"]
        assert [item["name"] for item in items] == [f"pack.{n}" for n in range(self.COUNT)], items
        return items, server.expect((200,), "GET", f"/v1/tasks/{id_}")

    def play(self, name):
        items, task = self.one_list(f"{name}-good", "processed")
        assert task["output"] == list(range(self.COUNT)) and {item["state"] for item in items} == {"completed"}, (task, items)
        items, task = self.one_list(f"{name}-bad", "compensated")
        assert items[self.BAD]["state"] in ("failed", "undone") and task["error"]["code"] == "no", (items, task)
        sums = task["steps"][0]["items"]
        assert sums["undone"] >= self.BAD and sums["to_undo"] == 0, sums


def run(server, scenario, name, ways):
    """How many commits there were."""
    for commit in range(1, MOST):
        any_killed = False
        for way in ways:
            print(f"{way} commit {commit}", flush=True)
            server.begin(way, commit)
            scenario.play(f"{name}-{commit}-{way}")
            server.check()
            any_killed |= server.killed
        if not any_killed:
            return commit - 1
    raise AssertionError(f"it makes more than {MOST} commits")


def main():
    program, name, store, *ways = sys.argv[1:]
    if store == "postgres" and not commits_kit.POSTGRES:
        print("skipped: there is no PostgreSQL")
        sys.exit(77)
    server = Server(os.path.realpath(program), {"sqlite": commits_kit.Sqlite, "postgres": commits_kit.Postgres}[store])
    try:
        assert ways and set(ways) <= set(server.store.ways), ways
        server.begin()
        scenario = {"signal": Signal, "schedule": Schedule, "lock": Lock, "family": Family, "items": Items}[name](server)
        commits = run(server, scenario, name, ways)
        assert commits >= scenario.least, f"it makes no more than {commits} commits"
        print(f"killed at each of {commits} commits")
        server.begin()
        server.stop()
    finally:
        server.close()
        server.store.close()


main()
