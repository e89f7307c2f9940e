-- Long tasks: steps that rest may lie in the payload table, several together, so that a document
-- does not grow with its steps. In its place in `doc` such a step is the number of that payload, an
-- object that has it under its position. To change it: write the next file, never this one.

-- For people: the JSON of each step, wherever it lies. seq: of its task, as in `payload`.
CREATE VIEW ~step_document AS
SELECT t.id AS task, t.seq, e.position - 1 AS position,
    CASE json_typeof(e.value) WHEN 'number' THEN (SELECT p.json::json -> (e.position - 1)::text
        FROM ~payload AS p WHERE p.task = t.seq AND p.number = (e.value #>> '{}')::bigint)
        ELSE e.value END AS value
FROM ~task AS t
    CROSS JOIN LATERAL json_array_elements(t.doc::json -> 'steps')
    WITH ORDINALITY AS e(value, position);

CREATE OR REPLACE VIEW ~task_step AS
SELECT s.task, s.position, s.value ->> 'name' AS name,
    s.value ->> 'state' AS state,
    coalesce(s.value ->> 'direction', 'forward') AS direction,
    coalesce((s.value ->> 'attempt')::bigint, 0) AS attempt,
    coalesce((s.value ->> 'failure_count')::bigint, 0) AS failure_count,
    coalesce((s.value ->> 'in_doubt')::boolean, false) AS in_doubt,
    to_timestamp((s.value ->> 'wait_until')::bigint / 1000.0) AS wait_until,
    coalesce(s.value -> 'input', (SELECT p.json::json FROM ~payload AS p
        WHERE p.task = s.seq AND p.number = (s.value ->> 'input_payload')::bigint)) AS input,
    coalesce(s.value -> 'output', (SELECT p.json::json FROM ~payload AS p
        WHERE p.task = s.seq AND p.number = (s.value ->> 'output_payload')::bigint)) AS output,
    coalesce(s.value -> 'undo_input', (SELECT p.json::json FROM ~payload AS p
        WHERE p.task = s.seq AND p.number = (s.value ->> 'undo_input_payload')::bigint))
        AS undo_input,
    s.value -> 'error' ->> 'code' AS error_code,
    s.value -> 'error' ->> 'message' AS error_message,
    coalesce((s.value -> 'dropped' ->> 'count')::bigint, 0) AS attempts_dropped,
    s.value -> 'resume' AS resume,
    coalesce((s.value ->> 'key_generation')::bigint, 1) AS key_generation,
    coalesce((s.value ->> 'supplied')::boolean, false) AS supplied
FROM ~step_document AS s;

CREATE OR REPLACE VIEW ~task_attempt AS
SELECT s.task, s.value ->> 'name' AS step, (a.value ->> 'attempt')::bigint AS attempt,
    coalesce(a.value ->> 'direction', 'forward') AS direction,
    a.value ->> 'outcome' AS outcome,
    coalesce(a.value ->> 'effect', 'none') AS effect,
    a.value ->> 'instance' AS instance,
    to_timestamp((a.value ->> 'started_at')::bigint / 1000.0) AS started_at,
    to_timestamp((a.value ->> 'ended_at')::bigint / 1000.0) AS ended_at,
    to_timestamp((a.value ->> 'complete_by')::bigint / 1000.0) AS complete_by,
    coalesce(a.value -> 'output', (SELECT p.json::json FROM ~payload AS p
        WHERE p.task = s.seq AND p.number = (a.value ->> 'output_payload')::bigint)) AS output,
    a.value -> 'error' ->> 'code' AS error_code,
    a.value -> 'error' ->> 'message' AS error_message,
    coalesce((a.value ->> 'resent')::bigint, 0) AS resent,
    coalesce((a.value ->> 'tries')::bigint, 0) AS tries,
    coalesce((a.value ->> 'elsewhere')::boolean, false) AS elsewhere,
    coalesce((a.value ->> 'spared')::boolean, false) AS spared,
    coalesce((a.value ->> 'key_generation')::bigint, 1) AS key_generation
FROM ~step_document AS s
    CROSS JOIN LATERAL json_array_elements(s.value -> 'attempts') AS a(value);
