-- Submissions, messages, alerts, operations: what comes from applications, and what they and the
-- people who look after them are told. To change it: write the next file, never this one.

-- Tasks: what a person did to the whole of it.

-- Submissions: what applications put in here becomes tasks.

-- Outbox: what is to be told of tasks.

-- Operations: what is done to many tasks at once.

-- Alerts: what a person is told of.

-- Reserved: ids of tasks that were deleted, with what is left to be told of them. `content` is the
-- hash of the submission, as in the task's document.

CREATE TABLE ~reserved (
    id       TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    content  TEXT,
    workflow TEXT COLLATE "C" NOT NULL,
    version  BIGINT NOT NULL,
    state    TEXT COLLATE "C" NOT NULL,
    ended_at BIGINT,
    until    BIGINT NOT NULL
);

CREATE INDEX reserved_until ON ~reserved (until);
