-- Submissions, messages, alerts, operations: what comes from applications, and what they and the
-- people who look after them are told. To change it: write the next file, never this one.

-- Tasks: what a person did to the whole of it. paused_at: nothing of it starts, and its clocks stand
-- still. closed_at: it stopped in error, and is to stay so. detail: what was there before, and after.
ALTER TABLE ~task ADD COLUMN paused_at BIGINT;
ALTER TABLE ~task ADD COLUMN closed_at BIGINT;
ALTER TABLE ~audit ADD COLUMN detail TEXT;
-- What somebody has to see to: all that stopped in error and was not closed.
CREATE INDEX task_open_error ON ~task (seq) WHERE state = 'error' AND closed_at IS NULL;

CREATE OR REPLACE VIEW ~task_view AS
SELECT t.id, t.workflow, t.version, t.revision, t.state, t.direction, t.priority, t.locked_by,
    to_timestamp(t.complete_by / 1000.0) AS complete_by,
    to_timestamp(t.wake_at / 1000.0) AS wake_at,
    to_timestamp(t.not_before / 1000.0) AS not_before,
    t.waiting_for, t.request, t.failure_count,
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
    d.doc ->> 'closed_reason' AS closed_reason
FROM ~task AS t CROSS JOIN LATERAL (SELECT t.doc::json AS doc) AS d;

CREATE OR REPLACE VIEW ~task_step AS
SELECT t.id AS task, s.position - 1 AS position, s.value ->> 'name' AS name,
    s.value ->> 'state' AS state,
    coalesce(s.value ->> 'direction', 'forward') AS direction,
    coalesce((s.value ->> 'attempt')::bigint, 0) AS attempt,
    coalesce((s.value ->> 'failure_count')::bigint, 0) AS failure_count,
    coalesce((s.value ->> 'in_doubt')::boolean, false) AS in_doubt,
    to_timestamp((s.value ->> 'wait_until')::bigint / 1000.0) AS wait_until,
    coalesce(s.value -> 'input', (SELECT p.json::json FROM ~payload AS p
        WHERE p.task = t.seq AND p.number = (s.value ->> 'input_payload')::bigint)) AS input,
    coalesce(s.value -> 'output', (SELECT p.json::json FROM ~payload AS p
        WHERE p.task = t.seq AND p.number = (s.value ->> 'output_payload')::bigint)) AS output,
    coalesce(s.value -> 'undo_input', (SELECT p.json::json FROM ~payload AS p
        WHERE p.task = t.seq AND p.number = (s.value ->> 'undo_input_payload')::bigint))
        AS undo_input,
    s.value -> 'error' ->> 'code' AS error_code,
    s.value -> 'error' ->> 'message' AS error_message,
    coalesce((s.value -> 'dropped' ->> 'count')::bigint, 0) AS attempts_dropped,
    s.value -> 'resume' AS resume,
    coalesce((s.value ->> 'key_generation')::bigint, 1) AS key_generation,
    coalesce((s.value ->> 'supplied')::boolean, false) AS supplied
FROM ~task AS t
    CROSS JOIN LATERAL json_array_elements(t.doc::json -> 'steps')
    WITH ORDINALITY AS s(value, position);

CREATE OR REPLACE VIEW ~task_attempt AS
SELECT t.id AS task, s.value ->> 'name' AS step, (a.value ->> 'attempt')::bigint AS attempt,
    coalesce(a.value ->> 'direction', 'forward') AS direction,
    a.value ->> 'outcome' AS outcome,
    coalesce(a.value ->> 'effect', 'none') AS effect,
    a.value ->> 'instance' AS instance,
    to_timestamp((a.value ->> 'started_at')::bigint / 1000.0) AS started_at,
    to_timestamp((a.value ->> 'ended_at')::bigint / 1000.0) AS ended_at,
    to_timestamp((a.value ->> 'complete_by')::bigint / 1000.0) AS complete_by,
    coalesce(a.value -> 'output', (SELECT p.json::json FROM ~payload AS p
        WHERE p.task = t.seq AND p.number = (a.value ->> 'output_payload')::bigint)) AS output,
    a.value -> 'error' ->> 'code' AS error_code,
    a.value -> 'error' ->> 'message' AS error_message,
    coalesce((a.value ->> 'resent')::bigint, 0) AS resent,
    coalesce((a.value ->> 'tries')::bigint, 0) AS tries,
    coalesce((a.value ->> 'elsewhere')::boolean, false) AS elsewhere,
    coalesce((a.value ->> 'spared')::boolean, false) AS spared,
    coalesce((a.value ->> 'key_generation')::bigint, 1) AS key_generation
FROM ~task AS t
    CROSS JOIN LATERAL json_array_elements(t.doc::json -> 'steps') AS s(value)
    CROSS JOIN LATERAL json_array_elements(s.value -> 'attempts') AS a(value);

CREATE OR REPLACE VIEW ~audit_view AS
SELECT seq, to_timestamp(at / 1000.0) AS at, actor, verb, task, step, reason, detail FROM ~audit;

-- Submissions: what applications put in here becomes tasks.

-- What the inputs of a definition are: a JSON array of {name, type, required}, or null if it names
-- none. NULL: not known (yet).
ALTER TABLE ~workflow ADD COLUMN inputs TEXT;

-- What waits to become a task, and what was refused. Values are kept as they were given: they are
-- looked at later, by the server. Applications insert into the view `submit`, or call submit().
-- key: of what a queue brought, which may bring it again.
CREATE TABLE ~submission (
    seq          BIGSERIAL PRIMARY KEY,
    source       TEXT COLLATE "C" NOT NULL DEFAULT 'sql',
    id           TEXT COLLATE "C",
    workflow     TEXT COLLATE "C",
    version      TEXT,
    input        TEXT,
    priority     TEXT,
    not_before   TEXT,
    reply_to     TEXT,
    tags         TEXT,
    submitted_at BIGINT NOT NULL,
    refused_at   BIGINT,
    reason       TEXT,
    key          TEXT COLLATE "C"
);

CREATE UNIQUE INDEX submission_key ON ~submission (source, key) WHERE key IS NOT NULL;
CREATE INDEX submission_waiting ON ~submission (seq) WHERE refused_at IS NULL;
CREATE INDEX submission_refused ON ~submission (seq) WHERE refused_at IS NOT NULL;

-- Tells the nodes, who listen, when the transaction is committed; once for all of its rows.
CREATE FUNCTION ~submission_notify() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_notify('intact.' || TG_TABLE_SCHEMA, '');
    RETURN NULL;
END $$;
CREATE TRIGGER submission_notify AFTER INSERT ON ~submission
    FOR EACH STATEMENT EXECUTE FUNCTION ~submission_notify();

-- Fails if something is wrong that can be told here. It reads tables that applications may not: so
-- it runs with the rights of their owner, as the functions after it.
CREATE FUNCTION ~submit_check(a_workflow text, a_version bigint, a_id text, a_input json,
    a_priority bigint, a_reply_to text, a_tags json)
RETURNS void LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    newest bigint;
    rules json;
    rule record;
    member record;
    task record;
    kind text;
BEGIN
    SELECT max(w.version) INTO newest FROM ~workflow AS w WHERE w.name = a_workflow;
    IF newest IS NULL THEN
        RAISE EXCEPTION 'submit: workflow is %, expected the name of a workflow that is stored',
            coalesce(to_json(left(a_workflow, 80))::text, 'missing')
            USING ERRCODE = 'foreign_key_violation', COLUMN = 'workflow',
                HINT = 'Store it with: intact workflow put FILE';
    END IF;
    SELECT w.inputs::json INTO rules FROM ~workflow AS w
        WHERE w.name = a_workflow AND w.version = coalesce(a_version, newest);
    IF NOT FOUND THEN
        RAISE EXCEPTION 'submit: version is %, expected a version of workflow "%", the newest is %',
            a_version, a_workflow, newest
            USING ERRCODE = 'foreign_key_violation', COLUMN = 'version';
    END IF;
    IF a_id !~ '^[A-Za-z0-9._:-]{1,128}$' OR a_id IN ('.', '..') THEN
        RAISE EXCEPTION 'submit: id is %, expected 1 to 128 characters of [A-Za-z0-9._:-], not . or ..',
            to_json(left(a_id, 140)) USING ERRCODE = 'check_violation', COLUMN = 'id';
    END IF;
    IF a_priority NOT BETWEEN 0 AND 9 THEN
        RAISE EXCEPTION 'submit: priority is %, expected a whole number from 0 to 9', a_priority
            USING ERRCODE = 'check_violation', COLUMN = 'priority';
    END IF;
    IF octet_length(a_reply_to) NOT BETWEEN 1 AND 2048 THEN
        RAISE EXCEPTION 'submit: reply_to is % bytes long, expected an address of 1 to 2048',
            octet_length(a_reply_to) USING ERRCODE = 'check_violation', COLUMN = 'reply_to';
    END IF;

    kind := json_typeof(a_tags);
    IF kind NOT IN ('null', 'object') THEN
        RAISE EXCEPTION 'submit: tags is %, expected an object of at most 32 strings',
            left(a_tags::text, 60) USING ERRCODE = 'check_violation', COLUMN = 'tags';
    ELSIF kind = 'object' THEN
        FOR member IN SELECT t.key, t.value FROM json_each(a_tags) AS t LOOP
            IF json_typeof(member.value) <> 'string' OR member.key !~ '^[A-Za-z0-9._-]{1,64}$'
                    OR octet_length(member.value #>> '{}') > 256 THEN
                RAISE EXCEPTION 'submit: tag % is %, expected a string of at most 256 bytes under 1 to 64 of [A-Za-z0-9._-]',
                    to_json(left(member.key, 80)), left(member.value::text, 60)
                    USING ERRCODE = 'check_violation', COLUMN = 'tags';
            END IF;
        END LOOP;
    END IF;

    kind := coalesce(json_typeof(a_input), 'null');
    IF json_typeof(rules) = 'array' THEN
        IF kind NOT IN ('null', 'object') THEN
            RAISE EXCEPTION 'submit: input is %, expected an object: the inputs of workflow "%"',
                left(a_input::text, 60), a_workflow
                USING ERRCODE = 'check_violation', COLUMN = 'input';
        END IF;
        FOR rule IN SELECT r.value ->> 'name' AS name, r.value ->> 'type' AS type,
                (r.value ->> 'required')::boolean AS required,
                CASE kind WHEN 'object' THEN a_input -> (r.value ->> 'name') END AS given
                FROM json_array_elements(rules) AS r LOOP
            IF (CASE WHEN rule.given IS NULL THEN rule.required
                    WHEN rule.type = 'any' THEN false
                    WHEN rule.type = 'integer' THEN rule.given::text !~ '^-?[0-9]+$'
                    ELSE json_typeof(rule.given) <> rule.type END) THEN
                RAISE EXCEPTION 'submit: input "%" is %, expected %, for workflow "%"', rule.name,
                    coalesce(left(rule.given::text, 60), 'missing'), rule.type, a_workflow
                    USING ERRCODE = 'check_violation', COLUMN = 'input';
            END IF;
        END LOOP;
        IF kind = 'object' THEN
            FOR member IN SELECT m.key FROM json_object_keys(a_input) AS m(key)
                    WHERE NOT EXISTS (SELECT 1 FROM json_array_elements(rules) AS r
                        WHERE r.value ->> 'name' = m.key) LOOP
                RAISE EXCEPTION 'submit: input % is unknown to workflow "%"',
                    to_json(left(member.key, 80)), a_workflow
                    USING ERRCODE = 'check_violation', COLUMN = 'input';
            END LOOP;
        END IF;
    END IF;

    -- An id that is in use for something else. Inputs that have their defaults by now are left to
    -- the server, and so is what only differs in how it is written.
    SELECT t.workflow, t.doc::json -> 'input' AS input INTO task FROM ~task AS t WHERE t.id = a_id;
    IF FOUND AND task.workflow <> a_workflow THEN
        RAISE EXCEPTION 'submit: id "%" is that of another task, of workflow "%"', a_id,
            task.workflow USING ERRCODE = 'unique_violation', COLUMN = 'id';
    ELSIF FOUND AND kind = 'object' AND json_typeof(task.input) = 'object' THEN
        FOR member IN SELECT n.key, n.value AS given, o.value AS was FROM json_each(a_input) AS n
                JOIN json_each(task.input) AS o ON o.key = n.key
                WHERE n.value::jsonb <> o.value::jsonb LOOP
            RAISE EXCEPTION 'submit: id "%" is that of another task, whose input "%" is %, not %',
                a_id, member.key, left(member.was::text, 60), left(member.given::text, 60)
                USING ERRCODE = 'unique_violation', COLUMN = 'id';
        END LOOP;
    END IF;
END $$;

-- Puts a submission in: the id that it has from then on.
CREATE FUNCTION ~submission_add(a_workflow text, a_version bigint, a_id text, a_input json,
    a_priority bigint, a_not_before timestamptz, a_reply_to text, a_tags json, a_on_error text)
RETURNS text LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    now_ms bigint := floor(extract(epoch FROM clock_timestamp()) * 1000);
    -- RFC 9562, UUID version 7: the time in front, so that ids given one after another lie together
    id text := coalesce(a_id, encode(set_bit(set_bit(overlay(uuid_send(gen_random_uuid())
        PLACING substring(int8send(now_ms) FROM 3) FROM 1 FOR 6), 52, 1), 53, 1), 'hex')::uuid::text);
BEGIN
    IF a_on_error = 'raise' THEN
        PERFORM ~submit_check(a_workflow, a_version, id, a_input, a_priority, a_reply_to, a_tags);
    ELSIF a_on_error <> 'record' THEN
        RAISE EXCEPTION 'submit: on_error is %, expected "record" or "raise"', to_json(a_on_error)
            USING ERRCODE = 'check_violation', COLUMN = 'on_error';
    END IF;
    INSERT INTO ~submission (id, workflow, version, input, priority, not_before, reply_to, tags,
        submitted_at)
    VALUES (id, a_workflow, a_version, a_input, a_priority,
        to_char(a_not_before AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'), a_reply_to,
        a_tags, now_ms);
    RETURN id;
END $$;

-- For applications: INSERT INTO submit (workflow, id, input) VALUES (...), in a transaction of
-- their own. Columns that are left out have their defaults.
CREATE VIEW ~submit AS
SELECT s.workflow, s.version::bigint AS version, s.id, s.input::json AS input,
    s.priority::bigint AS priority, s.not_before::timestamptz AS not_before, s.reply_to,
    s.tags::json AS tags, NULL::text AS on_error
FROM ~submission AS s WHERE s.refused_at IS NULL AND s.source = 'sql';

CREATE FUNCTION ~submit_insert() RETURNS trigger LANGUAGE plpgsql
    SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    NEW.id := ~submission_add(NEW.workflow, NEW.version, NEW.id, NEW.input, NEW.priority,
        NEW.not_before, NEW.reply_to, NEW.tags, coalesce(NEW.on_error, 'record'));
    RETURN NEW;
END $$;
CREATE TRIGGER submit_insert INSTEAD OF INSERT ON ~submit
    FOR EACH ROW EXECUTE FUNCTION ~submit_insert();

-- The same as a call, with the id as its value.
CREATE FUNCTION ~submit(workflow text, input jsonb DEFAULT NULL, id text DEFAULT NULL,
    version bigint DEFAULT NULL, priority integer DEFAULT NULL, not_before timestamptz DEFAULT NULL,
    reply_to text DEFAULT NULL, tags jsonb DEFAULT NULL, on_error text DEFAULT 'record')
RETURNS text LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    RETURN ~submission_add(workflow, version, id, input::json, priority, not_before, reply_to,
        tags::json, coalesce(on_error, 'record'));
END $$;

-- Nobody but those to whom it is granted.
REVOKE ALL ON FUNCTION ~submit_check(text, bigint, text, json, bigint, text, json) FROM PUBLIC;
REVOKE ALL ON FUNCTION ~submission_add(text, bigint, text, json, bigint, timestamptz, text, json,
    text) FROM PUBLIC;
REVOKE ALL ON FUNCTION ~submit_insert() FROM PUBLIC;
REVOKE ALL ON FUNCTION ~submission_notify() FROM PUBLIC;
REVOKE ALL ON FUNCTION ~submit(text, jsonb, text, bigint, integer, timestamptz, text, jsonb, text)
    FROM PUBLIC;

-- Outbox: what is to be told of tasks. A message is inserted with the change that it tells of, and
-- deleted when it was delivered: most are gone a moment later.
CREATE SEQUENCE ~outbox_seq;

CREATE TABLE ~outbox (
    seq        BIGINT PRIMARY KEY DEFAULT nextval('~outbox_seq'),
    task       TEXT COLLATE "C" NOT NULL,
    name       TEXT COLLATE "C" NOT NULL,
    target     TEXT COLLATE "C" NOT NULL,
    body       TEXT NOT NULL,
    created_at BIGINT NOT NULL
) WITH (autovacuum_vacuum_scale_factor = 0.0, autovacuum_vacuum_threshold = 10000);

-- Messages that could not be delivered at once, under the same numbers.
CREATE TABLE ~outbox_aside (
    seq        BIGINT PRIMARY KEY,
    task       TEXT COLLATE "C" NOT NULL,
    name       TEXT COLLATE "C" NOT NULL,
    target     TEXT COLLATE "C" NOT NULL,
    body       TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    state      TEXT COLLATE "C" NOT NULL CHECK (state IN ('waiting', 'dead')),
    tries      BIGINT NOT NULL,
    retry_at   BIGINT,
    since      BIGINT NOT NULL,
    story      TEXT
);

CREATE INDEX outbox_state ON ~outbox_aside (state, seq);
CREATE INDEX outbox_target ON ~outbox_aside (state, target, seq);
CREATE INDEX outbox_task ON ~outbox_aside (task, seq);

-- For people: all messages that were not delivered.
CREATE VIEW ~message AS
SELECT seq, task || '/' || name AS id, task, target, 'waiting' AS state, 0::bigint AS tries,
    to_timestamp(created_at / 1000.0) AS created_at, NULL::timestamptz AS retry_at,
    NULL::text AS story, body
FROM ~outbox
UNION ALL
SELECT seq, task || '/' || name, task, target, state, tries, to_timestamp(created_at / 1000.0),
    to_timestamp(retry_at / 1000.0), story, body
FROM ~outbox_aside;

-- Operations: what is done to many tasks at once.

-- One row is one operation; `doc` (JSON) holds which tasks it concerns, what is done to them, how far
-- it is and what came of it. Every change names the revision on which it was decided.
CREATE TABLE ~operation (
    seq        BIGSERIAL PRIMARY KEY,
    id         TEXT COLLATE "C" NOT NULL UNIQUE,
    revision   BIGINT NOT NULL,
    open       BOOLEAN NOT NULL,
    state      TEXT NOT NULL,
    verb       TEXT NOT NULL,
    actor      TEXT NOT NULL,
    reason     TEXT NOT NULL,
    started_at BIGINT NOT NULL,
    ended_at   BIGINT,
    doc        TEXT NOT NULL
);

CREATE INDEX operation_open ON ~operation (seq) WHERE open;

-- For people: operations with readable times and what came of them.
CREATE VIEW ~operation_view AS
SELECT id, state, verb, actor, reason, to_timestamp(started_at / 1000.0) AS started_at,
    to_timestamp(ended_at / 1000.0) AS ended_at,
    coalesce((doc::json ->> 'matched')::bigint, 0) AS matched,
    coalesce((doc::json ->> 'done')::bigint, 0) AS done,
    coalesce((doc::json ->> 'failed')::bigint, 0) AS failed,
    coalesce((doc::json ->> 'gone')::bigint, 0) AS gone,
    doc::json -> 'refused' AS refused, doc::json -> 'filter' AS filter,
    doc::json -> 'arguments' AS arguments
FROM ~operation;

-- Alerts: what a person is told of.

-- Reserved: ids of tasks that were deleted, with what is left to be told of them. `content` is the
-- hash of the submission, as in the task's document.

CREATE TABLE ~reserved (
    id       TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    content  TEXT,
    workflow TEXT COLLATE "C" NOT NULL,
    version  BIGINT NOT NULL,
    state    TEXT COLLATE "C" NOT NULL,
    ended_at BIGINT,
    until    BIGINT NOT NULL
);

CREATE INDEX reserved_until ON ~reserved (until);
-- One row is one group: a condition and its labels. `doc` is JSON (count, examples, who was told);
-- `live` ones may yet change.
CREATE TABLE ~alert (
    seq              BIGSERIAL PRIMARY KEY,
    id               TEXT COLLATE "C" NOT NULL UNIQUE,
    key              TEXT COLLATE "C" NOT NULL,
    doc              TEXT NOT NULL,
    opened_at        BIGINT NOT NULL,
    acknowledged_at  BIGINT,
    acknowledged_by  TEXT,
    acknowledged_why TEXT,
    resolved_at      BIGINT,
    live             BOOLEAN NOT NULL
);

CREATE UNIQUE INDEX alert_live ON ~alert (key) WHERE live;
-- Tasks that wait for a person, in the order in which they stopped.
CREATE INDEX task_stopped ON ~task (ended_at, seq) WHERE state = 'error' AND closed_at IS NULL;

