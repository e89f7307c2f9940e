-- Locks: of the tasks with the same lock at most so many are between their first step and their end. A program
-- of the version before does not know such definitions: the number of this version prevents it from starting.
-- To change it: write the next file, never this one.

-- lock: 'NAME/KEY'; NULL: it needs none. lock_max: how many may hold it together with this task.
-- lock_mode: 1: while it waits for its lock, older tasks of its workflow that do so, with 1, too, are replaced;
-- 2: it was replaced. lock_since: ms UTC; NULL: it does not hold it.
ALTER TABLE ~task ADD COLUMN lock text COLLATE "C";
ALTER TABLE ~task ADD COLUMN lock_max bigint NOT NULL DEFAULT 0;
ALTER TABLE ~task ADD COLUMN lock_mode bigint NOT NULL DEFAULT 0;
ALTER TABLE ~task ADD COLUMN lock_since bigint;
CREATE INDEX task_replaces ON ~task (lock, workflow, seq) WHERE lock_mode = 1 AND waiting_for IS NOT NULL;

-- held: the number of its holders. look: somebody may wait for it while there is room, since this moment (ms UTC,
-- negative); a transaction that looks has its number there.
CREATE TABLE ~lock_key (
    lock text COLLATE "C" PRIMARY KEY,
    held bigint NOT NULL CHECK (held >= 0),
    look bigint
);
CREATE INDEX lock_key_look ON ~lock_key (look, lock) WHERE look IS NOT NULL;

-- Who holds locks: a task takes one, once. task: its seq.
CREATE TABLE ~lock_holder (
    task bigint PRIMARY KEY,
    lock text COLLATE "C" NOT NULL,
    since bigint NOT NULL
);
CREATE INDEX lock_holder_lock ON ~lock_holder (lock, task);

-- For people: which task holds which lock, and since when; and the same of each task.
CREATE OR REPLACE VIEW ~lock_view AS
SELECT h.lock, t.id AS task, to_timestamp(h.since / 1000.0) AS since
FROM ~lock_holder AS h JOIN ~task AS t ON t.seq = h.task;

CREATE OR REPLACE VIEW ~task_view AS
SELECT t.id, t.workflow, t.version, t.revision, t.state, t.direction, t.priority, t.locked_by,
    to_timestamp(t.complete_by / 1000.0) AS complete_by,
    to_timestamp(t.wake_at / 1000.0) AS wake_at,
    to_timestamp(t.not_before / 1000.0) AS not_before,
    ltrim(t.waiting_for, ',') AS waiting_for, t.request, t.failure_count,
    to_timestamp(t.submitted_at / 1000.0) AS submitted_at,
    to_timestamp(t.started_at / 1000.0) AS started_at,
    to_timestamp(t.ended_at / 1000.0) AS ended_at,
    t.reply_to, t.tags,
    coalesce(d.doc -> 'input', (SELECT p.json::json FROM ~payload AS p
        WHERE p.task = t.seq AND p.number = (d.doc ->> 'input_payload')::bigint)) AS input,
    coalesce(d.doc -> 'output', (SELECT p.json::json FROM ~payload AS p
        WHERE p.task = t.seq AND p.number = (d.doc ->> 'output_payload')::bigint)) AS output,
    d.doc -> 'error' ->> 'code' AS error_code,
    d.doc -> 'error' ->> 'message' AS error_message,
    to_timestamp(t.paused_at / 1000.0) AS paused_at,
    to_timestamp(t.closed_at / 1000.0) AS closed_at,
    d.doc ->> 'closed_reason' AS closed_reason,
    d.doc -> 'cause' ->> 'step' AS cause_step,
    d.doc -> 'cause' ->> 'code' AS cause_code,
    d.doc -> 'cause' ->> 'message' AS cause_message,
    d.doc ->> 'owner' AS owner, t.lock,
    to_timestamp(t.lock_since / 1000.0) AS lock_since
FROM ~task AS t CROSS JOIN LATERAL (SELECT t.doc::json AS doc) AS d;
