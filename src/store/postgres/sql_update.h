#ifndef STORE_POSTGRES_SQL_UPDATE_H
#define STORE_POSTGRES_SQL_UPDATE_H

/* Pieces of the statements that insert and change rows of tasks, for sql.c, which defines what they
 * use. */

/* clang-format off */
/* Numbers are given in the order of the batch, rows inserted in that of the ids. */
#define INSERT INSERT_OF("", "")
#define INSERT_OF(before, where) \
    "WITH " before "n AS MATERIALIZED (SELECT nextval('~task_seq') AS seq, n.* FROM unnest(" \
    "$ord::int8[], $id::text[], " TASK_COLUMNS(UNNEST_TASK, ", ") ") " \
    "AS n(ord, id, " TASK_COLUMNS(NAME, ", ") ")" where "), " \
    "i AS (INSERT INTO ~task (seq, id, " TASK_COLUMNS(NAME, ", ") ") " \
    "SELECT " COLUMNS_N " FROM n WHERE coalesce((SELECT r.until FROM ~reserved AS r " \
    "WHERE r.id = n.id), 0) <= coalesce(n.submitted_at, 0) " \
    "ORDER BY n.id ON CONFLICT (id) DO NOTHING " \
    "RETURNING seq), " \
    "d AS (SELECT n.ord, n.seq FROM i JOIN n USING (seq)), " \
    "g AS (INSERT INTO ~tag (key, value, task) SELECT j.key, coalesce(j.value, 'null'), " \
    "d.seq FROM d JOIN n USING (seq) CROSS JOIN LATERAL json_each_text(n.tags::json) AS j " \
    "ON CONFLICT DO NOTHING) "

/* Those that come out of table submission are inserted only if their row waits there, and it goes
 * if they were. */
#define INSERT_SUBMITTED \
    INSERT_OF("w AS MATERIALIZED (SELECT * FROM unnest($s_ord::int8[], $s_seq::int8[], " \
    "$s_id::text[]) AS w(ord, seq, id)), " \
    "k AS MATERIALIZED (SELECT s.seq FROM ~submission AS s WHERE s.seq = ANY ($s_seq::int8[]) " \
    "AND s.refused_at IS NULL ORDER BY s.seq FOR UPDATE), " \
    "gone AS MATERIALIZED (SELECT w.ord, w.id FROM w WHERE NOT EXISTS (SELECT 1 FROM k " \
    "WHERE k.seq = w.seq)), ", \
    " WHERE NOT EXISTS (SELECT 1 FROM gone WHERE gone.ord = n.ord)") EXTRAS_INSERT("n") \
    ", x AS (DELETE FROM ~submission AS s USING w JOIN d USING (ord) WHERE s.seq = w.seq) " \
    WAITS_INSERT
#define SUBMITTED_DONE \
    "SELECT d.ord, d.seq FROM d " \
    "UNION ALL SELECT gone.ord, 0 FROM gone WHERE NOT EXISTS (SELECT 1 FROM ~task AS t " \
    "WHERE t.id = gone.id)"

/* Every change of rows that are there, each at the revision on which it was decided. They come in
 * the order of their ids, so that two batches seldom wait for each other crosswise, though the
 * database may take them in another; see UPDATE_LOCKED. */
#define UPDATE_OF(lock, from, where) UPDATE_BUT("", "", lock, from, where)
#define UPDATE_BUT(before, having, lock, from, where) \
    "WITH " before "u AS MATERIALIZED (SELECT * FROM unnest($ord::int8[], $kind::text[], " \
    "$id::text[], " \
    TASK_CHANGING_COLUMNS(UNNEST_TASK, ", ") ") AS u(ord, kind, id, " \
    TASK_CHANGING_COLUMNS(NAME, ", ") ") " having "ORDER BY u.id), " lock \
    "d AS (UPDATE ~task AS t SET " TASK_CHANGING_COLUMNS(KEPT, ) "request = u.request, " \
    "state = CASE u.kind WHEN 'q' THEN t.state WHEN 'r' THEN 'pending' ELSE u.state END, " \
    "locked_by = CASE u.kind WHEN 'q' THEN t.locked_by WHEN 'r' THEN NULL " \
    "ELSE u.locked_by END, " \
    "waiting_for = CASE u.kind WHEN 'q' THEN t.waiting_for ELSE u.waiting_for END, " \
    "rank = CASE u.kind WHEN 'q' THEN t.rank ELSE u.rank END, " \
    "wake_at = CASE u.kind WHEN 'u' THEN t.wake_at ELSE u.wake_at END, revision = u.revision " \
    "FROM " from " WHERE " where " AND t.revision = u.revision - 1 RETURNING u.ord, t.seq) "
#define UPDATE UPDATE_OF("", "u", "t.id = u.id")
#define LOCK_ROWS \
    "l AS MATERIALIZED (SELECT t.seq, u.ord FROM u JOIN ~task AS t ON t.id = u.id " \
    "WHERE t.revision = u.revision - 1 ORDER BY t.id FOR UPDATE OF t), "
#define UPDATE_LOCKED UPDATE_OF(LOCK_ROWS, "l JOIN u USING (ord)", "t.seq = l.seq")

/* A change is done only if all of its notices are there, and they go with it. They are locked
 * before the rows of tasks, in their order, as by everybody. */
#define NOTICES_LOCK \
    "nx AS MATERIALIZED (SELECT * FROM unnest($n_ord::int8[], $n_seq::int8[]) AS nx(ord, seq)), " \
    "nk AS MATERIALIZED (SELECT n.seq FROM ~notice AS n WHERE n.seq = ANY ($n_seq::int8[]) " \
    "AND n.refused_at IS NULL ORDER BY n.seq FOR UPDATE), "
#define NOTICES_THERE \
    "WHERE NOT EXISTS (SELECT 1 FROM nx WHERE nx.ord = u.ord " \
    "AND NOT EXISTS (SELECT 1 FROM nk WHERE nk.seq = nx.seq)) "
#define UPDATE_ON_NOTICES UPDATE_ON_NOTICES_BY("", "u", "t.id = u.id")
#define UPDATE_LOCKED_ON_NOTICES \
    UPDATE_ON_NOTICES_BY(LOCK_ROWS, "l JOIN u USING (ord)", "t.seq = l.seq")
#define UPDATE_ON_NOTICES_BY(lock, from, where) \
    UPDATE_BUT(NOTICES_LOCK, NOTICES_THERE, lock, from, where) EXTRAS_INSERT("u") \
    WAITS_INSERT WAITS_DELETE NOTICES_DELETE
#define NOTICES_DELETE \
    ", nz AS (DELETE FROM ~notice AS n USING nx JOIN d USING (ord) WHERE n.seq = nx.seq) "

#define DONE "SELECT d.ord, d.seq FROM d"

/* What a change that was done tells other tasks, and its new children, in the order of the batch.
 * An insertion into `submission` wakes all nodes, even if there is nothing to insert. */
#define TELLS_INSERT \
    ", ft AS (INSERT INTO ~notice (task, sender, kind, at, body) SELECT f.task, f.sender, " \
    "f.kind, " CLOCK ", f.body FROM unnest($t_ord::int8[], $t_task::text[], $t_sender::text[], " \
    "$t_kind::text[], $t_body::text[]) WITH ORDINALITY AS f(ord, task, sender, kind, body, nth) " \
    "JOIN d USING (ord) ORDER BY f.nth) "
#define CHILDREN_INSERT \
    ", fc AS (INSERT INTO ~submission (source, key, " SUBMISSION_COLUMNS(NAME, ", ") ") " \
    "SELECT n.source, n.key, " SUBMISSION_COLUMNS(OF_N, ", ") " FROM unnest($b_ord::int8[], " \
    "$b_source::text[], $b_key::text[], " SUBMISSION_COLUMNS(UNNEST_SUBMISSION, ", ") ") " \
    "WITH ORDINALITY AS n(ord, source, key, " SUBMISSION_COLUMNS(NAME, ", ") ", nth) " \
    "JOIN d USING (ord) ORDER BY n.nth ON CONFLICT (source, key) WHERE key IS NOT NULL " \
    "DO NOTHING) "
/* clang-format on */

#endif
