-- Notices: what tasks are told from outside their own changes.
-- To change it: write the next file, never this one.

-- A row is inserted in the transaction that it tells of, and touches no task. The change that is decided on it deletes
-- it. body: JSON. refused_at, reason: one that could not be decided on, until somebody deletes it.
CREATE TABLE notice (
    seq        INTEGER PRIMARY KEY AUTOINCREMENT,
    task       TEXT NOT NULL,
    sender     TEXT NOT NULL,
    kind       TEXT NOT NULL,
    at         INTEGER NOT NULL,
    body       TEXT NOT NULL,
    refused_at INTEGER,
    reason     TEXT
);

CREATE INDEX notice_waiting ON notice (seq) WHERE refused_at IS NULL;

-- Does an earlier one of its task wait? It ends with seq.
CREATE INDEX notice_task ON notice (task) WHERE refused_at IS NULL;

CREATE INDEX notice_refused ON notice (seq) WHERE refused_at IS NOT NULL;

-- Does a submission wait that becomes the task of a notice?
CREATE INDEX submission_id ON submission (id) WHERE refused_at IS NULL;

-- For applications: INSERT INTO signal (task, name, data, id) VALUES (...), in a transaction of their own. data: JSON.
-- id: its key; without one it is given one. Values are checked later, by the server; but it never reads what is too
-- long to be a signal, which is refused at once.
CREATE VIEW signal (task, name, data, id) AS
SELECT task, body ->> '$.name', body ->> '$.data', body ->> '$.id'
FROM notice WHERE kind = 'signal' AND refused_at IS NULL;

CREATE TRIGGER signal_insert INSTEAD OF INSERT ON signal
BEGIN
    INSERT INTO notice (task, sender, kind, at, body, refused_at, reason)
    SELECT coalesce(CAST(NEW.task AS TEXT), ''), 'sql', 'signal', t.now,
        json_object('id', coalesce(CAST(NEW.id AS TEXT), lower(hex(randomblob(16)))),
            'name', coalesce(CAST(NEW.name AS TEXT), ''),
            'data', coalesce(CAST(NEW.data AS TEXT), 'null')),
        CASE WHEN t.bytes > 65536 OR t.names > 4096 THEN t.now END,
        CASE WHEN t.bytes > 65536 THEN 'data has ' || t.bytes || ' bytes, expected at most 65536'
            WHEN t.names > 4096 THEN 'task, name and id have ' || t.names || ' bytes' END
    FROM (SELECT CAST(strftime('%s', 'now') AS INTEGER) * 1000
            + CAST(substr(strftime('%f', 'now'), 4) AS INTEGER) AS now,
        coalesce(length(CAST(NEW.data AS BLOB)), 0) AS bytes,
        coalesce(length(CAST(NEW.task AS BLOB)), 0) + coalesce(length(CAST(NEW.name AS BLOB)), 0)
            + coalesce(length(CAST(NEW.id AS BLOB)), 0) AS names) AS t;
END;

-- Signals that were refused, with the reason. Rows can be deleted.
CREATE VIEW refused_signal (seq, task, name, data, id, at, refused_at, reason) AS
SELECT seq, task, body ->> '$.name', body ->> '$.data', body ->> '$.id',
    strftime('%Y-%m-%dT%H:%M:%fZ', at / 1000.0, 'unixepoch'),
    strftime('%Y-%m-%dT%H:%M:%fZ', refused_at / 1000.0, 'unixepoch'), reason
FROM notice WHERE kind = 'signal' AND refused_at IS NOT NULL;

CREATE TRIGGER refused_signal_delete INSTEAD OF DELETE ON refused_signal
BEGIN
    DELETE FROM notice WHERE seq = OLD.seq AND refused_at IS NOT NULL;
END;
