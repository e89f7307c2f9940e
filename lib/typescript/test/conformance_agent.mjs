// The agent that `intact agent check` is shown: actions whose behaviour the checker knows. INTACT_SERVER and INTACT_TOKEN
// say where; the record is the file of the first argument, `conformance.json` if there is none, or the PostgreSQL database
// that RECORD_POSTGRES names (a socket's folder), by the module that PG_MODULE names.
import { closeSync, existsSync, fsyncSync, openSync, readFileSync, renameSync, writeSync } from "node:fs";
import { Agent, Client, IntactError, PostgresBarrier, StepError } from "intact-client";

const path = process.argv[2] ?? "conformance.json";
const quiet = { info() {}, warn: console.error, error: console.error };
const loud = { info: console.error, warn: console.error, error: console.error };
const agent = new Agent(process.env.INTACT_AGENT ?? "conformance", {
  instance: process.env.INTACT_INSTANCE ?? "node-1",
  places: Number(process.env.INTACT_PLACES ?? 4),
  stopWaitMs: 30_000,
  logger: process.env.LOG === "INFO" ? loud : quiet,
});

// The effect is a number in the file of its record: both are replaced by one rename.
const record = existsSync(path) ? JSON.parse(readFileSync(path, "utf8")) : { n: 0, steps: {} };

function write() {
  const file = openSync(`${path}.new`, "w");
  writeSync(file, JSON.stringify(record));
  fsyncSync(file);
  closeSync(file);
  renameSync(`${path}.new`, path);
}

// With `ms` it has taken effect, and is not written yet, for so long or until it is told to stop.
async function hold(request) {
  if (request.direction !== "forward" || !request.input?.ms) return;
  request.heartbeat({});
  await request.pause(request.input.ms);
}

// One after the other: what waits within one must not see, nor write, what another one has half done.
let last = Promise.resolve();
function once(request, by) {
  const mine = last.then(() => onceAlone(request, by));
  last = mine.catch(() => undefined);
  return mine;
}

async function onceAlone(request, by) {
  const isUndo = request.direction === "undo";
  const key = isUndo ? request.forward.idempotency_key : request.idempotencyKey;
  const step = record.steps[key];
  if (!isUndo && step && step.outcome !== "done") throw new StepError("undone", { effect: "none" });
  if (!isUndo && step) return step.output;
  if (isUndo && step && step.outcome !== "done") return step.undoOutput;
  const doIt = !isUndo || step;
  if (doIt) record.n += by;
  await hold(request);
  const output = doIt ? { n: record.n } : null;
  record.steps[key] = isUndo
    ? { outcome: step ? "undone" : "barred", undoOutput: output }
    : { outcome: "done", output };
  write();
  return output;
}

if (!existsSync(path)) write();

agent.action("echo", (request) => request.input);
agent.undo("echo", () => null);

agent.action("fail", ({ input }) => {
  const { code = "failed", retry_after: retryAfter, ...more } = input ?? {};
  throw new StepError(code, { ...more, retryAfter });
});

agent.action("slow", async (request) => {
  const { ms, beats } = request.input;
  const every = beats || ms;
  let took = 0;
  while (took < ms) {
    const step = Math.min(every, ms - took);
    await request.pause(step);
    request.check("none");
    took += step;
    if (beats) request.heartbeat({ done: Math.floor(took / every) });
  }
  return { ms: took };
});

let count = once;
if (process.env.RECORD_POSTGRES) {
  const { default: pg } = await import(process.env.PG_MODULE);
  const pool = new pg.Pool({ host: process.env.RECORD_POSTGRES, user: "intact", database: "postgres" });
  pool.on("error", (e) => console.error(`database: ${e.message}`));
  const barrier = new PostgresBarrier(pool);
  count = (request, by) =>
    barrier.once(request, async (db) => {
      const { rows } = await db.query("SELECT coalesce(sum(n), 0) AS n FROM counter");
      await db.query("INSERT INTO counter VALUES ($1)", [by]);
      await hold(request);
      return { n: Number(rows[0].n) + by };
    });
}
agent.action("count", (request) => count(request, 1));
agent.undo("count", (request) => count(request, -1));
agent.undo("uncount", (request) => count(request, -1));

agent.action("judge", (request) => {
  if (request.input?.refuse) throw new StepError("refused", { message: "as it was to be", effect: "none" });
  return { tries: request.tries };
});

agent.action("hang", ({ input }) => new Promise((resolve) => setTimeout(resolve, input.ms, "awake")), { autoHeartbeat: true });

agent.action("nonsense", (request) => {
  const { kind, text } = request.input;
  if (kind === "thrown") throw Object.create(null);
  if (kind === "message") throw new StepError("odd", { message: "half a pair: \ud800, zero: \0", retryable: true });
  if (kind === "beat") {
    const progress = { done: 1 };
    request.heartbeat(progress);
    progress.done = 7n; // what was told stays told
    return request.pause(600).then(() => "beaten");
  }
  return { object: 7n, nan: 7n, function: () => 7, zero: "\0", text }[kind];
});

agent.action("retry", (request) => {
  let failures = request.input?.fail ?? 0;
  return request.call(
    () => {
      if (failures-- > 0) throw Object.assign(new Error("the service is away"), { code: "ECONNREFUSED" });
      return { tries: request.tries };
    },
    { first: 10, most: 100, leave: 1000 },
  );
});

agent.action("elsewhere", (request) => {
  request.elsewhere();
  if (!request.input?.complete) return;
  setTimeout(() => {
    new Client().complete(request.token, { elsewhere: true }).catch((e) => {
      if (!(e instanceof IntactError)) throw e;
      console.error(`elsewhere: ${e.message}`);
    });
  }, 100);
});

agent.action("resume", (request) => {
  if (request.resume === undefined)
    throw new StepError("interrupted", { message: "half of it is done", retryable: true, effect: "none", resume: { at: 1 } });
  return request.resume;
});

process.exit((await agent.run()) ? 0 : 1);
