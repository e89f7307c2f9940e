-- Evaluations that took far too long are counted by their tasks. A program of the version before
-- would evaluate them again, for ever: by the number of this version it is kept out. To change it:
-- write the next file, never this one.

-- task: an id, also of a task that was being submitted, and is not there.
CREATE TABLE overrun (
    task  TEXT NOT NULL PRIMARY KEY,
    times INTEGER NOT NULL,
    at    INTEGER NOT NULL -- the last time
) WITHOUT ROWID;
