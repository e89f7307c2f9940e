-- The state store, first version. Times are milliseconds since 1970 UTC, NULL is "none".
-- To change it: write the next file, never this one. Data that people read go through the
-- views at the end, whose columns keep their meaning.

-- One row is one task, with all its steps and attempts in `doc` (JSON). Every change names the
-- revision on which it was decided and raises it by one.
CREATE TABLE task (
    seq           INTEGER PRIMARY KEY,
    id            TEXT    NOT NULL UNIQUE,
    workflow      TEXT    NOT NULL,
    version       INTEGER NOT NULL,
    submitted_at  INTEGER,
    reply_to      TEXT,
    tags          TEXT,
    revision      INTEGER NOT NULL,
    state         TEXT    NOT NULL CHECK (state IN ('pending', 'processing', 'processed',
                                                    'compensating', 'compensated', 'error')),
    direction     TEXT    NOT NULL CHECK (direction IN ('forward', 'undo')),
    priority      INTEGER NOT NULL,
    locked_by     TEXT,
    complete_by   INTEGER,
    wake_at       INTEGER,
    not_before    INTEGER,
    waiting_for   TEXT,
    rank          INTEGER NOT NULL,
    request       TEXT,
    failure_count INTEGER NOT NULL,
    started_at    INTEGER,
    ended_at      INTEGER,
    doc           TEXT    NOT NULL
) STRICT;

-- Claims: the least rank of those that wait for one agent, whatever else is stored.
CREATE INDEX task_claim ON task (waiting_for, rank) WHERE state = 'pending' AND locked_by IS NULL;
-- The supervisor's scan: costs as much as there is overdue.
CREATE INDEX task_wake ON task (wake_at) WHERE wake_at IS NOT NULL;
-- What a node held when it stopped.
CREATE INDEX task_lock ON task (locked_by) WHERE locked_by IS NOT NULL;
-- Listings. Of the processed ones there are too many to be worth an index.
CREATE INDEX task_state ON task (state) WHERE state <> 'processed';
CREATE INDEX task_workflow ON task (workflow);

-- Values too long for a task's document, inserted once and never changed. One b-tree for both
-- parts of the key: seq of the task * 2^20 + number within the task.
CREATE TABLE payload (
    key    INTEGER PRIMARY KEY,
    json   TEXT NOT NULL,
    task   INTEGER GENERATED ALWAYS AS (key >> 20) VIRTUAL,
    number INTEGER GENERATED ALWAYS AS (key & 1048575) VIRTUAL
) STRICT;

-- The tags of a task, one by one. `task` is its seq.
CREATE TABLE tag (
    key   TEXT    NOT NULL,
    value TEXT    NOT NULL,
    task  INTEGER NOT NULL,
    PRIMARY KEY (key, value, task)
) STRICT, WITHOUT ROWID;

-- Definitions as they were stored. Immutable.
CREATE TABLE workflow (
    name       TEXT    NOT NULL,
    version    INTEGER NOT NULL,
    text       TEXT    NOT NULL,
    created_at INTEGER NOT NULL,
    PRIMARY KEY (name, version)
) STRICT;

-- How often each node was started.
CREATE TABLE node (
    name TEXT    NOT NULL PRIMARY KEY,
    boot INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- What there is one of; `secret` is the key of the tokens of attempts.
CREATE TABLE meta (
    name  TEXT NOT NULL PRIMARY KEY,
    value BLOB NOT NULL
) STRICT, WITHOUT ROWID;

-- For people: the tasks with readable times and the values of their documents.
CREATE VIEW task_view AS
SELECT t.id, t.workflow, t.version, t.revision, t.state, t.direction, t.priority, t.locked_by,
    strftime('%Y-%m-%dT%H:%M:%fZ', t.complete_by / 1000.0, 'unixepoch') AS complete_by,
    strftime('%Y-%m-%dT%H:%M:%fZ', t.wake_at / 1000.0, 'unixepoch') AS wake_at,
    strftime('%Y-%m-%dT%H:%M:%fZ', t.not_before / 1000.0, 'unixepoch') AS not_before,
    t.waiting_for, t.request, t.failure_count,
    strftime('%Y-%m-%dT%H:%M:%fZ', t.submitted_at / 1000.0, 'unixepoch') AS submitted_at,
    strftime('%Y-%m-%dT%H:%M:%fZ', t.started_at / 1000.0, 'unixepoch') AS started_at,
    strftime('%Y-%m-%dT%H:%M:%fZ', t.ended_at / 1000.0, 'unixepoch') AS ended_at,
    t.reply_to, t.tags,
    coalesce(t.doc -> '$.input', (SELECT p.json FROM payload AS p
        WHERE p.key = t.seq * 1048576 + (t.doc ->> '$.input_payload'))) AS input,
    coalesce(t.doc -> '$.output', (SELECT p.json FROM payload AS p
        WHERE p.key = t.seq * 1048576 + (t.doc ->> '$.output_payload'))) AS output,
    t.doc ->> '$.error.code' AS error_code,
    t.doc ->> '$.error.message' AS error_message
FROM task AS t;

-- The steps of all tasks.
CREATE VIEW task_step AS
SELECT t.id AS task, s.key AS position, s.value ->> '$.name' AS name,
    s.value ->> '$.state' AS state,
    coalesce(s.value ->> '$.direction', 'forward') AS direction,
    coalesce(s.value ->> '$.attempt', 0) AS attempt,
    coalesce(s.value ->> '$.failure_count', 0) AS failure_count,
    coalesce(s.value ->> '$.in_doubt', 0) AS in_doubt,
    strftime('%Y-%m-%dT%H:%M:%fZ', (s.value ->> '$.wait_until') / 1000.0, 'unixepoch')
        AS wait_until,
    coalesce(s.value -> '$.input', (SELECT p.json FROM payload AS p
        WHERE p.key = t.seq * 1048576 + (s.value ->> '$.input_payload'))) AS input,
    coalesce(s.value -> '$.output', (SELECT p.json FROM payload AS p
        WHERE p.key = t.seq * 1048576 + (s.value ->> '$.output_payload'))) AS output,
    coalesce(s.value -> '$.undo_input', (SELECT p.json FROM payload AS p
        WHERE p.key = t.seq * 1048576 + (s.value ->> '$.undo_input_payload'))) AS undo_input,
    s.value ->> '$.error.code' AS error_code,
    s.value ->> '$.error.message' AS error_message,
    coalesce(s.value ->> '$.dropped.count', 0) AS attempts_dropped
FROM task AS t, json_each(t.doc, '$.steps') AS s;

-- The attempts of all steps, as far as they are kept.
CREATE VIEW task_attempt AS
SELECT t.id AS task, s.value ->> '$.name' AS step, a.value ->> '$.attempt' AS attempt,
    coalesce(a.value ->> '$.direction', 'forward') AS direction,
    a.value ->> '$.outcome' AS outcome,
    coalesce(a.value ->> '$.effect', 'none') AS effect,
    a.value ->> '$.instance' AS instance,
    strftime('%Y-%m-%dT%H:%M:%fZ', (a.value ->> '$.started_at') / 1000.0, 'unixepoch')
        AS started_at,
    strftime('%Y-%m-%dT%H:%M:%fZ', (a.value ->> '$.ended_at') / 1000.0, 'unixepoch') AS ended_at,
    strftime('%Y-%m-%dT%H:%M:%fZ', (a.value ->> '$.complete_by') / 1000.0, 'unixepoch')
        AS complete_by,
    coalesce(a.value -> '$.output', (SELECT p.json FROM payload AS p
        WHERE p.key = t.seq * 1048576 + (a.value ->> '$.output_payload'))) AS output,
    a.value ->> '$.error.code' AS error_code,
    a.value ->> '$.error.message' AS error_message
FROM task AS t, json_each(t.doc, '$.steps') AS s, json_each(s.value, '$.attempts') AS a;
