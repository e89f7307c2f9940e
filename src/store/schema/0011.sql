-- A task of which several agents could go on is found by each of them. A program of the version
-- before would not find it, and leave its waits behind: by the number of this version it is kept
-- out. To change it: write the next file, never this one.

-- The tasks that wait for several: one row for each agent, or "time", and each line of its ranks.
CREATE TABLE wait (
    agent TEXT NOT NULL,
    rank  INTEGER NOT NULL,
    task  INTEGER NOT NULL, -- task.seq
    PRIMARY KEY (agent, rank, task)
) WITHOUT ROWID;
CREATE INDEX wait_task ON wait (task);

-- What waits for one of several agents by now, or for that of a step that is not wanted, is looked
-- at anew. Steps can be ready at the same time only where a definition says `after`.
UPDATE task SET waiting_for = 'time', rank = submitted_at
WHERE state = 'pending' AND locked_by IS NULL AND waiting_for IS NOT NULL AND waiting_for <> 'time'
    AND EXISTS (SELECT 1 FROM workflow AS w WHERE w.name = task.workflow
        AND w.version = task.version AND (instr(w.text, 'after') > 0 OR instr(w.text, 'if') > 0));

-- waiting_for: several with commas between them.
DROP VIEW task_view;
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
    t.doc ->> '$.closed_reason' AS closed_reason
FROM task AS t;
