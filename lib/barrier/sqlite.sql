-- The barrier, in an agent's own SQLite database (3.24 or later): each effect once, and none after its
-- undo. Make the table once: sqlite3 agent.db <sqlite.sql, or as a migration of yours. What it is for,
-- and examples: docs/barrier.md.

CREATE TABLE IF NOT EXISTS intact_barrier(
    -- Of the request going forward. An undo has this one as forward.idempotency_key.
    forward_key TEXT NOT NULL PRIMARY KEY,
    -- done: it took effect. undone: and was undone. barred: an undo came first; it never takes effect.
    outcome TEXT NOT NULL DEFAULT 'done' CHECK (outcome IN ('done', 'undone', 'barred')),
    output TEXT,      -- what it answered, JSON; NULL: null
    undo_output TEXT, -- what its undo answered, JSON; NULL: null
    -- Milliseconds since 1970, when that became so.
    at INTEGER NOT NULL DEFAULT (CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER))
) WITHOUT ROWID;

CREATE INDEX IF NOT EXISTS intact_barrier_at ON intact_barrier(at);

-- The statements. All of them belong into the transaction of the effect: BEGIN IMMEDIATE before the
-- first, COMMIT behind the last, and only then the answer. On any error ROLLBACK, and answer a retryable
-- error with effect "none". The parameter :key is always the key of the request going forward.
--
-- A request going forward:
--
-- [forward]
--     INSERT INTO intact_barrier(forward_key) VALUES (:key) ON CONFLICT DO NOTHING;
--
-- One row was changed: do. Take effect, [done], commit, answer. Otherwise:
--
-- [forward-again]
--     SELECT CASE outcome WHEN 'done' THEN 'repeat' ELSE 'undone' END AS verdict,
--            CASE outcome WHEN 'done' THEN output END AS output
--     FROM intact_barrier WHERE forward_key = :key;
--
-- repeat: answer that output. undone: answer the error "undone", not retryable, effect "none".
--
-- An undo:
--
-- [undo]
--     INSERT INTO intact_barrier(forward_key, outcome) VALUES (:key, 'barred') ON CONFLICT DO NOTHING;
--
-- One row was changed: nothing. There is nothing to undo, now and for ever: commit, answer null. Otherwise:
--
-- [undo-done]
--     UPDATE intact_barrier
--     SET outcome = 'undone', at = CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER)
--     WHERE forward_key = :key AND outcome = 'done';
--
-- One row was changed: do. Undo it, [done-undo], commit, answer; [forward-output] is what it had answered.
-- Otherwise:
--
-- [undo-again]
--     SELECT CASE outcome WHEN 'undone' THEN 'repeat' ELSE 'nothing' END AS verdict, undo_output AS output
--     FROM intact_barrier WHERE forward_key = :key;
--
-- repeat: answer that output. nothing: answer null.
--
-- [forward-output]
--     SELECT output FROM intact_barrier WHERE forward_key = :key;
--
-- Recording what repeats will be answered, in the same transaction:
--
-- [done]
--     UPDATE intact_barrier SET output = :output
--     WHERE forward_key = :key AND outcome = 'done' AND output IS NULL;
--
-- [done-undo]
--     UPDATE intact_barrier SET undo_output = :output
--     WHERE forward_key = :key AND outcome = 'undone' AND undo_output IS NULL;
--
-- One row is changed, or else it was not to be done: a mistake of the program.
--
-- Deleting what is older than :before (milliseconds since 1970), a thousand at a time, until no row is
-- changed, each time in a transaction of its own. A request that comes after its record is gone takes
-- effect again: docs/barrier.md says how long to keep them.
--
-- [clean]
--     DELETE FROM intact_barrier WHERE forward_key IN
--         (SELECT forward_key FROM intact_barrier WHERE at < :before ORDER BY at LIMIT 1000);
