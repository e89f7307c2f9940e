#ifndef STORE_POSTGRES_ITEM_SQL_H
#define STORE_POSTGRES_ITEM_SQL_H

/* The statements about items at rest; part of sql.c. */

/* clang-format off */
/* Payloads that a change deletes which was done: one by one by their key, whatever the planner
 * believes of them. Where a row lies does not change, for it is never updated. */
#define PAYLOADS_DROP \
    ", pd AS (DELETE FROM ~payload AS p WHERE p.ctid = ANY (ARRAY(SELECT (SELECT k.ctid " \
    "FROM ~payload AS k WHERE k.task = d.seq AND k.number = x.number) FROM unnest(" \
    "$x_ord::int8[], $x_number::int8[]) AS x(ord, number) JOIN d USING (ord)))) "

/* Those of a change that was done. */
#define ITEMS_PUT \
    ", it AS (INSERT INTO ~item (task, step, generation, number, state, in_doubt, needs_undo, " \
    "doc) SELECT d.seq, i.step, i.generation, i.number, i.state, i.in_doubt <> 0, " \
    "i.needs_undo <> 0, i.doc FROM unnest($i_ord::int8[], $i_step::text[], " \
    "$i_generation::int8[], $i_number::int8[], $i_state::text[], $i_in_doubt::int8[], " \
    "$i_needs_undo::int8[], $i_doc::text[]) AS i(ord, step, generation, number, state, " \
    "in_doubt, needs_undo, doc) JOIN d USING (ord) " \
    "ON CONFLICT (task, step, generation, number) DO UPDATE SET state = excluded.state, " \
    "in_doubt = excluded.in_doubt, needs_undo = excluded.needs_undo, doc = excluded.doc) " \
    PAYLOADS_DROP

#define ITEMS_OF \
    "FROM ~item AS i WHERE i.task = (SELECT t.seq FROM ~task AS t WHERE t.id = $1) " \
    "AND i.step = $2 AND i.generation = $3 "

/* The payloads of a row (b), one by one by their key, whatever the planner believes of them. */
#define ITEM_PAYLOAD \
    "(SELECT p.json FROM ~payload AS p WHERE p.task = b.task AND p.number = n.number)"
#define ITEM_NUMBERS \
    "CASE WHEN strpos(f.doc, 'input_payload\":') > 0 THEN ARRAY(SELECT DISTINCT n.number FROM " \
    "(SELECT (f.doc::json ->> 'input_payload')::int8 AS number " \
    "UNION ALL SELECT (f.doc::json ->> 'undo_input_payload')::int8) AS n " \
    "WHERE n.number > 0 ORDER BY n.number) END"

/* A page. It is numbered when it is complete, because a window function looks for one more row.
 * What is beyond its bytes is not read, but for its length; in front of the columns stands how many
 * there are. Most rows name no payload, and then a long one need not be parsed. */
#define ITEMS(where, order) \
    "WITH r AS MATERIALIZED (SELECT i.*, " \
    "row_number() OVER (ORDER BY i.number " order ") AS place " \
    "FROM (SELECT i.task, i.number, i.state, i.in_doubt, i.needs_undo, i.doc " ITEMS_OF \
    "AND " where "ORDER BY i.number " order " LIMIT $5) AS i), " \
    "f AS MATERIALIZED (SELECT r.*, sum(octet_length(r.doc)) OVER (ORDER BY r.place) AS docs " \
    "FROM r), " \
    "b AS MATERIALIZED (SELECT f.*, " ITEM_NUMBERS " AS numbers FROM f " \
    "WHERE $6::int8 = 0 OR f.place = 1 OR f.docs <= $6), " \
    "s AS MATERIALIZED (SELECT b.*, sum(octet_length(b.doc) + coalesce((SELECT " \
    "sum(octet_length(" ITEM_PAYLOAD ")) FROM unnest(b.numbers) AS n(number)), 0)) " \
    "OVER (ORDER BY b.place) AS sum FROM b) " \
    "SELECT (SELECT count(*) FROM r), b.number, b.state, b.in_doubt, b.needs_undo, b.doc, " \
    "ARRAY(SELECT n.number FROM unnest(b.numbers) AS n(number) " \
    "WHERE " ITEM_PAYLOAD " IS NOT NULL ORDER BY n.number), " \
    "ARRAY(SELECT " ITEM_PAYLOAD " FROM unnest(b.numbers) AS n(number) " \
    "WHERE " ITEM_PAYLOAD " IS NOT NULL ORDER BY n.number) " \
    "FROM s AS b WHERE $6::int8 = 0 OR b.place = 1 OR b.sum <= $6 ORDER BY b.place"

/* One after the other by their key, until they would be too long: what lies behind is not read.
 * NULL: they are. `size` is that of the array so far, with a comma or bracket behind each. */
#define ITEMS_OUTPUTS \
    "WITH RECURSIVE t AS MATERIALIZED (SELECT t.seq FROM ~task AS t WHERE t.id = $1), " \
    "o(number, json, size) AS (SELECT -1::int8, NULL::text, 1::int8 UNION ALL " \
    "SELECT n.number, n.json, o.size + octet_length(n.json) + 1 FROM o CROSS JOIN LATERAL " \
    "(SELECT o.number + 1 AS number, coalesce((SELECT (i.doc::json -> 'output')::text " \
    "FROM ~item AS i WHERE i.task = (SELECT t.seq FROM t) AND i.step = $2 AND i.generation = $3 " \
    "AND i.number = o.number + 1), 'null') AS json OFFSET 0) AS n " \
    "WHERE o.number + 1 < $4::int8 AND o.size <= $5::int8) " \
    "SELECT CASE WHEN max(o.number) = greatest($4, 0) - 1 AND greatest(max(o.size), 2) <= $5 " \
    "THEN '[' || coalesce(string_agg(o.json, ',' ORDER BY o.number), '') || ']' END FROM o"
/* clang-format on */

#endif
