-- Long tasks: steps that rest may lie in the payload table, several together, so that a document
-- does not grow with its steps. In its place in `doc` such a step is the number of that payload, an
-- object that has it under its position. To change it: write the next file, never this one.

-- For people: the JSON of each step, wherever it lies. seq: of its task, as in `payload`.
CREATE VIEW step_document AS
SELECT t.id AS task, t.seq, e.key AS position,
    CASE e.type WHEN 'integer' THEN (SELECT p.json -> ('$."' || e.key || '"') FROM payload AS p
        WHERE p.key = t.seq * 1048576 + e.value) ELSE e.value END AS value
FROM task AS t, json_each(t.doc, '$.steps') AS e;

DROP VIEW task_step;
CREATE VIEW task_step AS
SELECT s.task, s.position, s.value ->> '$.name' AS name,
    s.value ->> '$.state' AS state,
    coalesce(s.value ->> '$.direction', 'forward') AS direction,
    coalesce(s.value ->> '$.attempt', 0) AS attempt,
    coalesce(s.value ->> '$.failure_count', 0) AS failure_count,
    coalesce(s.value ->> '$.in_doubt', 0) AS in_doubt,
    strftime('%Y-%m-%dT%H:%M:%fZ', (s.value ->> '$.wait_until') / 1000.0, 'unixepoch')
        AS wait_until,
    coalesce(s.value -> '$.input', (SELECT p.json FROM payload AS p
        WHERE p.key = s.seq * 1048576 + (s.value ->> '$.input_payload'))) AS input,
    coalesce(s.value -> '$.output', (SELECT p.json FROM payload AS p
        WHERE p.key = s.seq * 1048576 + (s.value ->> '$.output_payload'))) AS output,
    coalesce(s.value -> '$.undo_input', (SELECT p.json FROM payload AS p
        WHERE p.key = s.seq * 1048576 + (s.value ->> '$.undo_input_payload'))) AS undo_input,
    s.value ->> '$.error.code' AS error_code,
    s.value ->> '$.error.message' AS error_message,
    coalesce(s.value ->> '$.dropped.count', 0) AS attempts_dropped,
    s.value -> '$.resume' AS resume,
    coalesce(s.value ->> '$.key_generation', 1) AS key_generation,
    coalesce(s.value ->> '$.supplied', 0) AS supplied
FROM step_document AS s;

DROP VIEW task_attempt;
CREATE VIEW task_attempt AS
SELECT s.task, s.value ->> '$.name' AS step, a.value ->> '$.attempt' AS attempt,
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
        WHERE p.key = s.seq * 1048576 + (a.value ->> '$.output_payload'))) AS output,
    a.value ->> '$.error.code' AS error_code,
    a.value ->> '$.error.message' AS error_message,
    coalesce(a.value ->> '$.resent', 0) AS resent,
    coalesce(a.value ->> '$.tries', 0) AS tries,
    coalesce(a.value ->> '$.elsewhere', 0) AS elsewhere,
    coalesce(a.value ->> '$.spared', 0) AS spared,
    coalesce(a.value ->> '$.key_generation', 1) AS key_generation
FROM step_document AS s, json_each(s.value, '$.attempts') AS a;
