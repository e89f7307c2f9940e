#include "cli/task_show.h"

#include <stdio.h>

#include "cli/table.h"

static void print_line(const char *name, struct slice value)
{
    if (value.len)
        printf("%-11s %.*s\n", name, SLICE_ARG(value));
}

static void print_value(const char *name, const struct json *task, const char *key)
{
    struct slice raw = json_get_raw(task, key);

    if (!slice_is(raw, "null"))
        print_line(name, raw);
}

static void print_error(const struct json *task)
{
    const struct json *e = json_get(task, "error");

    if (e && e->type == JSON_OBJECT)
        printf("%-11s %.*s: %.*s\n", "error", SLICE_ARG(json_get_text(e, "code")),
               SLICE_ARG(json_get_text(e, "message")));
}

static void add_step(struct table *t, const struct json *step)
{
    const struct json *attempts = json_get(step, "attempts");
    const struct json *error = json_get(step, "error");
    CLEANUP(buf_fini) struct buf tries = {0};

    table_add(t, json_get_text(step, "name"));
    table_add(t, json_get_text(step, "state"));
    table_add(t, json_get_text(step, "agent"));
    table_add(t, json_get_text(step, "action"));
    buf_fmt(&tries, "%u", attempts ? attempts->count : 0);
    table_add(t, buf_view(&tries));
    table_add(t, json_get_raw(step, "failure_count"));
    table_add(t, json_get_bool(step, "in_doubt", false) ? SLICE("yes") : SLICE_NONE);
    table_add(t, json_get_text(error, "code"));
}

static void print_steps(const struct json *steps)
{
    static const char *const heads[] = {"STEP",     "STATE",    "AGENT",    "ACTION",
                                        "ATTEMPTS", "FAILURES", "IN DOUBT", "ERROR"};
    CLEANUP(table_fini) struct table t = {.columns = COUNT_OF(heads)};

    for (size_t i = 0; i < COUNT_OF(heads); i++)
        table_add(&t, slice_of(heads[i]));
    for (const struct json *step = steps ? steps->child : NULL; step; step = step->next)
        add_step(&t, step);
    putchar('\n');
    table_print(&t);
}

void task_show(const struct json *task)
{
    CLEANUP(buf_fini) struct buf workflow = {0};

    buf_fmt(&workflow, "%.*s, version %.*s", SLICE_ARG(json_get_text(task, "workflow")),
            SLICE_ARG(json_get_raw(task, "version")));
    print_line("task", json_get_text(task, "id"));
    print_line("workflow", buf_view(&workflow));
    print_line("state", json_get_text(task, "state"));
    print_line("waiting for", json_get_text(task, "waiting_for"));
    print_line("submitted", json_get_text(task, "submitted_at"));
    print_line("not before", json_get_text(task, "not_before"));
    print_line("complete by", json_get_text(task, "complete_by"));
    print_line("ended", json_get_text(task, "ended_at"));
    print_value("input", task, "input");
    print_value("output", task, "output");
    print_error(task);
    print_steps(json_get(task, "steps"));
}
