-- not_before = 'infinity' is refused, and was taken as no time: such a task began at once. And who may not read
-- tasks is the role that is set, not the one that logged in.
-- To change it: write the next file, never this one.

-- As it was, but for the role that is asked for.
CREATE OR REPLACE FUNCTION ~submit_check(a_workflow text, a_version bigint, a_id text, a_input json,
    a_priority bigint, a_reply_to text, a_tags json)
RETURNS void LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    newest bigint;
    rules json;
    rule record;
    member record;
    task record;
    kind text;
    differs boolean;
    -- a pooler logs in as one role and sets another
    who name := CASE current_setting('role') WHEN 'none' THEN session_user
        ELSE current_setting('role')::name END;
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

    -- An id that is in use for something else: that it is refused here tells that the other task
    -- holds something else, one guess at a time. So only a role that may read tasks is told; of all
    -- others the server takes the submission, and refuses it. Nor is anything of the other task
    -- quoted by a conversion that fails. Inputs that have their defaults by now are left to the
    -- server, and so is what only differs in how it is written.
    IF NOT has_table_privilege(who, '~task', 'SELECT') THEN
        RETURN;
    END IF;
    BEGIN
        SELECT t.workflow, t.doc::json -> 'input' AS input INTO task FROM ~task AS t
            WHERE t.id = a_id;
        differs := FOUND AND (task.workflow <> a_workflow OR EXISTS (SELECT 1
            FROM json_each(CASE kind WHEN 'object' THEN a_input ELSE '{}' END) AS n
            JOIN json_each(CASE json_typeof(task.input) WHEN 'object' THEN task.input
                ELSE '{}' END) AS o ON o.key = n.key
            WHERE n.value::jsonb <> o.value::jsonb));
    EXCEPTION WHEN data_exception THEN
        differs := false;
    END;
    IF differs THEN
        RAISE EXCEPTION 'submit: id "%" is that of another task, with another workflow or input, expected an id that is not in use',
            a_id USING ERRCODE = 'unique_violation', COLUMN = 'id';
    END IF;
END $$;

-- As it was, but for a time that is not finite.
CREATE OR REPLACE FUNCTION ~submission_add(a_workflow text, a_version bigint, a_id text, a_input json,
    a_priority bigint, a_not_before timestamptz, a_reply_to text, a_tags json, a_on_error text)
RETURNS text LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    now_ms bigint := floor(extract(epoch FROM clock_timestamp()) * 1000);
    -- RFC 9562, UUID version 7: the time in front, so that ids given one after another lie together
    id text := coalesce(a_id, encode(set_bit(set_bit(overlay(uuid_send(gen_random_uuid())
        PLACING substring(int8send(now_ms) FROM 3) FROM 1 FOR 6), 52, 1), 53, 1), 'hex')::uuid::text);
BEGIN
    IF a_on_error = 'raise' THEN
        IF NOT isfinite(a_not_before) THEN
            RAISE EXCEPTION 'submit: not_before is %, expected a time', a_not_before
                USING ERRCODE = 'check_violation', COLUMN = 'not_before';
        END IF;
        PERFORM ~submit_check(a_workflow, a_version, id, a_input, a_priority, a_reply_to, a_tags);
    ELSIF a_on_error <> 'record' THEN
        RAISE EXCEPTION 'submit: on_error is %, expected "record" or "raise"', to_json(a_on_error)
            USING ERRCODE = 'check_violation', COLUMN = 'on_error';
    END IF;
    INSERT INTO ~submission (id, workflow, version, input, priority, not_before, reply_to, tags,
        submitted_at)
    VALUES (id, a_workflow, a_version, a_input, a_priority,
        coalesce(to_char(a_not_before AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'),
            a_not_before::text), a_reply_to, a_tags, now_ms);
    RETURN id;
END $$;
