/* GET /v1/tasks/{id}/why: gathers what is known of a task (its row, lock, agents and nodes) in
 * one reading on the reading thread and on the event loop, and renders the reasons. src/why
 * decides what the reasons are; why_sources.c adds undelivered messages and open alerts. */

#include "api/handlers.h"
#include "api/room.h"
#include "api/tasks.h"
#include "api/why_sources.h"
#include "background/cache.h"
#include "definition/registry.h"
#include "node/access.h"
#include "node/exchange.h"
#include "node/json_answer.h"
#include "node/node.h"
#include "node/readings.h"
#include "node/task_read.h"
#include "store/codec/codec.h"
#include "store/job.h"
#include "store/row.h"
#include "why/why.h"
#include "json/json.h"

enum { SHOWN_MAX = 50 /* reasons in one answer */ };

struct why_request {
    struct exchange x;
    struct store_job job;
    struct arena arena; /* it lies in it */
    struct slice id;
    const struct grant *grant;
    struct task_row row;
    struct audit_page operations;
    struct reservation gone; /* of one that is not there */
    struct why_sources sources;
    struct registry_wait definitions;
    struct lock_held held;  /* of the lock that it waits for */
    struct node_row *nodes; /* that share the store */
    size_t node_count;
    struct json **agents; /* of each: the agents connected to it; NULL: it does not list them */
    struct facts own;     /* as this node alone has them */
    int64_t now;
    enum err err;
    struct error error;
};

static void why_request_end(struct why_request *k)
{
    struct arena a = k->arena;

    k->x.server->load.exchanges--;
    arena_fini(&a);
}

/* ---- the answer ---- */

static void render_reason(struct buf *b, const struct why *y, const struct reason *r)
{
    CLEANUP(buf_fini) struct buf words = {0};

    json_open(b, '{');
    json_member_text(b, "kind", slice_of(reason_word(r->kind)));
    if (r->step >= 0)
        why_unit(&words, y, r->step);
    json_member_text(b, "step", buf_view(&words));
    buf_clear(&words);
    json_member_text(b, "agent", r->agent);
    json_member_time(b, "since", r->since);
    json_member_time(b, "until", r->until);
    why_text(&words, y, r);
    json_member_text(b, "text", buf_view(&words));
    buf_clear(&words);
    why_moves(&words, y, r);
    json_member_text(b, "moves", buf_view(&words));
    json_close(b, '}');
}

static void render_why(struct buf *b, const struct why_request *k, const struct why *y)
{
    CLEANUP(buf_fini) struct buf summary = {0};

    why_summary(&summary, y);
    json_open(b, '{');
    json_member_text(b, "task", y->task->id);
    json_member_text(b, "state", slice_of(task_state_text(y->task->state)));
    json_member_text(b, "direction", slice_of(direction_text(y->task->direction)));
    json_member_text(b, "summary", buf_view(&summary));
    json_member_time(b, "since", y->reasons->list[0].since);
    json_key(b, "reasons");
    json_open(b, '[');
    for (size_t i = 0; i < y->reasons->count; i++)
        render_reason(b, y, &y->reasons->list[i]);
    json_close(b, ']');
    why_sources_render(b, k->x.server, y, &k->sources, !k->grant || k->grant->reads_all);
    json_close(b, '}');
}

/* ---- what is known ---- */

static bool is_of_task(struct slice verb)
{
    for (enum ask_kind k = ASK_RETRY; k <= ASK_REOPEN; k++)
        if (slice_is(verb, ask_kind_text(k)))
            return true;
    return false;
}

static void gather_acts(struct why_request *k, const struct workflow *w, struct facts *f)
{
    struct intervention *acts = arena_alloc(&k->arena, (k->operations.count + 1) * sizeof *acts);

    for (size_t i = 0; i < k->operations.count; i++) {
        const struct audit *a = &k->operations.entries[i];
        if (is_of_task(a->verb))
            acts[f->act_count++] =
                (struct intervention){a->at, a->step.ptr ? workflow_step_index(w, a->step) : -1};
    }
    f->acts = acts;
}

/* Whether its owner lives, and how it is reached. A later boot of that node takes it over. */
static void gather_owner(const struct why_request *k, struct facts *f)
{
    struct slice node = owner_node(f->owner_name); /* with its slash */

    f->owner_lease_until = f->now;
    for (size_t i = 0; i < k->node_count; i++) {
        const struct node_row *n = &k->nodes[i];
        if (!slice_eq(n->name, (struct slice){node.ptr, node.len - 1}))
            continue;
        if (n->boot != owner_boot(f->owner_name))
            return;
        f->owner_lease_until = n->alive ? max_i64(n->lease_until, f->now + 1) : n->lease_until;
        f->owner_url = n->url;
    }
}

static bool is_another(const struct why_request *k, const struct node_row *n)
{
    return n->alive && !slice_eq(n->name, slice_of(k->x.server->config.node));
}

static void name_node(struct buf *b, const struct node_row *n)
{
    buf_fmt(b, "%s%.*s", b->len ? ", " : "", SLICE_ARG(n->name));
    if (n->url.ptr)
        buf_fmt(b, " (%.*s)", SLICE_ARG(n->url));
}

static bool has_agent(const struct json *agents, struct slice name)
{
    for (const struct json *j = agents ? agents->child : NULL; j; j = j->next)
        if (slice_eq(j->text, name))
            return true;
    return false;
}

/* What this node knows; if the agent is not connected here, what the other nodes list. */
static void see_everywhere(void *arg, int step, struct slice name, struct agent_view *ret)
{
    struct why_request *k = arg;
    CLEANUP(buf_fini) struct buf who = {0};

    k->own.agent(k->own.arg, step, name, ret);
    for (size_t i = 0; i < k->node_count && !ret->connected; i++) {
        const struct node_row *n = &k->nodes[i];
        if (!is_another(k, n) || !has_agent(k->agents[i], name))
            continue;
        name_node(&who, n);
        if (!ret->url.ptr)
            ret->url = n->url;
    }
    if (who.len > 0)
        ret->nodes = arena_copy(&k->arena, buf_view(&who));
}

static void see_attempt(void *arg, int step, const struct attempt *a, struct attempt_view *ret)
{
    const struct why_request *k = arg;

    k->own.attempt(k->own.arg, step, a, ret);
}

static struct json *agents_of(struct why_request *k, const struct node_row *n)
{
    struct json *j = NULL;

    if (!n->agents.ptr || json_parse(&k->arena, n->agents, &j, NULL) != ERR_OK)
        return NULL;
    return j->type == JSON_ARRAY ? j : NULL;
}

static void gather_nodes(struct why_request *k, struct facts *f)
{
    CLEANUP(buf_fini) struct buf others = {0};
    CLEANUP(buf_fini) struct buf unknown = {0};

    if (k->node_count == 0)
        return;
    if (f->owner == OWNER_OTHER)
        gather_owner(k, f);
    f->here = slice_of(k->x.server->config.node);
    k->agents = arena_alloc(&k->arena, k->node_count * sizeof(struct json *));
    for (size_t i = 0; i < k->node_count; i++) {
        const struct node_row *n = &k->nodes[i];
        if (!is_another(k, n))
            continue;
        k->agents[i] = agents_of(k, n);
        name_node(k->agents[i] ? &others : &unknown, n);
    }
    f->others = arena_copy(&k->arena, buf_view(&others));
    f->unknown = arena_copy(&k->arena, buf_view(&unknown));
    k->own = *f;
    f->agent = see_everywhere;
    f->attempt = see_attempt;
    f->arg = k;
}

/* A client that may not see all tasks does not get the holder's id. */
static void gather_lock(const struct why_request *k, struct facts *f)
{
    if (k->held.count == 0)
        return;
    f->lock_held_since = k->held.since;
    f->lock_others = k->held.count - 1;
    if (!k->grant || k->grant->reads_all)
        f->lock_holder = k->held.task;
}

static void gather(struct why_request *k, const struct workflow *w, const struct task *t,
                   struct facts *f)
{
    const struct server *sv = k->x.server;
    char story[sizeof sv->trouble.text];

    scheduler_facts(sv->scheduler, t, &k->row, &k->arena, f);
    f->scan_ms = sv->config.supervisor_interval_ms ? sv->config.supervisor_interval_ms : 1000;
    f->lost = supervisor_lost_time(sv->supervisor);
    f->store_failed = server_trouble(sv, story, sizeof story) != ERR_OK;
    if (f->store_failed) {
        f->store_failed_since = sv->trouble.err != ERR_OK ? sv->trouble.since : 0;
        f->trouble = arena_copy(&k->arena, slice_of(story));
    }
    gather_nodes(k, f);
    gather_acts(k, w, f);
    gather_lock(k, f);
}

static void answer(struct why_request *k)
{
    struct server *sv = k->x.server;
    struct http_request *r = k->x.http;
    CLEANUP(buf_fini) struct buf b = {0};
    struct facts facts;
    struct task t;

    exchange_untie(&k->x);
    if (k->err == ERR_NOT_FOUND) {
        answer_no_task(sv, r, k->id, &k->gone);
        return;
    }
    if (k->err != ERR_OK) {
        answer_trouble(r, k->err, k->error.text);
        return;
    }
    const struct definition *d = registry_find(&sv->workflows, k->row.workflow, k->row.version);
    if (!d || task_decode(&d->workflow, &k->row, &k->arena, &t, &k->error) != ERR_OK) {
        http_problem(r, 500, "task-unreadable", "task %.*s cannot be read: %s", SLICE_ARG(k->id),
                     d ? k->error.text : "its workflow is not known to this program");
        return;
    }
    gather(k, &d->workflow, &t, &facts);
    struct reasons *reasons = arena_alloc(&k->arena, sizeof *reasons);
    reasons_find(&d->workflow, &t, &facts, reasons);
    reasons_limit(reasons, SHOWN_MAX);
    render_why(&b, k, &(struct why){&d->workflow, &t, &facts, reasons});
    answer_json(r, 200, &b, NULL);
}

/* ---- reading ---- */

static void read_run(struct store_job *j, struct store *store)
{
    struct why_request *k = CONTAINER_OF(j, struct why_request, job);

    k->err = task_read(store, k->id, &k->arena, &k->row, &k->operations, &k->gone, &k->error);
    if (k->err == ERR_OK)
        k->err = why_sources_read(store, &k->row, &k->arena, &k->sources, &k->error);
    if (k->err == ERR_OK && row_queues(&k->row))
        k->err = store->ops->locks->held(store, k->row.lock, &k->arena, &k->held, &k->error);
    if (k->err == ERR_OK && store->ops->nodes)
        k->err =
            store->ops->nodes->list(store, k->now, &k->arena, &k->nodes, &k->node_count, &k->error);
    j->bytes = k->arena.total;
}

static void is_read(struct why_request *k)
{
    k->x.server->load.reads_open--;
    task_hide(k->grant, &k->row, &k->err, &k->gone);
    if (k->x.http)
        answer(k);
    why_request_end(k);
}

static void definitions_read(struct registry_wait *w, enum err err, const char *story)
{
    struct why_request *k = CONTAINER_OF(w, struct why_request, definitions);

    if (err != ERR_OK)
        k->err = error_set(&k->error, err, "%s", story);
    is_read(k);
}

static void read_done(struct store_job *j)
{
    struct why_request *k = CONTAINER_OF(j, struct why_request, job);

    if (k->x.http && k->err == ERR_OK && cache_must_wait(k->x.server, &k->row, &k->definitions))
        return;
    is_read(k);
}

void task_why_get(struct server *sv, struct http_request *r)
{
    struct slice id = http_segment(r, 2);
    struct arena a = {0};

    if (!reading_has_room(sv, r, READING_ONE))
        return;
    if (!id.ptr) {
        http_problem(r, 404, "no-such-task", "the id in the path is not well encoded");
        return;
    }
    struct why_request *k = arena_alloc(&a, sizeof *k);
    k->arena = a;
    k->id = arena_copy(&k->arena, id);
    k->grant = grant_new(sv->api->bearer, &k->arena);
    exchange_begin(&k->x, sv, r);
    sv->load.exchanges++;
    sv->load.reads_open++;
    k->now = server_now(sv);
    k->definitions.done = definitions_read;
    k->job = (struct store_job){.run = read_run, .done = read_done};
    reading_begin(&k->x, READING_ONE, &k->job);
}
