-- An application's own table, and an order that is placed together with its task. The sqlite3 shell and psql both take it.
CREATE TABLE IF NOT EXISTS shop_order (id TEXT PRIMARY KEY, total NUMERIC NOT NULL);

BEGIN;
INSERT INTO shop_order (id, total) VALUES ('o-17', 12.5);
INSERT INTO submit (workflow, id, input) VALUES ('shop', 'o-17', '{"total": 12.5}');
COMMIT;
