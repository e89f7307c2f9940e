// The barriers of the TypeScript library, as commit_test.py drives them: reads "forward KEY", "undo KEY", or "late KEY"
// (forward, and stopped when the effect is made), has the effect (a row in the table `world`) in a transaction, and prints what
// it would answer the server.
// Usage: commit_driver.mjs postgres FOLDER | sqlite FILE      with DRIVERS: where their modules are
import { existsSync } from "node:fs";
import { createRequire } from "node:module";
import { createInterface } from "node:readline";
import { PostgresBarrier, Request, SqliteBarrier, StepError } from "intact-client";

const drivers = createRequire(`${process.env.DRIVERS}/`);
const [kind, where] = process.argv.slice(2);

function request(isUndo, key) {
  const forward = { idempotency_key: key, attempts: 1, in_doubt: true };
  return Request.forTest(isUndo ? { idempotencyKey: `${key}/undo`, forward } : { idempotencyKey: key });
}

function onPostgres() {
  const { Pool } = drivers("pg");
  const pool = new Pool({ host: where, user: "intact", database: "postgres" });
  pool.on("error", (e) => console.error(`idle: ${e.message}`));
  const barrier = new PostgresBarrier(pool);
  return (isUndo, key, asked, isLate) =>
    barrier.once(asked, async (db) => {
      await db.query("INSERT INTO world VALUES ($1, $2)", [key, isUndo ? -1 : 1]);
      if (isLate) asked.stop();
      return isUndo ? "undone" : "done";
    });
}

// The driver of WebAssembly syncs by Node's own call: the disk fails while the file `broken` is there.
function onSqlite() {
  const fs = drivers("fs");
  const sync = fs.fsyncSync;
  fs.fsyncSync = (file) => {
    if (existsSync(process.env.BROKEN)) throw Object.assign(new Error("EIO"), { code: "EIO" });
    return sync(file);
  };
  const { Database } = drivers("node-sqlite3-wasm");
  const driver = new Database(where);
  const barrier = new SqliteBarrier({
    exec: (sql) => driver.exec(sql),
    prepare: (sql) => ({
      run: (...parameters) => driver.run(sql, parameters),
      get: (...parameters) => driver.get(sql, parameters),
    }),
  });
  return (isUndo, key, asked, isLate) =>
    barrier.once(asked, (db) => {
      db.prepare("INSERT INTO world VALUES (?, ?)").run(key, isUndo ? -1 : 1);
      if (isLate) asked.stop();
      return isUndo ? "undone" : "done";
    });
}

const once = kind === "postgres" ? onPostgres() : onSqlite();
for await (const line of createInterface({ input: process.stdin })) {
  const [direction, key] = line.split(" ");
  const isUndo = direction === "undo";
  let said;
  try {
    said = { output: await once(isUndo, key, request(isUndo, key), direction === "late") };
  } catch (e) {
    if (!(e instanceof StepError)) throw e;
    said = { error: e.toJSON() };
  }
  console.log(JSON.stringify(said));
}
process.exit(0);
