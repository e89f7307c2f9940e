#ifndef STORE_POSTGRES_RETIRE_SQL_H
#define STORE_POSTGRES_RETIRE_SQL_H

/* The statements that find and delete tasks that are over; part of sql.c. */

/* clang-format off */
/* What is looked at to be deleted. Messages in words that leave the planner their index of tasks
 * and no other, whatever it believes of how many there are. */
#define RETIRE_LOOK                                                                      \
    "SELECT t.seq, t.revision, t.id, t.workflow, t.state, t.ended_at, "                  \
    "t.locked_by IS NOT NULL OR t.lock_since IS NOT NULL, t.submitted_at, t.closed_at, " \
    "CASE WHEN t.ended_at IS NOT NULL THEN (SELECT true FROM ~outbox_aside AS o "        \
    "WHERE o.task >= t.id AND o.task <= t.id AND CASE WHEN o.state = 'waiting' "         \
    "THEN true END ORDER BY o.task, o.seq LIMIT 1) END "                                 \
    "IS NOT NULL, (SELECT o.created_at FROM ~outbox AS o ORDER BY o.seq LIMIT 1), "      \
    "t.root IS NOT NULL"
/* Whether it is the root of others. */
#define HAS_CHILDREN(id)                                                    \
    "(SELECT true FROM ~task AS c WHERE c.root >= " id " AND c.root <= " id \
    " ORDER BY c.root, c.seq LIMIT 1) IS NOT NULL"

/* Family by family, in their order, until there are enough. */
#define RETIRE_LOOK_ORPHANS \
    RETIRE_LOOK ", f.root, f.archive FROM (SELECT o.root, o.archive " \
    "FROM ~orphaned AS o WHERE o.root >= coalesce($3, '') ORDER BY o.root OFFSET 0) AS f " \
    "CROSS JOIN LATERAL (SELECT t.* FROM ~task AS t WHERE (t.root, t.seq) > (f.root, " \
    "CASE WHEN f.root = $3 THEN $1 ELSE 0 END) AND t.root <= f.root " \
    "ORDER BY t.root, t.seq OFFSET 0) AS t LIMIT $2"

/* Whoever has locked a row may still change it: it is left alone. So is one that was changed since
 * it was looked at, and a child of a root that is there. */
#define RETIRE \
    "WITH w AS MATERIALIZED (SELECT * FROM unnest($seq::int8[], " \
    "$revision::int8[]) AS w(seq, revision)), " \
    "l AS MATERIALIZED (SELECT t.seq, t.tags, t.id, t.workflow, t.version, t.state, " \
    "t.ended_at, t.doc, t.root, " HAS_CHILDREN("t.id") " AS parent " \
    "FROM ~task AS t WHERE t.seq = ANY ($seq::int8[]) AND t.locked_by IS NULL " \
    "AND CASE WHEN t.root IS NULL THEN true ELSE (SELECT true FROM ~task AS r " \
    "WHERE r.id = t.root) IS NULL END" \
    /* in CASE, so that the planner hashes it, and does not join */ \
    " AND CASE WHEN (t.seq, t.revision) IN (SELECT w.seq, w.revision FROM w) THEN true END " \
    "FOR UPDATE OF t SKIP LOCKED), " \
    "x AS MATERIALIZED (SELECT j.key, coalesce(j.value, 'null') AS value, l.seq " \
    "FROM l CROSS JOIN LATERAL json_each_text(l.tags::json) AS j " \
    "WHERE l.tags IS NOT NULL), " \
    /* of arrays the planner expects few elements, and looks each up */ \
    "g AS (DELETE FROM ~tag AS g USING unnest(ARRAY(SELECT key FROM x ORDER BY seq, key), " \
    "ARRAY(SELECT value FROM x ORDER BY seq, key), " \
    "ARRAY(SELECT seq FROM x ORDER BY seq, key)) AS y(key, value, task) " \
    "WHERE g.key = y.key AND g.value = y.value AND g.task = y.task), " \
    "p AS (DELETE FROM ~payload AS p WHERE p.task = ANY (ARRAY(SELECT l.seq FROM l))), " \
    "it AS (DELETE FROM ~item AS i WHERE i.task = ANY (ARRAY(SELECT l.seq FROM l))), " \
    "r AS (INSERT INTO ~reserved AS r (id, content, workflow, version, state, ended_at, " \
    "until, sha256, owner) SELECT l.id, d.doc ->> 'content', l.workflow, l.version, " \
    "l.state, l.ended_at, CASE WHEN l.parent THEN $children ELSE $until END, " \
    "(d.doc ->> 'content') || (d.doc ->> 'sha256'), " \
    "(d.doc ->> 'content') || (d.doc ->> 'owner') " \
    "FROM l CROSS JOIN LATERAL (SELECT l.doc::json AS doc) AS d " \
    "WHERE l.root IS NULL AND (l.parent OR $until::int8 IS NOT NULL) ORDER BY l.id " \
    "ON CONFLICT (id) DO UPDATE SET content = excluded.content, " \
    "workflow = excluded.workflow, version = excluded.version, state = excluded.state, " \
    "ended_at = excluded.ended_at, until = excluded.until, " \
    "sha256 = excluded.sha256, owner = excluded.owner), " \
    "f AS (INSERT INTO ~orphaned AS f (root, until, archive) SELECT l.id, " \
    "coalesce($until, 0), $archived FROM l WHERE l.parent ORDER BY l.id " \
    "ON CONFLICT (root) DO UPDATE SET until = excluded.until, archive = excluded.archive), " \
    "d AS (DELETE FROM ~task AS t WHERE t.seq = ANY (ARRAY(SELECT l.seq FROM l)) " \
    "RETURNING t.seq), " \
    "a AS (" AUDIT_INSERT(" WHERE EXISTS (SELECT 1 FROM d) AND") ") " \
    "SELECT d.seq FROM d ORDER BY d.seq"

/* Roots whose last child is gone expire as others. */
#define ORPHANED_END \
    "WITH e AS (DELETE FROM ~orphaned AS o WHERE o.root = ANY (ARRAY(" \
    "SELECT f.root FROM ~orphaned AS f WHERE NOT " HAS_CHILDREN("f.root") \
    " ORDER BY f.root LIMIT $1)) RETURNING o.root, o.until) " \
    "UPDATE ~reserved AS r SET until = e.until FROM e WHERE r.id = e.root RETURNING 1"
/* clang-format on */

#endif
