-- Locks: of the tasks with the same lock at most so many are between their first step and their end. A program
-- of the version before does not know such definitions: the number of this version prevents it from starting.
-- To change it: write the next file, never this one.

-- lock: 'NAME/KEY'; NULL: it needs none. lock_max: how many may hold it together with this task.
-- lock_mode: 1: while it waits for its lock, older tasks of its workflow that do so, with 1, too, are replaced;
-- 2: it was replaced. lock_since: ms UTC; NULL: it does not hold it.
ALTER TABLE task ADD COLUMN lock TEXT;
ALTER TABLE task ADD COLUMN lock_max INTEGER NOT NULL DEFAULT 0;
ALTER TABLE task ADD COLUMN lock_mode INTEGER NOT NULL DEFAULT 0;
ALTER TABLE task ADD COLUMN lock_since INTEGER;

-- Tasks with lock_mode 1 that began to wait. One that no longer waits goes when its lock is looked at. A partial
-- index on task would be opened by all that is claimed.
CREATE TABLE lock_replaces (
    lock TEXT NOT NULL,
    workflow TEXT NOT NULL,
    task INTEGER NOT NULL,
    PRIMARY KEY (lock, workflow, task)
) STRICT, WITHOUT ROWID;

-- held: the number of its holders. look: not 0: somebody may wait for it while there is room; the least comes first.
CREATE TABLE lock_key (
    lock TEXT PRIMARY KEY,
    held INTEGER NOT NULL CHECK (held >= 0),
    look INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX lock_key_look ON lock_key (look) WHERE look <> 0;

-- Who holds locks: a task takes one, once. task: its seq.
CREATE TABLE lock_holder (
    task INTEGER PRIMARY KEY,
    lock TEXT NOT NULL,
    since INTEGER NOT NULL
) STRICT;
CREATE INDEX lock_holder_lock ON lock_holder (lock, task);

-- For people: which task holds which lock, and since when; and the same of each task.
CREATE VIEW IF NOT EXISTS lock_view AS
SELECT h.lock, t.id AS task, strftime('%Y-%m-%dT%H:%M:%fZ', h.since / 1000.0, 'unixepoch') AS since
FROM lock_holder AS h JOIN task AS t ON t.seq = h.task;

DROP VIEW IF EXISTS task_view;
CREATE VIEW task_view AS
SELECT t.id, t.workflow, t.version, t.revision, t.state, t.direction, t.priority, t.locked_by,
    strftime('%Y-%m-%dT%H:%M:%fZ', t.complete_by / 1000.0, 'unixepoch') AS complete_by,
    strftime('%Y-%m-%dT%H:%M:%fZ', t.wake_at / 1000.0, 'unixepoch') AS wake_at,
    strftime('%Y-%m-%dT%H:%M:%fZ', t.not_before / 1000.0, 'unixepoch') AS not_before,
    ltrim(t.waiting_for, ',') AS waiting_for, t.request, t.failure_count,
    strftime('%Y-%m-%dT%H:%M:%fZ', t.submitted_at / 1000.0, 'unixepoch') AS submitted_at,
    strftime('%Y-%m-%dT%H:%M:%fZ', t.started_at / 1000.0, 'unixepoch') AS started_at,
    strftime('%Y-%m-%dT%H:%M:%fZ', t.ended_at / 1000.0, 'unixepoch') AS ended_at,
    t.reply_to, t.tags,
    coalesce(t.doc -> '$.input', (SELECT p.json FROM payload AS p
        WHERE p.key = t.seq * 1048576 + (t.doc ->> '$.input_payload'))) AS input,
    coalesce(t.doc -> '$.output', (SELECT p.json FROM payload AS p
        WHERE p.key = t.seq * 1048576 + (t.doc ->> '$.output_payload'))) AS output,
    t.doc ->> '$.error.code' AS error_code,
    t.doc ->> '$.error.message' AS error_message,
    strftime('%Y-%m-%dT%H:%M:%fZ', t.paused_at / 1000.0, 'unixepoch') AS paused_at,
    strftime('%Y-%m-%dT%H:%M:%fZ', t.closed_at / 1000.0, 'unixepoch') AS closed_at,
    t.doc ->> '$.closed_reason' AS closed_reason,
    t.doc ->> '$.cause.step' AS cause_step,
    t.doc ->> '$.cause.code' AS cause_code,
    t.doc ->> '$.cause.message' AS cause_message,
    t.doc ->> '$.owner' AS owner, t.lock,
    strftime('%Y-%m-%dT%H:%M:%fZ', t.lock_since / 1000.0, 'unixepoch') AS lock_since
FROM task AS t;
