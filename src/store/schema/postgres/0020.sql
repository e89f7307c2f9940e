-- Schedules. A program of the version before refuses their submissions: the number of this version
-- prevents it from starting. While nodes of that version still run, no schedule is stored.
-- To change it: write the next file, never this one.

-- One row is one schedule; `text` is its newest version, `doc` (JSON) holds what came of its moments.
-- next_at: when a moment of it is due. waits: a moment is due when the open run has ended. Every
-- change names the revision on which it was decided; seq is never used twice.
CREATE TABLE ~schedule (
    seq        BIGSERIAL PRIMARY KEY,
    name       TEXT COLLATE "C" NOT NULL UNIQUE,
    revision   BIGINT NOT NULL,
    version    BIGINT NOT NULL,
    workflow   TEXT NOT NULL,
    text       TEXT NOT NULL,
    author     TEXT NOT NULL,
    stored_at  BIGINT NOT NULL,
    paused_at  BIGINT,
    next_at    BIGINT,
    last_at    BIGINT NOT NULL,
    waiting_at BIGINT,
    run        TEXT COLLATE "C",
    waits      BOOLEAN NOT NULL,
    gap_at     BIGINT,
    doc        TEXT NOT NULL
) WITH (fillfactor = 70);

CREATE INDEX schedule_next ON ~schedule (next_at) WHERE next_at IS NOT NULL;
CREATE INDEX schedule_waits ON ~schedule (seq) WHERE waits;
CREATE INDEX schedule_gap ON ~schedule (gap_at) WHERE gap_at IS NOT NULL;

CREATE TABLE ~schedule_version (
    name      TEXT COLLATE "C" NOT NULL,
    version   BIGINT NOT NULL,
    text      TEXT NOT NULL,
    author    TEXT NOT NULL,
    stored_at BIGINT NOT NULL,
    PRIMARY KEY (name, version)
);

-- For people: schedules with readable times. gaps: moments without a task, the latest last.
CREATE VIEW ~schedule_view AS
SELECT name, version, workflow, author, to_timestamp(stored_at / 1000.0) AS stored_at,
    to_timestamp(paused_at / 1000.0) AS paused_at, to_timestamp(next_at / 1000.0) AS next_at,
    to_timestamp(last_at / 1000.0) AS last_at, to_timestamp(waiting_at / 1000.0) AS waiting_at,
    run, coalesce((doc::json ->> 'fired')::bigint, 0) AS fired,
    coalesce((doc::json ->> 'missed')::bigint, 0) AS missed,
    coalesce((doc::json ->> 'skipped')::bigint, 0) AS skipped,
    coalesce((doc::json ->> 'failed')::bigint, 0) AS failed,
    doc::json -> 'gaps' AS gaps, text
FROM ~schedule;
