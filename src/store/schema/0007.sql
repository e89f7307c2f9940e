-- Outbox: what is to be told of tasks. One row is what one transaction has to tell one target: a
-- table of rows for each message cost a fifth of what the tasks cost themselves. `seq` is the number
-- of the first message, the others follow. `messages` is a JSON array: task, name, at (ms), and
-- either the whole event as `body`, or `data` and `sequence`, of which it is made with `source`; the
-- view `message` shows it as it is sent. A row is deleted when all of its messages were delivered,
-- or set aside; until then the numbers of those that were are in outbox_settled.
DROP VIEW message;

ALTER TABLE outbox RENAME TO outbox_one_by_one;

CREATE TABLE outbox (
    seq        INTEGER PRIMARY KEY,
    count      INTEGER NOT NULL,
    target     TEXT    NOT NULL,
    source     TEXT,
    created_at INTEGER NOT NULL,
    messages   TEXT    NOT NULL
) STRICT;

CREATE TABLE outbox_settled (
    seq INTEGER PRIMARY KEY
) STRICT;

INSERT INTO outbox (seq, count, target, created_at, messages)
SELECT seq, 1, target, created_at,
    '[{"task":' || json_quote(task) || ',"name":' || json_quote(name) || ',"at":' || created_at
    || ',"body":' || body || '}]'
FROM outbox_one_by_one;

DROP TABLE outbox_one_by_one;

-- For people: all messages that were not delivered.
CREATE VIEW message AS
SELECT m.seq, m.task || '/' || m.name AS id, m.task, m.target, 'waiting' AS state, 0 AS tries,
    m.created_at, NULL AS retry_at, NULL AS story,
    coalesce(m.body, '{"specversion":"1.0","id":' || json_quote(m.task || '/' || m.name)
        || ',"source":' || json_quote(m.source) || ',"type":"intact.task.'
        || substr(m.event, 1, instr(m.event || '/', '/') - 1) || '","subject":'
        || json_quote(m.task) || ',"time":"' || m.created_at
        || '","datacontenttype":"application/json","sequence":"' || printf('%020d', m.sequence)
        || '","data":' || m.data || '}') AS body
FROM (SELECT o.seq + j.key AS seq, o.target, o.source, j.value ->> '$.task' AS task,
        j.value ->> '$.name' AS name,
        substr(j.value ->> '$.name', instr(j.value ->> '$.name', '/') + 1) AS event,
        strftime('%Y-%m-%dT%H:%M:%fZ', (j.value ->> '$.at') / 1000.0, 'unixepoch') AS created_at,
        j.value -> '$.body' AS body, j.value -> '$.data' AS data,
        j.value ->> '$.sequence' AS sequence
    FROM outbox AS o, json_each(o.messages) AS j) AS m
WHERE m.seq NOT IN (SELECT seq FROM outbox_settled)
UNION ALL
SELECT seq, task || '/' || name, task, target, state, tries,
    strftime('%Y-%m-%dT%H:%M:%fZ', created_at / 1000.0, 'unixepoch'),
    strftime('%Y-%m-%dT%H:%M:%fZ', retry_at / 1000.0, 'unixepoch'), story, body
FROM outbox_aside;
