/*
 * The operations on workflows, tokens, agents, overruns and items, which may fail by an injected
 * fault. workflow.c, access.c, agent.c, overrun.c and item.c have the data.
 */
#include "store/memory/body.h"
#include "store/memory/task.h"
#include "store/row.h"

/* Operations on what people store: workflows, tokens, agents. */

static void workflow_audit(struct memory_store *s, const struct audit *audit,
                           const struct workflow_row *row)
{
    CLEANUP(arena_fini) struct arena a = {0};

    if (!audit)
        return;
    struct audit whole = *audit;
    whole.reason = audit_workflow_reason(&a, row->name, row->version);
    mem_audit_add(&s->access, &whole);
}

enum err memory_workflow_put(struct store *base, struct slice name, struct slice text, int64_t now,
                             const struct audit *audit, int64_t *ret_version, bool *ret_new,
                             struct error *e)
{
    struct memory_store *s = memory_store_of(base);

    if (fault())
        return mem_fails(e);
    const struct workflow_row *newest = mem_workflow_find(&s->workflows, name, 0);
    bool is_new = !newest || !slice_eq(newest->text, text);
    struct workflow_row row = {name, newest ? newest->version + is_new : 1, text, now, false};
    if (fault())
        return error_set(e, ERR_UNKNOWN, "state store in memory: a commit failed");
    if (is_new) {
        mem_workflow_add(&s->workflows, &row);
        workflow_audit(s, audit, &row);
    }
    if (fault())
        return error_set(e, ERR_UNKNOWN, "state store in memory: a commit's answer was lost");
    *ret_version = row.version;
    *ret_new = is_new;
    return ERR_OK;
}

enum err memory_workflow_get(struct store *base, struct slice name, int64_t version,
                             struct arena *a, struct workflow_row *ret, struct error *e)
{
    if (fault())
        return mem_fails(e);
    const struct workflow_row *row =
        mem_workflow_find(&memory_store_of(base)->workflows, name, version);
    if (!row)
        return error_set(e, ERR_NOT_FOUND, "there is no workflow %.*s%s", SLICE_ARG(name),
                         version ? " of that version" : "");
    *ret = mem_workflow_copy(a, row);
    return ERR_OK;
}

enum err memory_workflow_list(struct store *base, struct arena *a, struct workflow_row **ret,
                              size_t *ret_count, struct error *e)
{
    if (fault())
        return mem_fails(e);
    mem_workflow_list(&memory_store_of(base)->workflows, 0, a, ret, ret_count);
    return ERR_OK;
}

enum err memory_workflow_since(struct store *base, uint64_t after, struct arena *a,
                               struct workflow_row **ret, size_t *ret_count,
                               uint64_t *ret_generation, struct error *e)
{
    const struct mem_workflows *m = &memory_store_of(base)->workflows;

    if (fault())
        return mem_fails(e);
    mem_workflow_list(m, after, a, ret, ret_count);
    *ret_generation = m->generation;
    return ERR_OK;
}

/* --- access --- */

enum err memory_token_put(struct store *base, const struct token_row *t, bool replace,
                          const struct audit *audit, struct error *e)
{
    struct memory_store *s = memory_store_of(base);

    if (fault())
        return mem_fails(e);
    if (!mem_token_fits(&s->access, t, replace))
        return error_set(e, ERR_CONFLICT, "there is a token \"%.*s\"", SLICE_ARG(t->name));
    mem_token_put(&s->access, t);
    mem_audit_add(&s->access, audit);
    return mem_committed(e);
}

enum err memory_token_change(struct store *base, const struct token_row *t,
                             const unsigned char was[TOKEN_HASH_SIZE], const struct audit *audit,
                             struct error *e)
{
    struct memory_store *s = memory_store_of(base);

    if (fault())
        return mem_fails(e);
    if (!mem_token_is(&s->access, t->name, was))
        return error_set(e, ERR_NOT_FOUND, "there is no such token \"%.*s\"", SLICE_ARG(t->name));
    mem_token_put(&s->access, t);
    mem_audit_add(&s->access, audit);
    return mem_committed(e);
}

enum err memory_token_delete(struct store *base, struct slice name, int64_t now,
                             const struct audit *audit, struct error *e)
{
    struct memory_store *s = memory_store_of(base);

    if (fault())
        return mem_fails(e);
    if (mem_token_is_last_admin(&s->access, name, now))
        return error_set(e, ERR_CONFLICT, "\"%.*s\" is the last admin's token", SLICE_ARG(name));
    if (!mem_token_exists(&s->access, name))
        return error_set(e, ERR_NOT_FOUND, "there is no token \"%.*s\"", SLICE_ARG(name));
    mem_token_delete(&s->access, name);
    mem_audit_add(&s->access, audit);
    return mem_committed(e);
}

enum err memory_token_list(struct store *base, struct arena *a, struct token_row **ret,
                           size_t *ret_count, struct error *e)
{
    if (fault())
        return mem_fails(e);
    mem_token_list(&memory_store_of(base)->access, a, ret, ret_count);
    return ERR_OK;
}

enum err memory_audit_list(struct store *base, const struct audit_query *q, struct arena *a,
                           struct audit_page *ret, struct error *e)
{
    if (fault())
        return mem_fails(e);
    mem_audit_list(&memory_store_of(base)->access, q, a, ret);
    return ERR_OK;
}

enum err memory_audit_put(struct store *base, const struct audit *audit, struct error *e)
{
    struct memory_store *s = memory_store_of(base);

    if (fault())
        return mem_fails(e);
    mem_audit_add(&s->access, audit);
    return mem_committed(e);
}

enum err memory_agent_put(struct store *base, const struct agent_change *c,
                          const struct audit *audit, struct error *e)
{
    struct memory_store *s = memory_store_of(base);

    if (fault())
        return mem_fails(e);
    if (!mem_agent_fits(&s->agents, c))
        return error_set(e, ERR_CONFLICT, "%.*s was changed meanwhile", SLICE_ARG(c->name));
    mem_agent_put(&s->agents, c);
    mem_audit_add(&s->access, audit);
    return mem_committed(e);
}

enum err memory_agent_since(struct store *base, uint64_t after, struct arena *a,
                            struct agent_row **ret, size_t *ret_count, uint64_t *ret_generation,
                            struct error *e)
{
    if (fault())
        return mem_fails(e);
    mem_agent_since(&memory_store_of(base)->agents, after, a, ret, ret_count);
    *ret_generation = memory_store_of(base)->agents.generation;
    return ERR_OK;
}

/* Could it go on? */
static bool task_is_open(void *arg, struct slice task)
{
    const struct memory_store *s = arg;
    const struct mem_task *t = map_get(&s->by_id, task);

    return t && !task_state_is_end(t->row.state);
}

enum err memory_overrun_count(struct store *base, const struct overrun_count *c, struct error *e)
{
    struct memory_store *s = memory_store_of(base);

    if (fault())
        return mem_fails(e);
    mem_overrun_count(&s->overruns, c);
    if (c->by > 0)
        mem_overrun_sweep(&s->overruns, c->at - OVERRUN_KEPT_MS, task_is_open, s);
    return mem_committed(e);
}

enum err memory_overrun_list(struct store *base, struct arena *a, struct overrun **ret,
                             size_t *ret_count, struct error *e)
{
    if (fault())
        return mem_fails(e);
    mem_overrun_list(&memory_store_of(base)->overruns, a, ret, ret_count);
    return ERR_OK;
}

enum err memory_items_read(struct store *base, struct item_read *r, struct arena *a,
                           struct error *e)
{
    if (fault())
        return mem_fails(e);
    const struct mem_task *t = map_get(&memory_store_of(base)->by_id, r->task);
    r->rows = NULL;
    r->count = 0;
    r->more = false;
    if (t)
        mem_items_read(t, r, a);
    return ERR_OK;
}

enum err memory_items_outputs(struct store *base, struct item_outputs *o, struct arena *a,
                              struct error *e)
{
    static const struct mem_task none;

    if (fault())
        return mem_fails(e);
    const struct mem_task *t = map_get(&memory_store_of(base)->by_id, o->task);
    if (mem_items_outputs(t ? t : &none, o, a))
        return ERR_OK;
    return error_set(e, ERR_TOO_BIG, "the outputs of step %.*s have more than %zu bytes",
                     SLICE_ARG(o->step), o->bytes_max);
}
