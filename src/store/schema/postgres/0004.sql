-- Submissions, messages, alerts, operations: what comes from applications, and what they and the
-- people who look after them are told. To change it: write the next file, never this one.

-- Tasks: what a person did to the whole of it.

-- Submissions: what applications put in here becomes tasks.

-- What the inputs of a definition are: a JSON array of {name, type, required}, or null if it names
-- none. NULL: not known (yet).
ALTER TABLE ~workflow ADD COLUMN inputs TEXT;

-- What waits to become a task, and what was refused. Values are kept as they were given: they are
-- looked at later, by the server. Applications insert into the view `submit`, or call submit().
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
    reason       TEXT
);

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

-- Outbox: what is to be told of tasks.

-- Operations: what is done to many tasks at once.

-- Alerts: what a person is told of.

-- Reserved: ids of tasks that were deleted.
SELECT 1;
