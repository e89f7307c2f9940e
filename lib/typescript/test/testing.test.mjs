// intact-client/testing: neither a handler that hangs nor a server that has ended holds a test. $INTACT_PROGRAM is the
// program.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { startServer } from "intact-client/testing";

const PATIENCE_MS = 300_000;
const TICK = `
intact: 1
workflow: tick
complete_by: 1h
steps:
  - {name: go, agent: x, action: go, undo: none}
`;

/** A handler that never ends, and the moment at which it has begun. */
function hanging() {
  let began;
  const begun = new Promise((resolve) => {
    began = resolve;
  });
  const signals = [];
  const go = (request) => {
    signals.push(request.signal);
    began();
    return new Promise(() => undefined);
  };
  return { go, begun, signals };
}

function temporary(t) {
  const folder = mkdtempSync(join(tmpdir(), "intact-testing-"));
  t.after(() => rmSync(folder, { recursive: true }));
  return folder;
}

/** A program that does this. */
function script(folder, text) {
  const path = join(folder, `p${readdirSync(folder).length}`);
  writeFileSync(path, `#!/bin/sh\n${text}\n`, { mode: 0o755 });
  return path;
}

test("a handler that hangs does not hold the test", { timeout: PATIENCE_MS }, async (t) => {
  const server = await startServer({ definitions: [TICK], endWithinMs: 500 });
  t.after(() => server.close());
  const { go, begun, signals } = hanging();
  const agent = server.agent("x", { go });
  await server.submit("tick");
  await begun;
  await assert.rejects(server.stop(agent), /agent x has not ended after 0\.5 s: a handler hangs/);
  assert.ok(signals[0].aborted, "it is told so");
  const again = hanging();
  server.agent("x", { go: again.go });
  await server.submit("tick");
  await again.begun;
  await assert.rejects(server.close(), /agent x has not ended after 0\.5 s/);
  await assert.rejects(server.clock(), /the server has ended with 0/);
});

test("nor its process", { timeout: PATIENCE_MS }, () => {
  const script = `
    import { startServer } from "intact-client/testing";
    const server = await startServer({ definitions: [${JSON.stringify(TICK)}], endWithinMs: 200 });
    const begun = new Promise((resolve) => {
      server.agent("x", { go: () => (resolve(), new Promise(() => undefined)) });
    });
    await server.submit("tick");
    await begun;
    await server.close().catch((e) => console.log(String(e)));
  `;
  const done = spawnSync(process.execPath, ["--input-type=module", "-e", script], { encoding: "utf8", timeout: PATIENCE_MS / 2 });
  assert.equal(done.status, 0, `${done.signal} ${done.stderr}`);
  assert.match(done.stdout, /agent x has not ended/);
});

test("a program that says nothing is no server", { timeout: PATIENCE_MS }, async (t) => {
  const folder = temporary(t);
  const mute = script(folder, 'sleep 30 & echo $! >"$0.pid"; wait'); // the second process keeps the pipes open
  await assert.rejects(startServer({ program: mute, startWithinMs: 500 }), /the server did not start: it said nothing in 0\.5 s/);
  process.kill(Number(readFileSync(`${mute}.pid`, "utf8")), "SIGKILL");
  const fails = script(folder, "echo no memory >&2; exit 3");
  await assert.rejects(startServer({ program: fails }), /the server did not start: no memory/);
  await assert.rejects(startServer({ program: join(folder, "none") }), /ENOENT; INTACT_PROGRAM may say/);
});

test("a server that was killed is told at once", { timeout: PATIENCE_MS }, async (t) => {
  const folder = temporary(t);
  const program = script(folder, 'echo $$ >"$0.pid"; exec "$INTACT" "$@"'.replace("$INTACT", process.env.INTACT_PROGRAM));
  const server = await startServer({ program, definitions: [TICK], endWithinMs: PATIENCE_MS });
  const { go, begun } = hanging();
  server.agent("x", { go });
  const task = await server.submit("tick");
  const ann = await server.person("ann");
  await begun;
  const ended = assert.rejects(task.ended({ timeoutMs: PATIENCE_MS }), /the server has ended by SIGKILL: it said nothing/);
  const advanced = assert.rejects(server.advance("1h", { patienceMs: PATIENCE_MS }), /the server has ended by SIGKILL/);
  process.kill(Number(readFileSync(`${program}.pid`, "utf8")), "SIGKILL");
  await Promise.all([ended, advanced]);
  for (const call of [() => server.clock(), () => server.submit("tick"), () => server.advance("1h"), () => ann.get(task.id)])
    await assert.rejects(call(), /the server has ended by SIGKILL/);
  await server.close(); // though the handler still hangs
});
