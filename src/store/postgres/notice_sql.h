#ifndef STORE_POSTGRES_NOTICE_SQL_H
#define STORE_POSTGRES_NOTICE_SQL_H

/* The statement that reads notices; part of sql.c. Which are for whom: rows/notice.h. */

/* clang-format off */
/* How far this part ($5 of $4) is from the one that a notice (n) is for. */
#define NOTICE_DISTANCE \
    "(($5::int8 - abs(hashtext(n.task)::int8) % greatest($4::int8, 1) + $4::int8) " \
    "% greatest($4::int8, 1))"
/* Since when a notice must wait to be read by this part. */
#define NOTICE_PATIENCE \
    CLOCK " - $7::int8 * CASE WHEN t.locked_by IS NULL " \
    "THEN " NOTICE_DISTANCE " ELSE (" NOTICE_DISTANCE " + 1) * $8::int8 END"
/* Bodies of others', and those beyond the bytes, are not read. OFFSET: for each a look into the
 * index, and no join with all tasks. */
#define NOTICE_READ \
    "WITH k AS MATERIALIZED (SELECT n.seq, t.locked_by, " \
    "t.seq IS NOT NULL AS has, octet_length(n.body)::int8 AS bytes, $4::int8 > 1 AND " \
    "(t.locked_by = $6 OR t.locked_by IS NULL AND " NOTICE_DISTANCE " = 0) IS NOT TRUE AS other " \
    "FROM ~notice AS n LEFT JOIN LATERAL (SELECT t.seq, t.locked_by FROM ~task AS t " \
    "WHERE t.id = n.task OFFSET 0) AS t ON true " \
    "WHERE n.refused_at IS NULL AND n.seq > $1 AND ($1::int8 = 0 OR NOT EXISTS " \
    "(SELECT 1 FROM ~notice AS m WHERE m.refused_at IS NULL AND m.task = n.task " \
    "AND m.seq <= $1)) AND ($4::int8 <= 1 OR t.locked_by = $6 " \
    "OR t.locked_by IS NULL AND " NOTICE_DISTANCE " = 0 " \
    "OR n.at <= " NOTICE_PATIENCE " AND NOT EXISTS (SELECT 1 FROM ~notice AS m " \
    "WHERE m.refused_at IS NULL AND m.task = n.task AND m.seq > $1 AND m.seq < n.seq " \
    "AND m.at > " NOTICE_PATIENCE ")) " \
    "ORDER BY n.seq LIMIT $2), " \
    "b AS (SELECT k.*, sum(bytes) OVER (ORDER BY seq) AS sum, " \
    "row_number() OVER (ORDER BY seq) AS number FROM k) " \
    "SELECT n.seq, " NOTICE_COLUMNS(OF_N, ", ") ", b.locked_by, b.has, " \
    "NOT b.has AND EXISTS (SELECT 1 FROM ~submission AS s " \
    "WHERE s.refused_at IS NULL AND s.id = n.task), b.other " \
    "FROM b JOIN ~notice AS n ON n.seq = b.seq " \
    "WHERE $3::int8 = 0 OR b.number <= 2 OR b.sum - b.bytes <= $3 ORDER BY n.seq"
/* clang-format on */

#endif
