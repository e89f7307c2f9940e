-- Evaluations that took far too long are counted by their tasks. A program of the version before
-- would evaluate them again, for ever, and does not start once this number is there.
-- To change it: write the next file, never this one.

-- task: an id, also of a task that was being submitted, and is not there.
CREATE TABLE ~overrun (
    task  TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    times BIGINT NOT NULL,
    at    BIGINT NOT NULL -- the last time
);
