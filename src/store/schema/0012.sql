-- The first failure of a task, for which it stopped or turned back, stays when its error changes. A
-- program of the version before would drop it, and evaluate .task.error to null: by the number of
-- this version it is kept out. To change it: write the next file, never this one.

-- waiting_for: several with commas between them.
-- cause_step: whose failure it was; NULL: of none, but the task's as a whole, or there was none.
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
    t.doc ->> '$.closed_reason' AS closed_reason,
    t.doc ->> '$.cause.step' AS cause_step,
    t.doc ->> '$.cause.code' AS cause_code,
    t.doc ->> '$.cause.message' AS cause_message
FROM task AS t;
