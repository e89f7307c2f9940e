-- Schedules. A program of the version before refuses their submissions: the number of this version
-- prevents it from starting.
-- To change it: write the next file, never this one.

-- One row is one schedule; `text` is its newest version, `doc` (JSON) holds what came of its moments.
-- next_at: when a moment of it is due. waits: a moment is due when the open run has ended. Every
-- change names the revision on which it was decided; seq is never used twice.
CREATE TABLE schedule (
    seq        INTEGER PRIMARY KEY AUTOINCREMENT,
    name       TEXT    NOT NULL UNIQUE,
    revision   INTEGER NOT NULL,
    version    INTEGER NOT NULL,
    workflow   TEXT    NOT NULL,
    text       TEXT    NOT NULL,
    author     TEXT    NOT NULL,
    stored_at  INTEGER NOT NULL,
    paused_at  INTEGER,
    next_at    INTEGER,
    last_at    INTEGER NOT NULL,
    waiting_at INTEGER,
    run        TEXT,
    waits      INTEGER NOT NULL,
    gap_at     INTEGER,
    doc        TEXT    NOT NULL
) STRICT;

CREATE INDEX schedule_next ON schedule (next_at) WHERE next_at IS NOT NULL;
CREATE INDEX schedule_waits ON schedule (seq) WHERE waits;
CREATE INDEX schedule_gap ON schedule (gap_at) WHERE gap_at IS NOT NULL;

CREATE TABLE schedule_version (
    name      TEXT    NOT NULL,
    version   INTEGER NOT NULL,
    text      TEXT    NOT NULL,
    author    TEXT    NOT NULL,
    stored_at INTEGER NOT NULL,
    PRIMARY KEY (name, version)
) STRICT, WITHOUT ROWID;

-- For people: schedules with readable times. gaps: moments without a task, the latest last.
CREATE VIEW schedule_view AS
SELECT name, version, workflow, author,
    strftime('%Y-%m-%dT%H:%M:%fZ', stored_at / 1000.0, 'unixepoch') AS stored_at,
    strftime('%Y-%m-%dT%H:%M:%fZ', paused_at / 1000.0, 'unixepoch') AS paused_at,
    strftime('%Y-%m-%dT%H:%M:%fZ', next_at / 1000.0, 'unixepoch') AS next_at,
    strftime('%Y-%m-%dT%H:%M:%fZ', last_at / 1000.0, 'unixepoch') AS last_at,
    strftime('%Y-%m-%dT%H:%M:%fZ', waiting_at / 1000.0, 'unixepoch') AS waiting_at,
    run, coalesce(doc ->> '$.fired', 0) AS fired, coalesce(doc ->> '$.missed', 0) AS missed,
    coalesce(doc ->> '$.skipped', 0) AS skipped, coalesce(doc ->> '$.failed', 0) AS failed,
    doc -> '$.gaps' AS gaps, text
FROM schedule;
