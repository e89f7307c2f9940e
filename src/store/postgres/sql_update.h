#ifndef STORE_POSTGRES_SQL_UPDATE_H
#define STORE_POSTGRES_SQL_UPDATE_H

/* Pieces of the statements that change rows of tasks, for sql.c, which defines what they use. */

/* clang-format off */
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
#define UPDATE_ON_NOTICES(lock, from, where) \
    UPDATE_BUT(NOTICES_LOCK, NOTICES_THERE, lock, from, where) \
    EXTRAS_INSERT("u") WAITS_INSERT WAITS_DELETE NOTICES_DELETE "SELECT d.ord, d.seq FROM d"
#define NOTICES_DELETE \
    ", nz AS (DELETE FROM ~notice AS n USING nx JOIN d USING (ord) WHERE n.seq = nx.seq) "
/* clang-format on */

#endif
