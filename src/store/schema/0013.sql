-- A task belongs to the token that it was submitted with. A program of the version before would drop
-- that, and would let every token that may submit read and cancel the tasks of all: by the number of
-- this version it is kept out. To change it: write the next file, never this one.

-- previous_hash: of the text that a rotation replaced; it is good until previous_until.
-- limits: what the token may use, as JSON; NULL: what the server allows by default.
ALTER TABLE token ADD COLUMN previous_hash BLOB;
ALTER TABLE token ADD COLUMN previous_until INTEGER;
ALTER TABLE token ADD COLUMN limits TEXT;

-- owner: the name of the token that the task was submitted with; NULL: of none.
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
    t.doc ->> '$.cause.message' AS cause_message,
    t.doc ->> '$.owner' AS owner
FROM task AS t;
