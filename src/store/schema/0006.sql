-- Submissions, messages, alerts, operations: what comes from applications, and what they and the
-- people who look after them are told. Times are milliseconds since 1970 UTC, NULL is "none".

-- Tasks: what a person did to the whole of it.

-- Submissions: what applications put in here becomes tasks.

-- Outbox: what is to be told of tasks.

-- Operations: what is done to many tasks at once.

-- Alerts: what a person is told of.

-- Reserved: ids of tasks that were deleted.
