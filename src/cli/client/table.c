/* Tables on standard output: column widths, colours, and long cells on a terminal (table.h).
 * Cells are cleaned of control characters by terminal/term.h. table_show is a whole verb that
 * shows one list. */

#include "cli/client/table.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/when.h"
#include "cli/client/client.h"
#include "cli/client/record.h"

void table_begin(struct table *t, const struct invocation *in, const char *const *heads)
{
    enum term_color color = TERM_AUTO;

    (void)given_color(in, &color); /* checked when it was read */
    *t = (struct table){.now = clock_wall_ms()};
    term_begin(&t->term, STDOUT_FILENO, color);
    for (; heads[t->columns]; t->columns++)
        table_add_look(t, LOOK_TITLE, slice_of(heads[t->columns]));
    ASSERT(t->columns <= TABLE_COLUMNS_MAX);
}

void table_fini(struct table *t)
{
    arena_fini(&t->arena);
    free(t->cells);
}

void table_add_look(struct table *t, enum term_look look, struct slice cell)
{
    if (t->count == t->cap) {
        t->cap = t->cap ? t->cap * 2 : 64;
        t->cells = realloc(t->cells, t->cap * sizeof(*t->cells));
        if (!t->cells)
            abort();
    }
    t->cells[t->count++] =
        (struct table_cell){cell.len ? arena_copy(&t->arena, cell) : SLICE("-"), look};
}

void table_add(struct table *t, struct slice cell)
{
    table_add_look(t, LOOK_PLAIN, cell);
}

void table_add_state(struct table *t, struct slice state)
{
    table_add_look(t, term_state_look(state), state);
}

void table_add_task_state(struct table *t, const struct json *task)
{
    CLEANUP(buf_fini) struct buf b = {0};

    record_state(&b, task);
    table_add_look(t, term_state_look(json_get_text(task, "state")), buf_view(&b));
}

void table_add_time(struct table *t, struct slice rfc3339)
{
    CLEANUP(buf_fini) struct buf b = {0};
    int64_t at = 0;

    if (rfc3339.len > 0 && time_parse(rfc3339, &at))
        people_time(&b, at, t->now);
    table_add(t, b.len > 0 ? buf_view(&b) : rfc3339);
}

void table_add_number(struct table *t, int64_t n)
{
    CLEANUP(buf_fini) struct buf b = {0};

    buf_i64(&b, n);
    table_add(t, buf_view(&b));
}

static int column_width(const struct table *t, size_t column)
{
    int width = 0;

    for (size_t i = column; i < t->count; i += t->columns) {
        int cell = term_width(&t->term, t->cells[i].text);
        bool counts = cell > width && (cell <= TABLE_CELL_MAX || !t->term.live);
        width = counts ? cell : width;
    }
    return width;
}

static void put_row(const struct table *t, const struct table_cell *row, const int *widths,
                    struct buf *b)
{
    struct line l = line_begin(&t->term, b);
    int column = 0;

    l.width = INT32_MAX / 2; /* the terminal wraps long rows: nothing is cut */
    for (size_t c = 0; c < t->columns; c++) {
        if (l.column > column && c > 0)
            line_end(&l);
        line_to(&l, column);
        line_text(&l, row[c].look, row[c].text);
        column += widths[c] + 2;
    }
    line_end(&l);
}

void table_print(const struct table *t)
{
    CLEANUP(buf_fini) struct buf b = {0};
    int widths[TABLE_COLUMNS_MAX] = {0};

    ASSERT(t->columns > 0 && t->count % t->columns == 0);
    for (size_t c = 0; c < t->columns; c++)
        widths[c] = column_width(t, c);
    for (size_t i = 0; i < t->count; i += t->columns)
        put_row(t, &t->cells[i], widths, &b);
    (void)fwrite(b.ptr, 1, b.len, stdout); /* main() checks for write errors */
}

void table_add_rows(struct table *t, const struct table_view *v, const struct json *answer)
{
    const struct json *rows = json_get(answer, v->key);

    for (const struct json *j = rows ? rows->child : NULL; j; j = j->next)
        v->add(t, j);
}

static void show(const struct invocation *in, const struct table_view *v, const struct json *answer)
{
    CLEANUP(table_fini) struct table t;

    table_begin(&t, in, v->heads);
    table_add_rows(&t, v, answer);
    table_print(&t);
    if (v->tail)
        v->tail(answer);
}

int table_show(const struct invocation *in, const struct table_view *v)
{
    CLEANUP(arena_fini) struct arena a = {0};
    struct intact_client *c = client_begin(in);
    int end = CLI_OK;
    const struct json *answer = client_ask(c, "GET", v->path, NULL, &a, &end);

    if (answer && given(in, "json"))
        client_print_body(c);
    else if (answer)
        show(in, v, answer);
    intact_client_free(c);
    return end;
}
