-- The barrier, in an agent's own MariaDB (10.3 or later) or MySQL database: each effect once, and none after its
-- undo. Make the table once: mariadb agent <mariadb.sql, or as a migration of yours. What it is for, and
-- examples: docs/barrier.md. Tested with MariaDB.

CREATE TABLE IF NOT EXISTS intact_barrier(
    -- Of the request going forward. An undo has this one as forward.idempotency_key.
    forward_key VARBINARY(700) NOT NULL PRIMARY KEY,
    -- done: it took effect. undone: and was undone. barred: an undo came first; it never takes effect.
    outcome VARCHAR(6) CHARACTER SET ascii NOT NULL DEFAULT 'done',
    output LONGTEXT CHARACTER SET utf8mb4,      -- what it answered, JSON; NULL: null
    undo_output LONGTEXT CHARACTER SET utf8mb4, -- what its undo answered, JSON; NULL: null
    at TIMESTAMP(3) NOT NULL DEFAULT CURRENT_TIMESTAMP(3), -- when that became so
    KEY intact_barrier_at (at),
    CHECK (outcome IN ('done', 'undone', 'barred'))
) ENGINE = InnoDB;

-- The statements. All of them belong into the transaction of the effect: START TRANSACTION before the first,
-- COMMIT behind the last, and only then the answer. Any isolation level will do. The errors 1213 (deadlock)
-- and 1205 (a lock was waited for too long), and 1020 of MariaDB 11 and later, mean: ROLLBACK, and once more from the
-- start. On any other error ROLLBACK, and answer a retryable error with effect "none". Each ? is the key of the
-- request going forward, of at most 700 bytes.
--
-- A request going forward:
--
-- [forward]
--     INSERT IGNORE INTO intact_barrier(forward_key) VALUES (?);
--
-- One row was changed: do. Take effect, [done], commit, answer. Otherwise:
--
-- [forward-again]
--     SELECT CASE outcome WHEN 'done' THEN 'repeat' ELSE 'undone' END AS verdict,
--            CASE outcome WHEN 'done' THEN output END AS output
--     FROM intact_barrier WHERE forward_key = ? LOCK IN SHARE MODE;
--
-- repeat: answer that output. undone: answer the error "undone", not retryable, effect "none".
--
-- An undo:
--
-- [undo]
--     INSERT IGNORE INTO intact_barrier(forward_key, outcome) VALUES (?, 'barred');
--
-- One row was changed: nothing. There is nothing to undo, now and for ever: commit, answer null. Otherwise:
--
-- [undo-done]
--     UPDATE intact_barrier SET outcome = 'undone', at = CURRENT_TIMESTAMP(3)
--     WHERE forward_key = ? AND outcome = 'done';
--
-- One row was changed: do. Undo it, [done-undo], commit, answer; [forward-output] is what it had answered.
-- Otherwise:
--
-- [undo-again]
--     SELECT CASE outcome WHEN 'undone' THEN 'repeat' ELSE 'nothing' END AS verdict, undo_output AS output
--     FROM intact_barrier WHERE forward_key = ? LOCK IN SHARE MODE;
--
-- repeat: answer that output. nothing: answer null.
--
-- [forward-output]
--     SELECT output FROM intact_barrier WHERE forward_key = ? LOCK IN SHARE MODE;
--
-- Recording what repeats will be answered, in the same transaction; the first ? is JSON:
--
-- [done]
--     UPDATE intact_barrier SET output = ? WHERE forward_key = ? AND outcome = 'done' AND output IS NULL;
--
-- [done-undo]
--     UPDATE intact_barrier SET undo_output = ?
--     WHERE forward_key = ? AND outcome = 'undone' AND undo_output IS NULL;
--
-- One row is changed, or else it was not to be done: a mistake of the program.
--
-- Deleting what is older than ?, a thousand at a time, until no row is changed, each time in a transaction of
-- its own. A request that comes after its record is gone takes effect again: docs/barrier.md says how
-- long to keep them.
--
-- [clean]
--     DELETE FROM intact_barrier WHERE at < ? ORDER BY at LIMIT 1000;
