#ifndef STORE_POSTGRES_LIST_SQL_H
#define STORE_POSTGRES_LIST_SQL_H

/* What a listing of tasks looks at, and which of them fit. sql.c has the statements. */

/* Is one of the requested steps a current step of the task `c`? */
#define STANDS                                                                                  \
    "EXISTS (SELECT 1 FROM json_array_elements(c.doc::json -> 'steps') AS s(value) "            \
    "JOIN unnest($15::text[], $16::int8[], $17::text[]) AS p(workflow, version, step) "         \
    "ON s.value ->> 'name' = p.step WHERE (p.workflow IS NULL OR (p.workflow = c.workflow "     \
    "AND p.version = c.version)) AND (s.value ->> 'state' IN ('running', 'undoing', 'failed') " \
    "OR (s.value ->> 'state' = 'waiting' "                                                      \
    "AND (coalesce((s.value ->> 'failure_count')::int8, 0) > 0 "                                \
    "OR s.value ->> 'begun_at' IS NOT NULL OR s.value ->> 'round' IS NOT NULL))))"

/* The rows that a listing looks at, and which of them fit: the floor, how many were looked at, and
 * the numbers of those that fit, newest first. */
#define SCAN(from, order)                                                                      \
    "WITH c AS MATERIALIZED (SELECT t.seq, t.state, t.workflow, t.submitted_at, t.version, "   \
    "t.paused_at, t.closed_at, t.parent, t.root, t.id, "                                       \
    "t.ended_at, t.waiting_for, CASE WHEN $13::text IS NOT NULL OR $14::text IS NOT NULL OR "  \
    "cardinality($17::text[]) > 0 THEN t.doc END AS doc " from " ORDER BY " order              \
    " LIMIT $2), f AS (SELECT c.seq FROM c WHERE "                                             \
    "(cardinality($3::text[]) = 0 OR c.state = ANY ($3::text[])) "                             \
    "AND ($4::text IS NULL OR c.workflow = $4) "                                               \
    "AND ($5::int8 IS NULL OR c.submitted_at >= $5) "                                          \
    "AND ($6::int8 IS NULL OR c.submitted_at < $6) "                                           \
    "AND ($10::int8 = 0 OR c.version = $10) "                                                  \
    "AND ($11::int8 IS NULL OR c.ended_at >= $11) "                                            \
    "AND ($12::int8 IS NULL OR c.ended_at < $12) "                                             \
    "AND ($13::text IS NULL OR c.doc::json -> 'error' ->> 'code' = $13) "                      \
    "AND ((cardinality($17::text[]) = 0 AND $14::text IS NULL) OR c.waiting_for = $14 "        \
    "OR position(',' || $14 || ',' IN c.waiting_for || ',') > 0 "                              \
    "OR " STANDS ") "                                                                          \
    "AND ($19::int8 = 0 OR (c.paused_at IS NOT NULL) = ($19 = 1)) "                            \
    "AND ($20::int8 = 0 OR (c.closed_at IS NOT NULL) = ($20 = 1)) "                            \
    "AND (cardinality($21::text[]) = 0 OR EXISTS (SELECT 1 FROM unnest($21::text[]) AS p(n) "  \
    "WHERE CASE WHEN right(p.n, 1) = '*' THEN starts_with(c.workflow, left(p.n, -1)) "         \
    "ELSE c.workflow = p.n END)) "                                                             \
    "AND ($22::int8 = 0 OR (c.parent IS NOT NULL) = ($22 = 1)) "                               \
    "AND ($23::text IS NULL OR c.parent = $23) AND ($24::text IS NULL OR c.root = $24) "       \
    "AND ($25::text IS NULL OR starts_with(c.id, $25)) "                                       \
    "AND NOT EXISTS (SELECT 1 FROM unnest($7::text[], $8::text[]) AS w(key, value) WHERE NOT " \
    "EXISTS (SELECT 1 FROM ~tag AS g WHERE g.key = w.key AND g.value = w.value "               \
    "AND g.task = c.seq)) ORDER BY c.seq DESC LIMIT $9) "                                      \
    "SELECT min(c.seq), count(*), min(c.submitted_at), ARRAY(SELECT f.seq FROM f) FROM c"

#endif
