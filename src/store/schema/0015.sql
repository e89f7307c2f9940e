-- The audit says from where; a submission is told nothing of what another task holds.
-- To change it: write the next file, never this one.

-- address: of who called; behind a proxy the proxy's, ' for ', and whom that says it speaks for.
-- NULL: nobody called, or it is of a version before this one.
ALTER TABLE audit ADD COLUMN address TEXT;
DROP VIEW audit_view;
CREATE VIEW audit_view AS
SELECT seq, strftime('%Y-%m-%dT%H:%M:%fZ', at / 1000.0, 'unixepoch') AS at, actor, verb, task, step,
    reason, detail, address
FROM audit;

-- As it was, but for an id that is in use.
DROP TRIGGER submit_insert;
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

    -- An id that is in use for something else: what the other task holds is not told. What only
    -- differs in how it is written is left to the server.
    SELECT json_extract('{}', 'submit: id ' || json_quote(NEW.id) || ' is that of another task, '
        || 'with another workflow or input, expected an id that is not in use')
    FROM task AS t
    WHERE NEW.on_error = 'raise' AND t.id = NEW.id AND (t.workflow <> NEW.workflow
        OR json_type(NEW.input) = 'object' AND json_type(t.doc, '$.input') = 'object'
        AND EXISTS (SELECT 1 FROM json_each(t.doc, '$.input') AS m,
            json_each(CASE WHEN json_valid(NEW.input) THEN NEW.input ELSE '{}' END) AS n
                ON n.key = m.key
            WHERE (m.type <> n.type AND NOT (m.type IN ('integer', 'real')
                AND n.type IN ('integer', 'real'))) OR m.atom <> n.atom));

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
