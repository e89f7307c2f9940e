#ifndef CLI_CLIENT_TABLE_H
#define CLI_CLIENT_TABLE_H

/*
 * A table for people: columns as wide as their widest cell, heads, coloured states. Cells are
 * cleaned of control characters.
 *
 * On a terminal, a cell wider than TABLE_CELL_MAX does not widen its column: the rest of its row
 * goes on the next line. Elsewhere every row is one line, for grep and awk.
 */

#include "cli/terminal/term.h"
#include "cli/verb.h"
#include "json/json.h"

enum { TABLE_CELL_MAX = 40, TABLE_COLUMNS_MAX = 16 };

struct table_cell {
    struct slice text;
    enum term_look look;
};

struct table {
    struct term term; /* standard output */
    int64_t now;      /* wall clock, ms: to recognise today */
    struct arena arena;
    struct table_cell *cells;
    size_t columns, count, cap;
};

/* `heads` ends with NULL. */
void table_begin(struct table *t, const struct invocation *in, const char *const *heads);
void table_add(struct table *t, struct slice cell); /* NONE shows as "-" */
void table_add_look(struct table *t, enum term_look look, struct slice cell);
void table_add_state(struct table *t, struct slice state);
/* For a task's record or summary, see record_state. */
void table_add_task_state(struct table *t, const struct json *task);
void table_add_time(struct table *t, struct slice rfc3339); /* local, short */
void table_add_number(struct table *t, int64_t n);
void table_print(const struct table *t);
void table_fini(struct table *t);

/* Fetches an answer of the form {KEY: [...]} and shows it; `add` adds the cells of one row. With
 * --json prints the answer. Returns the exit status. */
struct table_view {
    const char *path, *key;
    const char *const *heads;
    void (*add)(struct table *t, const struct json *row);
    void (*tail)(const struct json *answer); /* prints text below the table; may be NULL */
};
/* Adds the rows of an answer. */
void table_add_rows(struct table *t, const struct table_view *v, const struct json *answer);
int table_show(const struct invocation *in, const struct table_view *v);

#endif
