-- Notices: what tasks are told from outside their own changes.
-- To change it: write the next file, never this one.

-- A row is inserted in the transaction that it tells of, and touches no task. The change that is decided on it deletes
-- it. body: JSON. refused_at, reason: one that could not be decided on, until somebody deletes it.
CREATE TABLE ~notice (
    seq        BIGSERIAL PRIMARY KEY,
    task       TEXT COLLATE "C" NOT NULL,
    sender     TEXT NOT NULL,
    kind       TEXT NOT NULL,
    at         BIGINT NOT NULL,
    body       TEXT NOT NULL,
    refused_at BIGINT,
    reason     TEXT
);

CREATE INDEX notice_waiting ON ~notice (seq) WHERE refused_at IS NULL;

-- Does an earlier one of its task wait?
CREATE INDEX notice_task ON ~notice (task, seq) WHERE refused_at IS NULL;

CREATE INDEX notice_refused ON ~notice (seq) WHERE refused_at IS NOT NULL;

-- Does a submission wait that becomes the task of a notice?
CREATE INDEX submission_id ON ~submission USING hash (id) WHERE refused_at IS NULL;

CREATE FUNCTION ~signal_add(a_task text, a_name text, a_data json, a_id text)
RETURNS text LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    key text := coalesce(a_id, gen_random_uuid()::text);
    now_ms bigint := floor(extract(epoch FROM clock_timestamp()) * 1000);
    bytes bigint := coalesce(octet_length(a_data::text), 0);
    names bigint := coalesce(octet_length(a_task), 0) + coalesce(octet_length(a_name), 0) + octet_length(key);
    why text := CASE WHEN bytes > 65536 THEN format('data has %s bytes, expected at most 65536', bytes)
        WHEN names > 4096 THEN format('task, name and id have %s bytes', names) END;
BEGIN
    INSERT INTO ~notice (task, sender, kind, at, body, refused_at, reason)
    VALUES (coalesce(a_task, ''), 'sql', 'signal', now_ms,
        json_build_object('id', key, 'name', coalesce(a_name, ''), 'data', coalesce(a_data::text, 'null'))::text,
        CASE WHEN why IS NOT NULL THEN now_ms END, why);
    RETURN key;
END $$;

-- For applications: INSERT INTO signal (task, name, data, id) VALUES (...), in a transaction of their own. id: its key;
-- without one it is given one. No server reads what is too long to be a signal: it is refused at once.
CREATE VIEW ~signal AS
SELECT n.task, n.body::json ->> 'name' AS name, (n.body::json ->> 'data')::json AS data, n.body::json ->> 'id' AS id
FROM ~notice AS n WHERE n.kind = 'signal' AND n.refused_at IS NULL;

CREATE FUNCTION ~signal_insert() RETURNS trigger LANGUAGE plpgsql
    SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    NEW.id := ~signal_add(NEW.task, NEW.name, NEW.data, NEW.id);
    RETURN NEW;
END $$;
CREATE TRIGGER signal_insert INSTEAD OF INSERT ON ~signal
    FOR EACH ROW EXECUTE FUNCTION ~signal_insert();

-- The same as a call, with the key as its value.
CREATE FUNCTION ~signal(task text, name text, data jsonb DEFAULT NULL, id text DEFAULT NULL)
RETURNS text LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    RETURN ~signal_add(task, name, data::json, id);
END $$;

-- Nobody but those to whom it is granted.
REVOKE ALL ON FUNCTION ~signal_add(text, text, json, text) FROM PUBLIC;
REVOKE ALL ON FUNCTION ~signal_insert() FROM PUBLIC;
REVOKE ALL ON FUNCTION ~signal(text, text, jsonb, text) FROM PUBLIC;

-- Signals that were refused, with the reason. Rows can be deleted.
CREATE VIEW ~refused_signal AS
SELECT n.seq, n.task, n.body::json ->> 'name' AS name, n.body::json ->> 'data' AS data, n.body::json ->> 'id' AS id,
    to_timestamp(n.at / 1000.0) AS at, to_timestamp(n.refused_at / 1000.0) AS refused_at, n.reason
FROM ~notice AS n WHERE n.kind = 'signal' AND n.refused_at IS NOT NULL;
