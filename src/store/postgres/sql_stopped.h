#ifndef STORE_POSTGRES_SQL_STOPPED_H
#define STORE_POSTGRES_SQL_STOPPED_H

/* Whether only children hold up a task that stopped in error: of_child in rows/stopped.h. A piece
 * of a statement of PostgreSQL. */

/* clang-format off */

/* A step whose child is in error, and is waited for. */
#define STOPPED_HOLDS \
    "s.value -> 'child' ->> 'state' IN ('error', 'stuck') AND CASE WHEN t.direction = 'forward' " \
    "AND d.doc -> 'error' ->> 'code' = 'child' THEN s.value ->> 'state' = 'waiting' " \
    "ELSE s.value ->> 'state' <> 'undone' END"

/* Few children are read: those that need no help, and for which no alert stands. */
#define STOPPED_OF_CHILD \
    "EXISTS (SELECT 1 FROM json_array_elements(d.doc -> 'steps') AS s(value) " \
    "WHERE " STOPPED_HOLDS ") " \
    "AND NOT EXISTS (SELECT 1 FROM json_array_elements(d.doc -> 'steps') AS s(value) " \
    "WHERE s.value ->> 'state' = 'failed' " \
    "AND coalesce(s.value ->> 'direction', 'forward') = t.direction " \
    "AND (s.value -> 'error' ->> 'code' = d.doc -> 'error' ->> 'code' " \
    "OR (d.doc -> 'error' ->> 'code' = 'child' " \
    "AND s.value -> 'child' ->> 'state' = 'compensated'))) " \
    "AND NOT EXISTS (SELECT 1 FROM ~task AS c, json_array_elements(d.doc -> 'steps') AS s(value) "\
    "WHERE c.parent = t.id AND ((c.state = 'error' AND c.closed_at IS NOT NULL) " \
    "OR (c.state = 'processed' AND c.doc::json -> 'parent' ->> 'asked' = 'undo')) " \
    "AND s.value ->> 'name' = c.doc::json -> 'parent' ->> 'step' " \
    "AND s.value -> 'child' ->> 'number' = c.doc::json -> 'parent' ->> 'number' " \
    "AND " STOPPED_HOLDS ")"
/* clang-format on */

#endif
