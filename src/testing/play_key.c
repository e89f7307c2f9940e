/* Finds which entry of `agents` acts for a request (play_key.h), and whether a key fits any request
 * of a definition. Pure. */

#include "testing/play_key.h"

#include "config/config_reader.h"
#include "definition/reader/http_step.h"

struct slice play_key(struct slice agent, struct slice action, struct slice step, bool is_undo,
                      struct arena *a)
{
    CLEANUP(buf_fini) struct buf b = {0};
    bool is_http = slice_is(action, HTTP_ACTION);
    const char *dot = is_http ? memchr(step.ptr, '.', step.len) : NULL;

    if (dot) /* an item */
        step.len = (size_t)(dot - step.ptr);
    buf_slice(&b, agent);
    buf_byte(&b, '.');
    buf_slice(&b, is_http ? step : action);
    if (is_http && is_undo)
        buf_str(&b, ".undo");
    return arena_copy(a, buf_view(&b));
}

/* A request that some step makes. */
struct made {
    const struct workflow_step *step;
    const struct call_spec *call;
    bool is_undo;
};

/* All requests of a definition: the i-th one. False: there are no more. */
static bool nth_request(const struct definition *d, size_t i, struct made *ret)
{
    const struct workflow_step *ws = NULL;

    if (i / 2 >= d->workflow.step_count)
        return false;
    ws = &d->workflow.steps[i / 2];
    *ret = (struct made){ws, i % 2 ? &ws->undo : &ws->call, i % 2 == 1};
    if (i % 2 == 1 && ws->undo_kind != UNDO_CALL)
        ret->call = NULL;
    if (i % 2 == 0 && ws->kind != KIND_CALL && ws->kind != KIND_EACH)
        ret->call = NULL;
    if (ret->call && !ret->call->agent.ptr)
        ret->call = NULL; /* a list of children */
    return true;
}

static bool fits(const struct made *m, struct slice key)
{
    CLEANUP(arena_fini) struct arena a = {0};

    return m->call
           && (slice_eq(key, m->call->agent)
               || slice_eq(key, play_key(m->call->agent, m->call->action, m->step->name, m->is_undo,
                                         &a)));
}

bool play_key_fits(const struct definition *d, struct slice key)
{
    struct made m;

    for (size_t i = 0; nth_request(d, i, &m); i++)
        if (fits(&m, key))
            return true;
    return false;
}

bool play_key_is_undone(const struct definition *d, struct slice key)
{
    struct made m;

    for (size_t i = 0; nth_request(d, i, &m); i++)
        if (!m.is_undo && m.step->undo_kind == UNDO_CALL && fits(&m, key))
            return true;
    return false;
}

struct slice play_key_near(const struct definition *d, struct slice key, struct arena *a)
{
    struct made m;

    for (size_t i = 0; nth_request(d, i, &m); i++) {
        if (!m.call)
            continue;
        struct slice one = play_key(m.call->agent, m.call->action, m.step->name, m.is_undo, a);
        if (name_is_near(key, one))
            return one;
    }
    return SLICE_NONE;
}
