-- Access: who may call the server, and what people did through it.

-- Tokens by their SHA-256: the text of a token is nowhere. `roles` is a JSON array of texts; `admin`
-- says whether "admin" is one of them.
CREATE TABLE token (
    name       TEXT    NOT NULL PRIMARY KEY,
    hash       BLOB    NOT NULL UNIQUE,
    roles      TEXT    NOT NULL,
    admin      INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    expires_at INTEGER
) STRICT;

-- What was done by hand, each entry written in the transaction of the change that it tells of.
CREATE TABLE audit (
    seq    INTEGER PRIMARY KEY,
    at     INTEGER NOT NULL,
    actor  TEXT    NOT NULL,
    verb   TEXT    NOT NULL,
    task   TEXT,
    step   TEXT,
    reason TEXT
) STRICT;

CREATE INDEX audit_task ON audit (task) WHERE task IS NOT NULL;

CREATE TRIGGER audit_stands BEFORE UPDATE ON audit
BEGIN SELECT RAISE(ABORT, 'the audit is only added to'); END;
CREATE TRIGGER audit_stays BEFORE DELETE ON audit
BEGIN SELECT RAISE(ABORT, 'the audit is only added to'); END;

-- For people: the same with readable times.
CREATE VIEW audit_view AS
SELECT seq, strftime('%Y-%m-%dT%H:%M:%fZ', at / 1000.0, 'unixepoch') AS at, actor, verb, task, step,
    reason
FROM audit;
