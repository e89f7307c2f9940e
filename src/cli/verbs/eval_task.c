/* What expressions of a task see, for `intact eval --task` (eval_context.h), rebuilt from the
 * task's record and the pages of its items. The server's own is scheduler/inputs.c. */

#include "cli/client/client.h"
#include "cli/verbs/eval_context.h"

enum { ERRORS_MAX = 100, OUTPUTS_SIZE_MAX = 16 << 20, PAGE = 500 };

struct task_view {
    const struct invocation *in;
    struct intact_client *client;
    struct arena *arena;
    const struct json *record;
    int end; /* anything but CLI_OK: it failed, which was reported */
};

static void put_error(struct buf *b, const struct json *error, struct slice step, bool has_step)
{
    json_key(b, "error");
    if (!error || error->type != JSON_OBJECT) {
        json_null(b);
        return;
    }
    json_open(b, '{');
    if (has_step)
        json_member_text(b, "step", step);
    json_member_text(b, "code", json_get_text(error, "code"));
    json_member_text(b, "message", json_get_text(error, "message"));
    json_close(b, '}');
}

/* ---- items ---- */

/* All pages of items, one by one. `query` is added to the path. */
static void each_item(struct task_view *v, struct slice step, const char *query,
                      bool (*take)(void *arg, const struct json *item), void *arg)
{
    CLEANUP(buf_fini) struct buf cursor = {0};

    do {
        CLEANUP(arena_fini) struct arena a = {0};
        CLEANUP(buf_fini) struct buf path = {0};
        buf_str(&path, "/v1/tasks/");
        client_escape(&path, json_get_text(v->record, "id"));
        buf_str(&path, "/items?step=");
        client_escape(&path, step);
        buf_fmt(&path, "&limit=%d%s", PAGE, query);
        if (cursor.len > 0)
            buf_fmt(&path, "&cursor=%s", cursor.ptr);
        const struct json *page = client_ask(v->client, "GET", path.ptr, NULL, &a, &v->end);
        buf_clear(&cursor);
        if (!page)
            return;
        buf_slice(&cursor, json_get_text(page, "next"));
        const struct json *items = json_get(page, "items");
        for (const struct json *j = items ? items->child : NULL; j; j = j->next)
            if (!take(arg, j))
                return;
    } while (cursor.len > 0);
}

struct listing {
    struct buf *b;
    size_t count;
};

static bool take_output(void *arg, const struct json *item)
{
    const struct listing *l = arg;

    json_raw(l->b, json_get_raw(item, "output"));
    return l->b->len <= OUTPUTS_SIZE_MAX;
}

static bool take_error(void *arg, const struct json *item)
{
    struct listing *l = arg;
    const struct json *error = json_get(item, "error");

    json_open(l->b, '{');
    json_member_number(l->b, "index", json_get_int(item, "item", 0));
    json_member_text(l->b, "code", json_get_text(error, "code"));
    json_member_text(l->b, "message", json_get_text(error, "message"));
    json_close(l->b, '}');
    return ++l->count < ERRORS_MAX;
}

static void put_items(struct task_view *v, struct buf *b, const struct json *step,
                      const struct json *items)
{
    struct slice name = json_get_text(step, "name");
    struct listing l = {b, 0};

    json_key(b, "output");
    if (slice_is(json_get_text(step, "state"), "completed")) {
        json_open(b, '[');
        each_item(v, name, "", take_output, &l);
        json_close(b, ']');
    } else {
        json_null(b);
    }
    json_member_number(b, "failed", json_get_int(items, "failed", 0));
    json_key(b, "errors");
    json_open(b, '[');
    if (json_get_int(items, "failed", 0) > 0)
        each_item(v, name, "&state=failed", take_error, &l);
    json_close(b, ']');
}

/* ---- steps ---- */

/* A failure of its undo is not what expressions see. */
static const struct json *forward_error(const struct json *step)
{
    const struct json *attempts = json_get(step, "attempts");
    const struct json *found = NULL;

    if (!slice_is(json_get_text(step, "direction"), "undo"))
        return json_get(step, "error");
    if (json_get_bool(step, "supplied", false))
        return NULL;
    for (const struct json *a = attempts ? attempts->child : NULL; a; a = a->next)
        if (slice_is(json_get_text(a, "direction"), "forward")
            && !slice_is(json_get_text(a, "outcome"), "not_sent"))
            found = json_get(a, "error");
    return found;
}

/* That of a late result, too, which an undo may need. */
static struct slice known_output(const struct json *step)
{
    const struct json *output = json_get(step, "output");
    const struct json *attempts = json_get(step, "attempts");
    struct slice late = SLICE_NONE;

    if (output && output->type != JSON_NULL)
        return output->raw;
    for (const struct json *a = attempts ? attempts->child : NULL; a; a = a->next)
        if (slice_is(json_get_text(a, "direction"), "forward")
            && slice_is(json_get_text(a, "outcome"), "late") && json_get(a, "output"))
            late = json_get_raw(a, "output");
    return late;
}

static void put_step(struct task_view *v, struct buf *b, const struct json *step)
{
    const struct json *items = json_get(step, "items");

    json_key_slice(b, json_get_text(step, "name"));
    json_open(b, '{');
    json_member_raw(b, "input", json_get_raw(step, "input"));
    json_member_text(b, "state", json_get_text(step, "state"));
    put_error(b, forward_error(step), SLICE_NONE, false);
    if (items)
        put_items(v, b, step, items);
    else
        json_member_raw(b, "output", known_output(step));
    json_close(b, '}');
}

static struct slice steps_of(struct task_view *v)
{
    CLEANUP(buf_fini) struct buf b = {0};
    const struct json *steps = json_get(v->record, "steps");

    json_open(&b, '{');
    for (const struct json *s = steps ? steps->child : NULL; s && v->end == CLI_OK; s = s->next)
        put_step(v, &b, s);
    json_close(&b, '}');
    return arena_copy(v->arena, buf_view(&b));
}

/* ---- the task ---- */

/* Only expressions of the way back and of the output see it. */
static void put_first_failure(const struct task_view *v, struct buf *b)
{
    const struct json *cause = json_get(v->record, "cause");
    const struct json *steps = json_get(v->record, "steps");
    bool is_processed = slice_is(json_get_text(v->record, "state"), "processed");

    if (!is_processed && !slice_is(json_get_text(v->record, "direction"), "undo"))
        return;
    if (cause && cause->type == JSON_OBJECT) {
        put_error(b, cause, json_get_text(cause, "step"), true);
        return;
    }
    for (const struct json *s = steps ? steps->child : NULL; s && is_processed; s = s->next)
        if (slice_is(json_get_text(s, "state"), "failed")) {
            put_error(b, json_get(s, "error"), json_get_text(s, "name"), true);
            return;
        }
    put_error(b, NULL, SLICE_NONE, true);
}

static struct slice task_of(const struct task_view *v)
{
    static const char *const keys[] = {"id", "workflow", "version", "submitted_at"};
    CLEANUP(buf_fini) struct buf b = {0};

    json_open(&b, '{');
    for (size_t i = 0; i < COUNT_OF(keys); i++)
        json_member_raw(&b, keys[i], json_get_raw(v->record, keys[i]));
    put_first_failure(v, &b);
    json_close(&b, '}');
    return arena_copy(v->arena, buf_view(&b));
}

/* ---- the step itself ---- */

static const struct json *find_step(const struct task_view *v, struct slice name)
{
    const struct json *steps = json_get(v->record, "steps");

    for (const struct json *s = steps ? steps->child : NULL; s; s = s->next)
        if (slice_eq(json_get_text(s, "name"), name))
            return s;
    return NULL;
}

/* What the expressions of a repeated step see besides. */
static size_t members_of_step(struct task_view *v, struct eval_member *ret)
{
    const char *name = given(v->in, "step");
    const struct json *step = name ? find_step(v, slice_of(name)) : NULL;

    if (!name)
        return 0;
    if (!step) {
        v->end = verb_failed(v->in, CLI_USAGE, "the task has no step \"%s\"", name);
        return 0;
    }
    struct slice output = known_output(step);
    ret[0] = (struct eval_member){SLICE("output"), output.ptr ? output : SLICE("null")};
    ret[1] = (struct eval_member){SLICE("round"), json_get_raw(step, "round")};
    return ret[1].json.ptr ? 2 : 1;
}

static size_t read_members(struct task_view *v, struct eval_member *ret)
{
    ret[0] = (struct eval_member){SLICE("input"), json_get_raw(v->record, "input")};
    ret[1] = (struct eval_member){SLICE("steps"), steps_of(v)};
    ret[2] = (struct eval_member){SLICE("task"), task_of(v)};
    return 3 + members_of_step(v, ret + 3);
}

int eval_task_read(const struct invocation *in, struct arena *a,
                   struct eval_member ret[EVAL_TASK_MEMBERS], size_t *ret_count)
{
    struct task_view v = {.in = in, .arena = a, .client = client_begin(in)};
    CLEANUP(buf_fini) struct buf path = {0};

    buf_str(&path, "/v1/tasks/");
    client_escape(&path, slice_of(given(in, "task")));
    v.record = client_ask(v.client, "GET", path.ptr, NULL, a, &v.end);
    if (v.record) {
        /* The answer's memory is the client's, which asks again for items. */
        struct json *copy = NULL;
        enum err err = json_parse(a, arena_copy(a, v.record->raw), &copy, NULL);
        ASSERT(err == ERR_OK);
        v.record = copy;
        *ret_count = read_members(&v, ret);
    }
    intact_client_free(v.client);
    return v.end;
}
