import { StepError, TooLate } from "./errors.js";
import type { Request } from "./request.js";

/** A connection to PostgreSQL: a client of the package `pg`, or anything like it. */
export interface PostgresClient {
  query(text: string, values?: unknown[]): Promise<{ rows: Record<string, unknown>[] }>;
  release(destroy?: boolean): void;
}

/** A pool of them. */
export interface PostgresPool<C extends PostgresClient> {
  connect(): Promise<C>;
}

interface Verdict {
  verdict: "do" | "repeat" | "undone" | "nothing";
  output: string | null;
}

const UNDONE = { message: "this step was undone, or barred by its undo", effect: "none" } as const;

/** What is to be answered by a request that is not to take effect. */
function answerOf(found: Verdict): unknown {
  if (found.verdict === "undone") throw new StepError("undone", UNDONE);
  return found.verdict === "repeat" && found.output !== null ? JSON.parse(found.output) : null;
}

function encode(output: unknown): string {
  try {
    return JSON.stringify(output === undefined ? null : output);
  } catch (e) {
    throw new StepError("bad_output", { message: `the effect's output is not JSON: ${String(e)}`, effect: "none" });
  }
}

/**
 * The idempotency barrier on PostgreSQL: each effect once, and none after its undo, in one transaction with its record. The
 * functions of share/intact/barrier/postgresql.sql have to be in the database.
 *
 * ```ts
 * const barrier = new PostgresBarrier(new pg.Pool());
 * agent.action("charge", (request) => barrier.once(request, (db) => book(db, request.input)));
 * ```
 */
export class PostgresBarrier<C extends PostgresClient> {
  readonly #pool: PostgresPool<C>;
  readonly #tries: number;

  /** `tries`: how often a transaction is done that another one was in the way of. Default: 10. */
  constructor(pool: PostgresPool<C>, options: { tries?: number } = {}) {
    this.#pool = pool;
    this.#tries = options.tries ?? 10;
  }

  /**
   * The output of `effect(db)`, made now in a transaction together with its record, or as it was when the request came
   * before. null for an undo that has nothing to undo. Whatever the effect throws rolls all of it back; a failure of the
   * database becomes a retryable StepError. The effect neither commits nor rolls back, and may be called again after a
   * rollback.
   */
  async once(request: Request, effect: (db: C) => unknown): Promise<unknown> {
    for (let calls = 1; ; calls++) {
      const state = { isCommitting: false };
      try {
        return await this.#transaction(request, effect, state);
      } catch (e) {
        if (e instanceof StepError || e instanceof TooLate) throw e;
        const code = (e as { code?: unknown }).code;
        const isInTheWay = code === "40001" || code === "40P01";
        if (isInTheWay && calls < this.#tries && (await request.pause(10 * calls))) continue;
        if (!state.isCommitting && typeof code !== "string" && !isLost(e)) throw e;
        const isUnknown = state.isCommitting && !isInTheWay;
        throw new StepError("database", { message: String(e), retryable: true, effect: isUnknown ? "unknown" : "none" });
      }
    }
  }

  async #transaction(
    request: Request,
    effect: (db: C) => unknown,
    state: { isCommitting: boolean },
  ): Promise<unknown> {
    const db = await this.#pool.connect();
    const stopHearing = hearErrors(db);
    let isBroken = true;
    try {
      await db.query("BEGIN");
      const keys = [request.idempotencyKey, request.forward?.idempotency_key ?? null, request.direction];
      const { rows } = await db.query("SELECT verdict, output FROM intact_barrier($1, $2, $3)", keys);
      const found = rows[0] as unknown as Verdict;
      let output: unknown = null;
      if (found.verdict === "do") {
        request.check();
        output = (await effect(db)) ?? null;
        await db.query("SELECT intact_barrier_done($1, $2, $3, $4)", [...keys, encode(output)]);
        request.check(); // the last moment: what comes after it is there to stay
      }
      state.isCommitting = true;
      await db.query("COMMIT");
      isBroken = false;
      return found.verdict === "do" ? output : answerOf(found);
    } catch (e) {
      if (isBroken) {
        isBroken = await db.query("ROLLBACK").then(
          () => false,
          () => true,
        );
      }
      throw e;
    } finally {
      db.release(isBroken);
      stopHearing();
    }
  }

  /** Deletes records older than so many milliseconds; how many. A request that comes later than that takes effect again. */
  async clean(olderThanMs: number): Promise<number> {
    const db = await this.#pool.connect();
    const stopHearing = hearErrors(db);
    let count = 0;
    let isBroken = true;
    try {
      for (;;) {
        const { rows } = await db.query("SELECT intact_barrier_clean(make_interval(secs => $1)) AS n", [olderThanMs / 1000]);
        const some = Number(rows[0]?.["n"] ?? 0);
        count += some;
        if (some === 0) break;
      }
      isBroken = false;
      return count;
    } finally {
      db.release(isBroken);
      stopHearing();
    }
  }
}

/**
 * A client of `pg` that loses its connection tells so by an event, besides failing what was asked of it. While it is out of
 * its pool nobody hears that, and then Node ends the process.
 */
function hearErrors(db: object): () => void {
  type Hear = (event: "error", listener: () => void) => unknown;
  const client = db as { on?: Hear; removeListener?: Hear };
  const hear = () => undefined;
  client.on?.("error", hear);
  return () => {
    client.removeListener?.("error", hear);
  };
}

/** Of `pg`, which tells it by words. */
function isLost(e: unknown): boolean {
  return e instanceof Error && /^Connection terminated|^timeout |^Client has encountered a connection error/.test(e.message);
}

/** A database of node:sqlite (DatabaseSync) or better-sqlite3, or anything like them. */
export interface SqliteDatabase {
  exec(sql: string): unknown;
  prepare(sql: string): {
    run(...parameters: (string | number)[]): { changes: number | bigint };
    get(...parameters: (string | number)[]): unknown;
  };
}

const TABLE = `PRAGMA busy_timeout = 10000;
CREATE TABLE IF NOT EXISTS intact_barrier(
    forward_key TEXT NOT NULL PRIMARY KEY,
    outcome TEXT NOT NULL DEFAULT 'done' CHECK (outcome IN ('done', 'undone', 'barred')),
    output TEXT,
    undo_output TEXT,
    at INTEGER NOT NULL DEFAULT (CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER))
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS intact_barrier_at ON intact_barrier(at);`;
const FORWARD = "INSERT INTO intact_barrier(forward_key) VALUES (?) ON CONFLICT DO NOTHING";
const FORWARD_AGAIN = `SELECT CASE outcome WHEN 'done' THEN 'repeat' ELSE 'undone' END AS verdict,
    CASE outcome WHEN 'done' THEN output END AS output FROM intact_barrier WHERE forward_key = ?`;
const UNDO = "INSERT INTO intact_barrier(forward_key, outcome) VALUES (?, 'barred') ON CONFLICT DO NOTHING";
const UNDO_DONE = `UPDATE intact_barrier
    SET outcome = 'undone', at = CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER)
    WHERE forward_key = ? AND outcome = 'done'`;
const UNDO_AGAIN = `SELECT CASE outcome WHEN 'undone' THEN 'repeat' ELSE 'nothing' END AS verdict,
    undo_output AS output FROM intact_barrier WHERE forward_key = ?`;
const DONE = "UPDATE intact_barrier SET output = ? WHERE forward_key = ? AND outcome = 'done' AND output IS NULL";
const DONE_UNDO =
  "UPDATE intact_barrier SET undo_output = ? WHERE forward_key = ? AND outcome = 'undone' AND undo_output IS NULL";
const CLEAN = `DELETE FROM intact_barrier WHERE forward_key IN
    (SELECT forward_key FROM intact_barrier WHERE at < ? ORDER BY at LIMIT 1000)`;

/**
 * The idempotency barrier on SQLite, for drivers that do not wait: node:sqlite and better-sqlite3. The table is made if it is
 * not there. Nobody else begins a transaction on this connection.
 */
export class SqliteBarrier<D extends SqliteDatabase> {
  readonly db: D;

  constructor(db: D) {
    this.db = db;
    db.exec(TABLE);
  }

  /** As of PostgresBarrier; `effect` returns its output at once, and no promise. */
  once(request: Request, effect: (db: D) => unknown): unknown {
    const isUndo = request.direction === "undo";
    const key = isUndo ? request.forward?.idempotency_key : request.idempotencyKey;
    if (key === undefined) throw new StepError("bad_request", { message: "an undo without a forward key", effect: "none" });
    let found: Verdict;
    let output: unknown = null;
    let isMine = false; // an error that is not of the database
    try {
      this.db.exec("BEGIN IMMEDIATE");
      found = this.#judge(key, isUndo);
      if (found.verdict === "do") {
        isMine = true;
        request.check();
        output = effect(this.db) ?? null;
        if (typeof (output as { then?: unknown } | null)?.then === "function")
          throw new TypeError("the effect of a SqliteBarrier must not return a promise: the transaction would not wait for it");
        const text = encode(output);
        isMine = false;
        const { changes } = this.db.prepare(isUndo ? DONE_UNDO : DONE).run(text, key);
        isMine = true;
        if (Number(changes) !== 1) throw new Error("the effect has ended the transaction, or changed the barrier's record");
        request.check(); // the last moment: what comes after it is there to stay
        isMine = false;
      }
    } catch (e) {
      this.#rollBack();
      const { name, code } = e as { name?: unknown; code?: unknown };
      const isOfDatabase = !isMine || /sqlite/i.test(`${String(name)} ${String(code)}`);
      if (!isOfDatabase || e instanceof StepError || e instanceof TooLate) throw e;
      throw new StepError("database", { message: String(e), retryable: true, effect: "none" });
    }
    try {
      this.db.exec("COMMIT");
    } catch (e) {
      this.#rollBack();
      throw new StepError("database", { message: String(e), retryable: true, effect: "unknown" });
    }
    return found.verdict === "do" ? output : answerOf(found);
  }

  #judge(key: string, isUndo: boolean): Verdict {
    if (Number(this.db.prepare(isUndo ? UNDO : FORWARD).run(key).changes) === 1)
      return { verdict: isUndo ? "nothing" : "do", output: null };
    if (isUndo && Number(this.db.prepare(UNDO_DONE).run(key).changes) === 1) return { verdict: "do", output: null };
    return this.db.prepare(isUndo ? UNDO_AGAIN : FORWARD_AGAIN).get(key) as Verdict;
  }

  #rollBack(): void {
    try {
      this.db.exec("ROLLBACK");
    } catch {
      // it never began, or is over
    }
  }

  /** Deletes records older than so many milliseconds; how many. A request that comes later than that takes effect again. */
  clean(olderThanMs: number): number {
    const before = Date.now() - olderThanMs;
    for (let count = 0; ; ) {
      const some = Number(this.db.prepare(CLEAN).run(before).changes);
      if (some === 0) return count;
      count += some;
    }
  }
}
