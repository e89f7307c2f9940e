#ifndef STORE_POSTGRES_LOCK_SQL_H
#define STORE_POSTGRES_LOCK_SQL_H

/*
 * The statements about locks of tasks. A batch writes rows of tasks first, then locks the rows of
 * all locks that it changes, in their order, and claims last, where it waits for no lock: so no two
 * batches wait for each other because of locks. The holders of a lock follow from the rows of the
 * tasks, as they are then: a change that was not made moves nothing.
 */

/* The mark of a lock that is to be looked at from now on: those that wait for longest come first.
 */
#define LOOK_NOW "-" CLOCK

/* $1: the locks. Makes their rows, and locks those that are there. */
#define LOCK_KEYS_SQL                                                                      \
    "INSERT INTO ~lock_key AS k (lock, held) SELECT DISTINCT l.lock, 0 FROM "              \
    "unnest($1::text[]) AS l(lock) ORDER BY l.lock ON CONFLICT (lock) DO UPDATE SET held " \
    "= k.held"

/* $1 ids, $2 their locks, $3 'take', 'drop' or 'look'. */
#define LOCK_MOVE_SQL                                                                              \
    "WITH c AS MATERIALIZED (SELECT t.seq, c.lock, c.move, t.lock_since FROM "                     \
    "unnest($1::text[], $2::text[], $3::text[]) AS c(id, lock, move) "                             \
    "JOIN ~task AS t ON t.id = c.id AND t.lock = c.lock), "                                        \
    "x AS (DELETE FROM ~lock_holder AS h USING c WHERE c.move = 'drop' "                           \
    "AND c.lock_since IS NULL AND h.lock = c.lock AND h.task = c.seq RETURNING h.lock), "          \
    "y AS (INSERT INTO ~lock_holder AS h (lock, task, since) SELECT c.lock, c.seq, "               \
    "c.lock_since FROM c WHERE c.move = 'take' AND c.lock_since IS NOT NULL "                      \
    "ON CONFLICT (task) DO NOTHING RETURNING h.lock) "                                             \
    "UPDATE ~lock_key AS k SET held = k.held + (SELECT count(*) FROM y WHERE y.lock = "            \
    "k.lock) - (SELECT count(*) FROM x WHERE x.lock = k.lock), look = CASE WHEN EXISTS "           \
    "(SELECT 1 FROM c WHERE c.lock = k.lock AND c.move <> 'take') THEN coalesce(k.look, " LOOK_NOW \
    ") ELSE k.look END WHERE k.lock = ANY ($2::text[])"

/* $1: the ids of those that take one, in their order. Fails if one of them that this transaction
 * wrote has no room beside those before it: of each it is known how many take the lock later. */
#define LOCK_CHECK_SQL                                                                         \
    "SELECT 1 / (count(*) = 0)::int FROM (SELECT t.lock, t.lock_max, row_number() OVER "       \
    "(PARTITION BY t.lock ORDER BY c.nth DESC) - 1 AS later FROM unnest($1::text[]) "          \
    "WITH ORDINALITY AS c(id, nth) JOIN ~task AS t ON t.id = c.id WHERE t.lock_since "         \
    "IS NOT NULL AND t.xmin::text = (txid_current() & 4294967295)::text) AS t JOIN ~lock_key " \
    "AS k ON k.lock = t.lock WHERE k.held - t.later > t.lock_max"

/* $1 ids, $2 locks, $3 submitted_at of a new task, NULL for a change: of each whether it would be
 * a conflict whatever the lock is, how many hold the lock, and who has held it for longest. */
#define LOCK_ROOM_SQL                                                                        \
    "SELECT c.at IS NOT NULL AND (EXISTS (SELECT 1 FROM ~task "                              \
    "AS t WHERE t.id = c.id) OR EXISTS (SELECT 1 FROM ~reserved AS r WHERE r.id = c.id AND " \
    "r.until > c.at)), coalesce((SELECT k.held FROM ~lock_key AS k WHERE k.lock = c.lock), " \
    "0), (SELECT t.id FROM ~lock_holder AS h JOIN ~task AS t ON t.seq = h.task WHERE "       \
    "h.lock = c.lock ORDER BY h.since, h.task LIMIT 1) FROM unnest($1::text[], $2::text[], " \
    "$3::int8[]) WITH ORDINALITY AS c(id, lock, at, nth) ORDER BY c.nth"

/* Whether a task that waits for its lock replaces older ones, and may be replaced itself. */
#define REPLACES(t)                                                                             \
    t ".lock_mode = 1 AND " t ".waiting_for IS NOT NULL AND " t ".waiting_for = '" WAITING_LOCK \
      "' || " t ".lock AND " t ".state = 'pending' AND " t ".locked_by IS NULL AND " t          \
      ".direction = 'forward'"
#define REPLACED                                                                  \
    REPLACES("t")                                                                 \
    " AND EXISTS (SELECT 1 FROM ~task AS x WHERE x.lock = t.lock AND x.workflow " \
    "= t.workflow AND x.seq > t.seq AND " REPLACES("x") ")"

/* The first of a lock's queue, as `what`; not one that is replaced. */
#define LOCK_FIRST(what, lock)                                                            \
    "SELECT " what " FROM " CLAIMABLE "'" WAITING_LOCK "' || " lock " AND NOT (" REPLACED \
    ") ORDER BY t.rank, t.seq LIMIT 1"
#define LOOKED_AT "~lock_key AS k WHERE k.look = txid_current()"

/* A claim, in four statements. Marks the locks that it looks at, which no other transaction
 * changes: $1 is how many. */
#define LOCK_LOOK_SQL                                                                   \
    "UPDATE ~lock_key AS k SET look = txid_current() WHERE k.lock = ANY (ARRAY("        \
    "SELECT o.lock FROM ~lock_key AS o WHERE o.look < 0 ORDER BY o.look DESC LIMIT $1 " \
    "FOR UPDATE SKIP LOCKED))"

/* For each lock, the tasks that are replaced, and the first that waits for it, if there is room; $3
 * is how many at most, of which those that are replaced are half. It is read after the lock was
 * locked: a task that begins to wait later sets look. */
/* clang-format off */
#define LOOKED "(SELECT k.lock, k.held FROM " LOOKED_AT " OFFSET 0) AS k CROSS JOIN LATERAL "
#define TAKERS \
    "SELECT w.seq, w.rank, w.revision, k.lock, false AS replaced FROM " LOOKED "(" \
    LOCK_FIRST("t.seq, t.rank, t.revision, t.lock_max", "k.lock") \
    " FOR UPDATE SKIP LOCKED) AS w WHERE k.held < w.lock_max"
#define LOSERS \
    "SELECT w.seq, w.rank, w.revision, k.lock, true FROM " LOOKED "(" \
    "SELECT t.seq, t.rank, t.revision FROM ~task AS t WHERE t.lock = k.lock AND " REPLACED \
    " ORDER BY t.workflow, t.seq LIMIT $3 FOR UPDATE SKIP LOCKED) AS w LIMIT ($3 + 1) / 2"
#define LOCK_TAKE_SQL \
    "WITH c AS MATERIALIZED (SELECT c.seq, c.lock, c.replaced, row_number() OVER (" \
    "ORDER BY c.replaced DESC, c.rank, c.seq) AS place " \
    "FROM ((" TAKERS ") UNION ALL (" LOSERS ")) AS c " UNCHANGED " ORDER BY place LIMIT $3), " \
    "u AS (UPDATE ~task AS t SET revision = t.revision + 1, waiting_for = NULL, " \
    "locked_by = $1, state = CASE t.direction WHEN 'undo' THEN 'compensating' " \
    "ELSE 'processing' END, started_at = CASE WHEN c.replaced THEN t.started_at " \
    "ELSE coalesce(t.started_at, $2) END, " \
    "lock_since = CASE WHEN c.replaced THEN NULL ELSE $2::bigint END, " \
    "lock_mode = CASE WHEN c.replaced THEN 2 ELSE t.lock_mode END " \
    "FROM c WHERE t.seq = c.seq RETURNING " COLUMNS_T ", c.place, c.replaced), " \
    "h AS (INSERT INTO ~lock_holder (lock, task, since) SELECT u.lock, u.seq, $2 FROM u " \
    "WHERE NOT u.replaced), " \
    "n AS (UPDATE ~lock_key AS k SET held = k.held + 1 FROM u WHERE k.lock = u.lock " \
    "AND NOT u.replaced) " \
    "SELECT " COLUMNS_U PAYLOADS("u") ", (SELECT count(*) FROM c) FROM u ORDER BY u.place"

/* Where a task waits and there is room, or is still to be replaced, the lock is looked at again,
 * after the others, also if another transaction was changing that task. A lock that no task holds
 * or waits for is deleted. */
#define LOCK_SEEN_SQL \
    "WITH w AS MATERIALIZED (SELECT k.lock, k.held, (" LOCK_FIRST("t.lock_max", "k.lock") \
    ") AS max, EXISTS (SELECT 1 FROM ~task AS t WHERE t.lock = k.lock AND " REPLACED ") AS more " \
    "FROM " LOOKED_AT "), " \
    "x AS (DELETE FROM ~lock_key AS l USING w WHERE l.lock = w.lock AND w.held = 0 " \
    "AND w.max IS NULL) " \
    "UPDATE ~lock_key AS l SET look = CASE WHEN w.max > w.held OR w.more THEN " LOOK_NOW \
    " END FROM w WHERE l.lock = w.lock AND NOT (w.held = 0 AND w.max IS NULL)"
/* clang-format on */

#define LOCK_LEFT_SQL "SELECT EXISTS (SELECT 1 FROM ~lock_key AS k WHERE k.look IS NOT NULL)"

#define LOCK_HELD_SQL                                                          \
    "SELECT k.held, t.id, h.since FROM ~lock_key AS k JOIN ~lock_holder AS h " \
    "ON h.lock = k.lock JOIN ~task AS t ON t.seq = h.task WHERE k.lock = $1 "  \
    "ORDER BY h.since, h.task LIMIT 1"

/* Holders behind the number $1, at most $2; of each at most $3 that wait are counted. */
#define LOCK_HOLDERS(which)                                                                 \
    "SELECT h.lock, t.id, h.task, h.since, " COUNT_TO(                                      \
        "$3", CLAIMABLE "'" WAITING_LOCK                                                    \
                        "' || h.lock") " FROM (SELECT h.lock, h.task, h.since "             \
                                       "FROM ~lock_holder AS h WHERE " which                \
                                       " LIMIT $2) AS h JOIN ~task AS t ON t.seq = h.task " \
                                       "ORDER BY h.task"

#endif
