-- Submissions, messages, alerts, operations: what comes from applications, and what they and the
-- people who look after them are told. Times are milliseconds since 1970 UTC, NULL is "none".

-- Tasks: what a person did to the whole of it. paused_at: nothing of it starts, and its clocks stand
-- still. closed_at: it stopped in error, and is to stay so. detail: what was there before, and after.
ALTER TABLE task ADD COLUMN paused_at INTEGER;
ALTER TABLE task ADD COLUMN closed_at INTEGER;
ALTER TABLE audit ADD COLUMN detail TEXT;
-- What somebody has to see to: all that stopped in error and was not closed.
CREATE INDEX task_open_error ON task (seq) WHERE state = 'error' AND closed_at IS NULL;

DROP VIEW task_view;
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
    t.doc ->> '$.error.message' AS error_message,
    strftime('%Y-%m-%dT%H:%M:%fZ', t.paused_at / 1000.0, 'unixepoch') AS paused_at,
    strftime('%Y-%m-%dT%H:%M:%fZ', t.closed_at / 1000.0, 'unixepoch') AS closed_at,
    t.doc ->> '$.closed_reason' AS closed_reason
FROM task AS t;

DROP VIEW task_step;
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
    coalesce(s.value ->> '$.dropped.count', 0) AS attempts_dropped,
    s.value -> '$.resume' AS resume,
    coalesce(s.value ->> '$.key_generation', 1) AS key_generation,
    coalesce(s.value ->> '$.supplied', 0) AS supplied
FROM task AS t, json_each(t.doc, '$.steps') AS s;

DROP VIEW task_attempt;
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
    a.value ->> '$.error.message' AS error_message,
    coalesce(a.value ->> '$.resent', 0) AS resent,
    coalesce(a.value ->> '$.tries', 0) AS tries,
    coalesce(a.value ->> '$.elsewhere', 0) AS elsewhere,
    coalesce(a.value ->> '$.spared', 0) AS spared,
    coalesce(a.value ->> '$.key_generation', 1) AS key_generation
FROM task AS t, json_each(t.doc, '$.steps') AS s, json_each(s.value, '$.attempts') AS a;

DROP VIEW audit_view;
CREATE VIEW audit_view AS
SELECT seq, strftime('%Y-%m-%dT%H:%M:%fZ', at / 1000.0, 'unixepoch') AS at, actor, verb, task, step,
    reason, detail
FROM audit;

-- Submissions: what applications put in here becomes tasks.

-- What the inputs of a definition are: a JSON array of {name, type, required}, or null if it names
-- none. NULL: not known (yet).
ALTER TABLE workflow ADD COLUMN inputs TEXT;

-- What waits to become a task, and what was refused. Values are kept as they were given, of
-- whatever type: they are looked at later, by the server. Applications insert into the view
-- `submit`. seq is never used twice. key: of what a queue brought, which may bring it again.
CREATE TABLE submission (
    seq          INTEGER PRIMARY KEY AUTOINCREMENT,
    source       TEXT NOT NULL DEFAULT 'sql',
    id,
    workflow,
    version,
    input,
    priority,
    not_before,
    reply_to,
    tags,
    submitted_at INTEGER NOT NULL,
    refused_at   INTEGER,
    reason       TEXT,
    key          TEXT
);

CREATE UNIQUE INDEX submission_key ON submission (source, key) WHERE key IS NOT NULL;
CREATE INDEX submission_waiting ON submission (seq) WHERE refused_at IS NULL;
CREATE INDEX submission_refused ON submission (seq) WHERE refused_at IS NOT NULL;

-- For applications: INSERT INTO submit (workflow, id, input) VALUES (...), in a transaction of
-- their own. Columns that are left out have their defaults.
CREATE VIEW submit (workflow, version, id, input, priority, not_before, reply_to, tags, on_error) AS
SELECT workflow, version, id, input, priority, not_before, reply_to, tags, NULL
FROM submission WHERE refused_at IS NULL;

-- What is wrong with a row of `submit`, as far as that can be told here; no row: nothing. Text
-- comes out of a trigger only as part of another error: see submit_insert.
CREATE TRIGGER submit_insert INSTEAD OF INSERT ON submit
BEGIN
    SELECT json_extract('{}', 'submit: on_error is ' || json_quote(NEW.on_error)
        || ', expected "record" or "raise"')
    WHERE NEW.on_error IS NOT NULL AND (typeof(NEW.on_error) <> 'text'
        OR NEW.on_error NOT IN ('record', 'raise'));

    -- The workflow and its version.
    SELECT json_extract('{}', 'submit: workflow is '
        || CASE typeof(NEW.workflow) WHEN 'null' THEN 'missing' WHEN 'text'
            THEN json_quote(NEW.workflow) || ', and there is none of that name'
            ELSE 'of type ' || typeof(NEW.workflow) END
        || ', expected the name of a workflow that is stored')
    WHERE NEW.on_error = 'raise' AND (typeof(NEW.workflow) <> 'text'
        OR NOT EXISTS (SELECT 1 FROM workflow AS w WHERE w.name = NEW.workflow));
    SELECT json_extract('{}', 'submit: version is '
        || CASE typeof(NEW.version) WHEN 'blob' THEN 'a blob' ELSE json_quote(NEW.version) END
        || ', expected a version of workflow ' || json_quote(NEW.workflow) || ', the newest is '
        || (SELECT max(w.version) FROM workflow AS w WHERE w.name = NEW.workflow))
    WHERE NEW.on_error = 'raise' AND NEW.version IS NOT NULL AND NOT EXISTS (SELECT 1
        FROM workflow AS w WHERE w.name = NEW.workflow AND w.version = NEW.version);

    -- The rest of the row.
    SELECT json_extract('{}', 'submit: id is '
        || CASE typeof(NEW.id) WHEN 'blob' THEN 'a blob' ELSE json_quote(NEW.id) END
        || ', expected 1 to 128 characters of [A-Za-z0-9._:-], not . or ..')
    WHERE NEW.on_error = 'raise' AND NEW.id IS NOT NULL AND (typeof(NEW.id) <> 'text'
        OR length(NEW.id) NOT BETWEEN 1 AND 128 OR NEW.id GLOB '*[^A-Za-z0-9._:-]*'
        OR NEW.id IN ('.', '..'));
    SELECT json_extract('{}', 'submit: priority is '
        || CASE typeof(NEW.priority) WHEN 'blob' THEN 'a blob' ELSE json_quote(NEW.priority) END
        || ', expected a whole number from 0 to 9')
    WHERE NEW.on_error = 'raise' AND NEW.priority IS NOT NULL
        AND (typeof(NEW.priority) <> 'integer' OR NEW.priority NOT BETWEEN 0 AND 9);
    SELECT json_extract('{}', 'submit: not_before is '
        || CASE typeof(NEW.not_before) WHEN 'blob' THEN 'a blob' ELSE json_quote(NEW.not_before) END
        || ', expected a time such as "2026-01-31T10:00:00.000Z"')
    WHERE NEW.on_error = 'raise' AND NEW.not_before IS NOT NULL
        AND (typeof(NEW.not_before) <> 'text' OR julianday(NEW.not_before) IS NULL
            OR NEW.not_before NOT GLOB '[0-9][0-9][0-9][0-9]-[0-9][0-9]-[0-9][0-9][T ]*');
    SELECT json_extract('{}', 'submit: reply_to is '
        || CASE WHEN typeof(NEW.reply_to) <> 'text' THEN 'of type ' || typeof(NEW.reply_to)
            ELSE length(NEW.reply_to) || ' characters long' END
        || ', expected an address of 1 to 2048 bytes')
    WHERE NEW.on_error = 'raise' AND NEW.reply_to IS NOT NULL AND (typeof(NEW.reply_to) <> 'text'
        OR length(CAST(NEW.reply_to AS BLOB)) NOT BETWEEN 1 AND 2048);
    SELECT json_extract('{}', 'submit: tags is not JSON, expected an object of strings')
    WHERE NEW.on_error = 'raise' AND NEW.tags IS NOT NULL AND NOT json_valid(NEW.tags);
    SELECT json_extract('{}', 'submit: tags is ' || substr(NEW.tags, 1, 60)
        || ', expected an object of at most 32 strings')
    WHERE NEW.on_error = 'raise' AND NEW.tags IS NOT NULL
        AND json_type(NEW.tags) NOT IN ('null', 'object');
    SELECT json_extract('{}', 'submit: tag ' || json_quote(t.key) || ' is ' || substr(
            CASE WHEN t.type IN ('true', 'false', 'null') THEN t.type ELSE t.atom END, 1, 60)
        || ', expected a string of at most 256 bytes under 1 to 64 of [A-Za-z0-9._-]')
    FROM json_each(CASE WHEN json_valid(NEW.tags) THEN NEW.tags ELSE 'null' END) AS t
    WHERE NEW.on_error = 'raise' AND json_type(NEW.tags) = 'object' AND (t.type <> 'text'
        OR length(CAST(t.atom AS BLOB)) > 256 OR length(t.key) NOT BETWEEN 1 AND 64
        OR t.key GLOB '*[^A-Za-z0-9._-]*');

    -- The input.
    SELECT json_extract('{}', 'submit: input is not JSON, found '
        || substr(CAST(NEW.input AS TEXT), 1, 60))
    WHERE NEW.on_error = 'raise' AND NEW.input IS NOT NULL AND NOT json_valid(NEW.input);
    SELECT json_extract('{}', 'submit: input is ' || substr(NEW.input, 1, 60)
        || ', expected an object: the inputs of workflow ' || json_quote(NEW.workflow))
    FROM workflow AS w
    WHERE NEW.on_error = 'raise' AND w.name = NEW.workflow AND w.version = coalesce(NEW.version,
            (SELECT max(n.version) FROM workflow AS n WHERE n.name = NEW.workflow))
        AND json_type(w.inputs) = 'array' AND json_type(NEW.input) NOT IN ('null', 'object');
    SELECT json_extract('{}', 'submit: input ' || json_quote(i.value ->> '$.name') || ' is '
        || CASE WHEN m.type IS NULL THEN 'missing' ELSE substr(CASE m.type WHEN 'text'
            THEN json_quote(m.atom) ELSE coalesce(m.value, m.type) END, 1, 60) END
        || ', expected ' || (i.value ->> '$.type') || ', for workflow '
        || json_quote(NEW.workflow))
    FROM workflow AS w, json_each(w.inputs) AS i LEFT JOIN json_each(coalesce(NEW.input, '{}')) AS m
        ON m.key = i.value ->> '$.name'
    WHERE NEW.on_error = 'raise' AND w.name = NEW.workflow AND w.version = coalesce(NEW.version,
            (SELECT max(n.version) FROM workflow AS n WHERE n.name = NEW.workflow))
        AND json_type(w.inputs) = 'array'
        AND CASE WHEN m.type IS NULL THEN i.value ->> '$.required'
            ELSE CASE i.value ->> '$.type'
                WHEN 'string' THEN m.type <> 'text'
                WHEN 'integer' THEN m.type <> 'integer'
                WHEN 'number' THEN m.type NOT IN ('integer', 'real')
                WHEN 'boolean' THEN m.type NOT IN ('true', 'false')
                WHEN 'array' THEN m.type <> 'array'
                WHEN 'object' THEN m.type <> 'object'
                ELSE 0 END END;
    SELECT json_extract('{}', 'submit: input ' || json_quote(m.key) || ' is unknown to workflow '
        || json_quote(NEW.workflow))
    FROM workflow AS w, json_each(coalesce(NEW.input, '{}')) AS m
    WHERE NEW.on_error = 'raise' AND w.name = NEW.workflow AND w.version = coalesce(NEW.version,
            (SELECT max(n.version) FROM workflow AS n WHERE n.name = NEW.workflow))
        AND json_type(w.inputs) = 'array' AND json_type(NEW.input) = 'object'
        AND NOT EXISTS (SELECT 1 FROM json_each(w.inputs) AS i
            WHERE i.value ->> '$.name' = m.key);

    -- An id that is in use for something else. What only differs in how it is written is left to
    -- the server.
    SELECT json_extract('{}', 'submit: id ' || json_quote(NEW.id)
        || ' is that of another task, of workflow ' || json_quote(t.workflow))
    FROM task AS t
    WHERE NEW.on_error = 'raise' AND t.id = NEW.id AND t.workflow <> NEW.workflow;
    SELECT json_extract('{}', 'submit: id ' || json_quote(NEW.id)
        || ' is that of another task, whose input ' || json_quote(m.key) || ' is '
        || coalesce(json_quote(m.atom), m.type) || ', not ' || coalesce(json_quote(n.atom), n.type))
    FROM task AS t, json_each(t.doc, '$.input') AS m,
        json_each(CASE WHEN json_valid(NEW.input) THEN NEW.input ELSE '{}' END) AS n ON n.key = m.key
    WHERE NEW.on_error = 'raise' AND t.id = NEW.id AND json_type(NEW.input) = 'object'
        AND json_type(t.doc, '$.input') = 'object'
        AND (m.type <> n.type AND NOT (m.type IN ('integer', 'real') AND n.type IN ('integer', 'real'))
            OR m.atom <> n.atom);

    INSERT INTO submission (id, workflow, version, input, priority, not_before, reply_to, tags,
        submitted_at)
    SELECT coalesce(NEW.id, printf('%s-%s-7%s-%s%s-%s', substr(t.hex, 1, 8), substr(t.hex, 9, 4),
            substr(t.random, 1, 3), substr('89ab', 1 + (t.two & 3), 1), substr(t.random, 4, 3),
            substr(t.random, 7, 12))),
        NEW.workflow, NEW.version, NEW.input, NEW.priority,
        CASE WHEN NEW.not_before GLOB '[0-9][0-9][0-9][0-9]-[0-9][0-9]-[0-9][0-9] *'
            THEN coalesce(strftime('%Y-%m-%dT%H:%M:%fZ', NEW.not_before), NEW.not_before)
            ELSE NEW.not_before END,
        NEW.reply_to, NEW.tags, t.ms
    FROM (SELECT n.ms, printf('%012x', n.ms) AS hex, lower(hex(randomblob(9))) AS random,
            abs(random() % 4) AS two
        FROM (SELECT CAST(strftime('%s', 'now') AS INTEGER) * 1000
            + CAST(substr(strftime('%f', 'now'), 4) AS INTEGER) AS ms) AS n) AS t;
END;

-- Outbox: what is to be told of tasks. A message is inserted with the change that it tells of, and
-- deleted when it was delivered: most are gone a moment later, so this table has no index. Numbers
-- are given by the server, and rise.
CREATE TABLE outbox (
    seq        INTEGER PRIMARY KEY,
    task       TEXT    NOT NULL,
    name       TEXT    NOT NULL,
    target     TEXT    NOT NULL,
    body       TEXT    NOT NULL,
    created_at INTEGER NOT NULL
) STRICT;

-- Messages that could not be delivered at once, under the same numbers.
CREATE TABLE outbox_aside (
    seq        INTEGER PRIMARY KEY,
    task       TEXT    NOT NULL,
    name       TEXT    NOT NULL,
    target     TEXT    NOT NULL,
    body       TEXT    NOT NULL,
    created_at INTEGER NOT NULL,
    state      TEXT    NOT NULL CHECK (state IN ('waiting', 'dead')),
    tries      INTEGER NOT NULL,
    retry_at   INTEGER,
    since      INTEGER NOT NULL,
    story      TEXT
) STRICT;

CREATE INDEX outbox_state ON outbox_aside (state, seq);
CREATE INDEX outbox_target ON outbox_aside (state, target, seq);
CREATE INDEX outbox_task ON outbox_aside (task, seq);

-- For people: all messages that were not delivered.
CREATE VIEW message AS
SELECT seq, task || '/' || name AS id, task, target, 'waiting' AS state, 0 AS tries,
    strftime('%Y-%m-%dT%H:%M:%fZ', created_at / 1000.0, 'unixepoch') AS created_at,
    NULL AS retry_at, NULL AS story, body
FROM outbox
UNION ALL
SELECT seq, task || '/' || name, task, target, state, tries,
    strftime('%Y-%m-%dT%H:%M:%fZ', created_at / 1000.0, 'unixepoch'),
    strftime('%Y-%m-%dT%H:%M:%fZ', retry_at / 1000.0, 'unixepoch'), story, body
FROM outbox_aside;

-- Operations: what is done to many tasks at once.

-- One row is one operation; `doc` (JSON) holds which tasks it concerns, what is done to them, how far
-- it is and what came of it. Every change names the revision on which it was decided.
CREATE TABLE operation (
    seq        INTEGER PRIMARY KEY,
    id         TEXT    NOT NULL UNIQUE,
    revision   INTEGER NOT NULL,
    open       INTEGER NOT NULL,
    state      TEXT    NOT NULL,
    verb       TEXT    NOT NULL,
    actor      TEXT    NOT NULL,
    reason     TEXT    NOT NULL,
    started_at INTEGER NOT NULL,
    ended_at   INTEGER,
    doc        TEXT    NOT NULL
) STRICT;

CREATE INDEX operation_open ON operation (seq) WHERE open;

-- For people: operations with readable times and what came of them.
CREATE VIEW operation_view AS
SELECT id, state, verb, actor, reason, strftime('%Y-%m-%dT%H:%M:%fZ', started_at / 1000.0, 'unixepoch')
        AS started_at,
    strftime('%Y-%m-%dT%H:%M:%fZ', ended_at / 1000.0, 'unixepoch') AS ended_at,
    coalesce(doc ->> '$.matched', 0) AS matched, coalesce(doc ->> '$.done', 0) AS done,
    coalesce(doc ->> '$.failed', 0) AS failed, coalesce(doc ->> '$.gone', 0) AS gone,
    doc -> '$.refused' AS refused, doc -> '$.filter' AS filter, doc -> '$.arguments' AS arguments
FROM operation;

-- Alerts: what a person is told of.

-- Reserved: ids of tasks that were deleted, with what is left to be told of them. `content` is the
-- hash of the submission, as in the task's document.

CREATE TABLE reserved (
    id       TEXT NOT NULL PRIMARY KEY,
    content  TEXT,
    workflow TEXT NOT NULL,
    version  INTEGER NOT NULL,
    state    TEXT NOT NULL,
    ended_at INTEGER,
    until    INTEGER NOT NULL
) WITHOUT ROWID;

CREATE INDEX reserved_until ON reserved (until);
-- One row is one group: a condition and its labels. `doc` is JSON (count, examples, who was told);
-- `live` ones may yet change.
CREATE TABLE alert (
    seq              INTEGER PRIMARY KEY,
    id               TEXT    NOT NULL UNIQUE,
    key              TEXT    NOT NULL,
    doc              TEXT    NOT NULL,
    opened_at        INTEGER NOT NULL,
    acknowledged_at  INTEGER,
    acknowledged_by  TEXT,
    acknowledged_why TEXT,
    resolved_at      INTEGER,
    live             INTEGER NOT NULL
) STRICT;

CREATE UNIQUE INDEX alert_live ON alert (key) WHERE live;
-- Tasks that wait for a person, in the order in which they stopped.
CREATE INDEX task_stopped ON task (ended_at) WHERE state = 'error' AND closed_at IS NULL;

