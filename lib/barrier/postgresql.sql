-- The barrier, in an agent's own PostgreSQL database (12 or later): each effect once, and none after its
-- undo. Make the table and the functions once, as the owner of the schema: psql -f postgresql.sql, or as a
-- migration of yours; doing it again changes nothing. The agent's role then needs
--     GRANT SELECT, INSERT, UPDATE ON intact_barrier TO agent;
-- and DELETE if it is to clean up. What it is for, and examples: docs/barrier.md.

CREATE TABLE IF NOT EXISTS intact_barrier(
    -- Of the request going forward. An undo has this one as forward.idempotency_key.
    forward_key text PRIMARY KEY,
    -- done: it took effect. undone: and was undone. barred: an undo came first; it never takes effect.
    outcome text NOT NULL DEFAULT 'done' CHECK (outcome IN ('done', 'undone', 'barred')),
    output json,      -- what it answered; NULL: null
    undo_output json, -- what its undo answered; NULL: null
    at timestamptz NOT NULL DEFAULT clock_timestamp() -- when that became so
);

CREATE INDEX IF NOT EXISTS intact_barrier_at ON intact_barrier(at);

-- What to do about a request, to be asked in the transaction of its effect (BEGIN before, COMMIT behind, and
-- only then the answer):
--     SELECT verdict, output FROM intact_barrier(KEY, NULL, 'forward')
--     SELECT verdict, output FROM intact_barrier(KEY, FORWARD_KEY, 'undo')
-- verdict:
--     do       take effect (undo it), call intact_barrier_done, commit, answer. The output is, of an undo,
--              what the request going forward had answered.
--     repeat   it was done before: answer this output
--     undone   of a forward: it was undone, or barred. Answer the error "undone", not retryable, effect "none"
--     nothing  of an undo: there is nothing to undo, now and for ever. Commit, answer null
-- output: JSON as text; NULL stands for null.
--
-- It waits for another transaction that is about the same request. Any isolation level will do; with repeatable
-- read and serializable the error 40001 means: ROLLBACK, and once more from BEGIN. So does 40P01 (deadlock) with
-- each of them. On any other error ROLLBACK, and answer a retryable error with effect "none".
CREATE OR REPLACE FUNCTION intact_barrier(key text, forward_key text, direction text,
                                          OUT verdict text, OUT output text)
LANGUAGE plpgsql AS $barrier$
#variable_conflict use_column
DECLARE
    is_undo constant boolean := direction = 'undo';
    step constant text := CASE WHEN is_undo THEN intact_barrier.forward_key ELSE key END;
    was text;
BEGIN
    IF direction IS NULL OR direction NOT IN ('forward', 'undo') THEN
        RAISE invalid_parameter_value USING MESSAGE =
            format('intact_barrier: the direction is %s, and has to be forward or undo', coalesce(direction, 'NULL'));
    ELSIF step IS NULL THEN
        RAISE invalid_parameter_value USING MESSAGE =
            'intact_barrier: the ' || CASE WHEN is_undo THEN 'forward key of an undo' ELSE 'key' END || ' is NULL';
    END IF;
    LOOP
        INSERT INTO intact_barrier AS b (forward_key, outcome)
        VALUES (step, CASE WHEN is_undo THEN 'barred' ELSE 'done' END) ON CONFLICT DO NOTHING;
        IF FOUND THEN
            verdict := CASE WHEN is_undo THEN 'nothing' ELSE 'do' END;
            RETURN;
        END IF;
        IF is_undo THEN
            UPDATE intact_barrier AS b SET outcome = 'undone', at = clock_timestamp()
            WHERE b.forward_key = step AND b.outcome = 'done' RETURNING b.output::text INTO output;
            IF FOUND THEN
                verdict := 'do';
                RETURN;
            END IF;
        END IF;
        SELECT b.outcome, CASE WHEN is_undo THEN b.undo_output ELSE b.output END::text INTO was, output
        FROM intact_barrier AS b WHERE b.forward_key = step;
        IF FOUND THEN
            verdict := CASE WHEN was = CASE WHEN is_undo THEN 'undone' ELSE 'done' END THEN 'repeat'
                            WHEN is_undo THEN 'nothing' ELSE 'undone' END;
            output := CASE WHEN verdict = 'repeat' THEN output END;
            RETURN;
        END IF;
        -- It was cleaned up this moment: once more.
    END LOOP;
END
$barrier$;

-- Records what repeats of the request will be answered, in the same transaction, once, if the verdict was "do". The
-- output is JSON; NULL: null.
CREATE OR REPLACE FUNCTION intact_barrier_done(key text, forward_key text, direction text, output text)
RETURNS void LANGUAGE plpgsql AS $barrier$
#variable_conflict use_column
DECLARE
    answer constant json := coalesce(intact_barrier_done.output, 'null')::json;
    step constant text := CASE WHEN direction = 'undo' THEN intact_barrier_done.forward_key ELSE key END;
BEGIN
    IF direction = 'undo' THEN
        UPDATE intact_barrier AS b SET undo_output = answer
        WHERE b.forward_key = step AND b.outcome = 'undone' AND b.undo_output IS NULL;
    ELSE
        UPDATE intact_barrier AS b SET output = answer
        WHERE b.forward_key = step AND b.outcome = 'done' AND b.output IS NULL;
    END IF;
    IF NOT FOUND THEN
        RAISE no_data_found USING MESSAGE = format('intact_barrier_done: the verdict about %s was not "do", or its '
            'output is on record already', coalesce(step, 'NULL'));
    END IF;
END
$barrier$;

-- Deletes at most `max` records that are older than `age`, and says how many: call it until that is 0, each time in a
-- transaction of its own. A request that comes after its record is gone takes effect again: docs/barrier.md
-- says how long to keep them.
CREATE OR REPLACE FUNCTION intact_barrier_clean(age interval, max integer DEFAULT 1000)
RETURNS bigint LANGUAGE sql AS $barrier$
    WITH gone AS (
        DELETE FROM intact_barrier WHERE forward_key IN (
            SELECT b.forward_key FROM intact_barrier AS b WHERE b.at < clock_timestamp() - age
            ORDER BY b.at LIMIT max FOR UPDATE SKIP LOCKED)
        RETURNING 1)
    SELECT count(*) FROM gone;
$barrier$;
