-- Rounds of repeated steps in the views. The tables are those of the version before.
-- To change it: write the next file, never this one.

-- round: of a repeated step, from 1; NULL: none began, or it does not repeat. round_at: when that round began.
-- repeat_until: a round that begins then or later is the last.
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
    coalesce(s.value -> '$.input', CASE s.value ->> '$.input_payload'
        WHEN 0 THEN (SELECT t.doc -> '$.input' FROM task AS t WHERE t.seq = s.seq)
        ELSE (SELECT p.json FROM payload AS p
            WHERE p.key = s.seq * 1048576 + (s.value ->> '$.input_payload')) END) AS input,
    coalesce(s.value -> '$.output', (SELECT p.json FROM payload AS p
        WHERE p.key = s.seq * 1048576 + (s.value ->> '$.output_payload'))) AS output,
    coalesce(s.value -> '$.undo_input', (SELECT p.json FROM payload AS p
        WHERE p.key = s.seq * 1048576 + (s.value ->> '$.undo_input_payload'))) AS undo_input,
    s.value ->> '$.error.code' AS error_code,
    s.value ->> '$.error.message' AS error_message,
    coalesce(s.value ->> '$.dropped.count', 0) AS attempts_dropped,
    s.value -> '$.resume' AS resume,
    coalesce(s.value ->> '$.key_generation', 1) AS key_generation,
    coalesce(s.value ->> '$.supplied', 0) AS supplied,
    coalesce(s.value ->> '$.resolved', 0) AS resolved,
    strftime('%Y-%m-%dT%H:%M:%fZ', (s.value ->> '$.begun_at') / 1000.0, 'unixepoch')
        AS begun_at,
    strftime('%Y-%m-%dT%H:%M:%fZ', (s.value ->> '$.complete_by') / 1000.0, 'unixepoch')
        AS complete_by,
    s.value ->> '$.round' AS round,
    strftime('%Y-%m-%dT%H:%M:%fZ', (s.value ->> '$.round_at') / 1000.0, 'unixepoch')
        AS round_at,
    strftime('%Y-%m-%dT%H:%M:%fZ', (s.value ->> '$.repeat_until') / 1000.0, 'unixepoch')
        AS repeat_until
FROM step_document AS s;

-- round: of a repeated step, as above.
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
    coalesce(a.value ->> '$.key_generation', 1) AS key_generation,
    a.value ->> '$.round' AS round
FROM step_document AS s, json_each(s.value, '$.attempts') AS a;
