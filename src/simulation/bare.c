/* Writes a test file for a bare definition (bare.h), as JSON: what its services hold and do, and
 * what happens from outside. */

#include "simulation/bare.h"

#include "testing/play_key.h"

static bool is_call(const struct workflow_step *ws)
{
    return (ws->kind == KIND_CALL || ws->kind == KIND_EACH) && ws->call.agent.ptr;
}

static struct slice key_of(const struct workflow_step *ws, struct arena *a)
{
    return play_key(ws->call.agent, ws->call.action, ws->name, false, a);
}

/* Whether an earlier step has the same key. */
static bool is_repeated(const struct workflow *w, uint16_t step, struct arena *a)
{
    struct slice key = key_of(&w->steps[step], a);

    for (uint16_t i = 0; i < step; i++)
        if (is_call(&w->steps[i]) && slice_eq(key_of(&w->steps[i], a), key))
            return true;
    return false;
}

static bool is_counted(const struct workflow *w, uint16_t step, struct arena *a)
{
    return is_call(&w->steps[step]) && w->steps[step].undo_kind == UNDO_CALL
           && !is_repeated(w, step, a);
}

static void write_world(struct buf *b, const struct workflow *w, struct arena *a)
{
    json_key(b, "world");
    json_open(b, '{');
    for (uint16_t i = 0; i < w->step_count; i++)
        if (is_counted(w, i, a)) {
            json_key_slice(b, key_of(&w->steps[i], a));
            json_number(b, 0);
        }
    json_close(b, '}');
}

static void write_effect(struct buf *b, struct slice key)
{
    CLEANUP(buf_fini) struct buf more = {0};

    buf_fmt(&more, ".world[\"%.*s\"] + 1", SLICE_ARG(key));
    json_key(b, "effect");
    json_open(b, '{');
    json_key_slice(b, key);
    json_string(b, buf_view(&more));
    json_close(b, '}');
}

static void write_agents(struct buf *b, const struct workflow *w, struct arena *a)
{
    json_key(b, "agents");
    json_open(b, '{');
    for (uint16_t i = 0; i < w->step_count; i++) {
        if (!is_call(&w->steps[i]) || is_repeated(w, i, a))
            continue;
        struct slice key = key_of(&w->steps[i], a);
        json_key_slice(b, key);
        json_open(b, '{');
        if (is_counted(w, i, a))
            write_effect(b, key);
        json_close(b, '}');
    }
    json_close(b, '}');
}

static void write_signals(struct buf *b, const struct workflow *w)
{
    json_key(b, "signals");
    json_open(b, '[');
    for (uint16_t i = 0; i < w->step_count; i++) {
        if (w->steps[i].kind != KIND_SIGNAL)
            continue;
        json_open(b, '{');
        json_member_plain(b, "after", SLICE("1h"));
        json_key_slice(b, w->steps[i].signal.names[0]);
        json_null(b);
        json_close(b, '}');
    }
    json_close(b, ']');
}

static void write_vote(struct buf *b, struct slice step, unsigned person)
{
    CLEANUP(buf_fini) struct buf name = {0};

    buf_fmt(&name, "person-%u", person + 1);
    json_open(b, '{');
    json_member_plain(b, "after", SLICE("1h"));
    json_member_text(b, "step", step);
    json_member_text(b, "approve", buf_view(&name));
    json_close(b, '}');
}

static void write_votes(struct buf *b, const struct workflow *w)
{
    json_key(b, "approvals");
    json_open(b, '[');
    for (uint16_t i = 0; i < w->step_count; i++)
        for (unsigned k = 0; w->steps[i].kind == KIND_APPROVE && k < w->steps[i].approve.people;
             k++)
            write_vote(b, w->steps[i].name, k);
    json_close(b, ']');
}

void bare_write(struct buf *b, const struct definition *d, const char *file, struct slice input)
{
    CLEANUP(arena_fini) struct arena a = {0};
    const struct workflow *w = &d->workflow;

    json_open(b, '{');
    json_member_text(b, "workflow", slice_of(file));
    write_world(b, w, &a);
    write_agents(b, w, &a);
    json_key(b, "tests");
    json_open(b, '[');
    json_open(b, '{');
    json_member_text(b, "name", SLICE("as it is"));
    json_member_raw(b, "input", input);
    write_signals(b, w);
    write_votes(b, w);
    json_member_raw(b, "expect", SLICE("{\"state\":\"processed\"}"));
    json_close(b, '}');
    json_close(b, ']');
    json_close(b, '}');
}
