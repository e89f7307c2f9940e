/* Reads what a test expects, `expect`. A value "?" is not expected: `intact test --update` fills it
 * in. verdict.c compares. */

#include "testing/suite_reader.h"

enum { ORDER_MAX = 20000, STEPS_NAMED_MAX = 1000 };

/* Whether there is a value to be read. */
static bool begins(struct expected *e, const struct json *j)
{
    *e = (struct expected){.is_given = true, .is_asked = json_is_asked(j), .json = j};
    return !e->is_asked;
}

static void read_state(struct reader *r, const struct json *j, const struct path *path,
                       void *target)
{
    struct test_case *t = target;
    enum task_state state = TASK_PENDING;

    if (!begins(&t->state, j))
        return;
    bool ok = j->type == JSON_STRING && task_state_parse(j->text, &state)
              && (task_state_is_end(state) || state == TASK_ERROR);
    if (!ok)
        mistake_in(r, path, j, "processed, compensated or error");
    t->state_word = state;
}

static void read_error(struct reader *r, const struct json *j, const struct path *path,
                       void *target)
{
    struct test_case *t = target;

    if (begins(&t->error, j) && j->type != JSON_NULL && j->type != JSON_STRING)
        mistake_in(r, path, j, "the code of an error, or null");
}

static void read_world_after(struct reader *r, const struct json *j, const struct path *path,
                             void *target)
{
    struct test_case *t = target;

    if (!begins(&t->world_after, j))
        return;
    t->world_is_before = j->type == JSON_STRING && slice_is(j->text, ".before");
    if (t->world_is_before)
        return;
    if (j->type != JSON_OBJECT)
        mistake_in(r, path, j, "an object: members of the world and their values; or .before");
    else
        read_tree(r, j, path, &t->world_tree);
}

static void read_order(struct reader *r, const struct json *j, const struct path *path,
                       void *target)
{
    struct test_case *t = target;
    size_t i = 0;

    if (!begins(&t->order, j))
        return;
    if (j->type != JSON_ARRAY || j->count > ORDER_MAX) {
        mistake_in(r, path, j, "an array of effects: STEP or \"undo STEP\"");
        return;
    }
    for (const struct json *one = j->child; one; one = one->next) {
        struct path at = {path, SLICE_NONE, i++};
        bool ok = one->type == JSON_STRING || (one->type == JSON_ARRAY && one->count > 0);
        for (const struct json *k = one->child; k && one->type == JSON_ARRAY; k = k->next)
            ok = ok && k->type == JSON_STRING;
        if (!ok)
            mistake_in(r, &at, one, "STEP, \"undo STEP\", or an array of them in any order");
    }
}

static void read_within(struct reader *r, const struct json *j, const struct path *path,
                        void *target)
{
    struct test_case *t = target;

    if (begins(&t->within, j))
        read_length(r, j, path, &t->within_ms);
}

static void read_output_tree(struct reader *r, const struct json *j, const struct path *path,
                             void *target)
{
    struct test_case *t = target;

    if (begins(&t->output, j))
        read_tree(r, j, path, &t->output_tree);
}

static void read_steps(struct reader *r, const struct json *j, const struct path *path,
                       void *target)
{
    struct test_case *t = target;

    if (!begins(&t->steps, j))
        return;
    if (j->type != JSON_OBJECT || j->count > STEPS_NAMED_MAX) {
        mistake_in(r, path, j, "an object: steps and their states");
        return;
    }
    for (const struct json *m = j->child; m; m = m->next) {
        struct path at = {path, m->key, 0};
        enum step_state state = STEP_WAITING;
        if (!json_is_asked(m) && (m->type != JSON_STRING || !step_state_parse(m->text, &state)))
            mistake_in(r, &at, m,
                       "waiting, running, completed, failed, skipped, undoing or undone");
    }
}

void read_expect(struct reader *r, const struct json *j, const struct path *path, void *target)
{
    static const struct field fields[] = {
        FIELD("state", read_state, 0),       FIELD("error", read_error, 0),
        FIELD("world", read_world_after, 0), FIELD("order", read_order, 0),
        FIELD("within", read_within, 0),     FIELD("output", read_output_tree, 0),
        FIELD("steps", read_steps, 0),
    };

    read_object(r, j, path, fields, COUNT_OF(fields), target);
    if (j->type == JSON_OBJECT && j->count == 0)
        mistake_in(r, path, j, "something: state, error, world, order, within, output or steps");
}
