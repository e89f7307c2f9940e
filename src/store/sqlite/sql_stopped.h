#ifndef STORE_SQLITE_SQL_STOPPED_H
#define STORE_SQLITE_SQL_STOPPED_H

/* Whether only children hold up a task that stopped in error: of_child in rows/stopped.h. A piece
 * of a statement of SQLite. */

/* clang-format off */

/* A step whose child is in error, and is waited for. */
#define STOPPED_HOLDS \
    "s.value ->> '$.child.state' IN ('error', 'stuck') AND iif(t.direction = 'forward' " \
    "AND t.doc ->> '$.error.code' = 'child', s.value ->> '$.state' = 'waiting', " \
    "s.value ->> '$.state' <> 'undone') "

/* Few children are read: those that need no help, and for which no alert stands. */
#define STOPPED_OF_CHILD \
    "EXISTS (SELECT 1 FROM json_each(t.doc, '$.steps') AS s WHERE " STOPPED_HOLDS ") " \
    "AND NOT EXISTS (SELECT 1 FROM json_each(t.doc, '$.steps') AS s " \
    "WHERE s.value ->> '$.state' = 'failed' " \
    "AND coalesce(s.value ->> '$.direction', 'forward') = t.direction " \
    "AND (s.value ->> '$.error.code' = t.doc ->> '$.error.code' " \
    "OR (t.doc ->> '$.error.code' = 'child' " \
    "AND s.value ->> '$.child.state' = 'compensated'))) " \
    "AND NOT EXISTS (SELECT 1 FROM task AS c, json_each(t.doc, '$.steps') AS s " \
    "WHERE c.parent = t.id AND ((c.state = 'error' AND c.closed_at IS NOT NULL) " \
    "OR (c.state = 'processed' AND c.doc ->> '$.parent.asked' = 'undo')) " \
    "AND s.value ->> '$.name' = c.doc ->> '$.parent.step' " \
    "AND s.value ->> '$.child.number' = c.doc ->> '$.parent.number' AND " STOPPED_HOLDS ")"
/* clang-format on */

#endif
