/*
 * POST /v1/approvals/{task}/{step}/link {person?, expires_in?}: a link with which that person
 * decides on the present question, in a browser and without a token. It is signed, and not stored.
 * That it was made is written to the audit before it is told.
 */

#include <openssl/crypto.h>

#include "api/approvals.h"
#include "api/body.h"
#include "api/caller.h"
#include "api/handlers.h"
#include "api/query.h"
#include "api/room.h"
#include "base/names.h"
#include "base/when.h"
#include "core/reason.h"
#include "core/votes.h"
#include "definition/registry.h"
#include "dispatch/token.h"
#include "node/changes.h"
#include "node/json_answer.h"
#include "node/node.h"
#include "node/strict.h"
#include "store/codec/codec.h"
#include "json/json.h"

#define EXPIRY_MS  (7 * MS_PER_D) /* by default */
#define EXPIRY_MAX (90 * MS_PER_D)

struct making {
    struct store_query base; /* first */
    struct approval_link link;
    struct list_query query;
    struct row_page page;
    struct slice actor, address, origin;
    int64_t expires_ms;
    bool for_others; /* whoever asks may know whom a step asks */
};

/* ---- with an entry of the audit ---- */

struct written {
    struct exchange x;
    struct store_job job;
    struct arena arena; /* it lies in it */
    struct approval_link link;
    struct audit audit;
    struct slice url;
    enum err err;
    struct error error;
};

static void written_run(struct store_job *j, struct store *store)
{
    struct written *w = CONTAINER_OF(j, struct written, job);

    w->err = store->ops->audit_put(store, &w->audit, &w->error);
}

static void answer_made(struct http_request *r, const struct written *w)
{
    CLEANUP(buf_fini) struct buf b = {0};

    json_open(&b, '{');
    json_member_text(&b, "task", w->link.task);
    json_member_text(&b, "step", w->link.step);
    json_member_number(&b, "asking", w->link.asking);
    json_member_text(&b, "person", w->link.person);
    json_member_text(&b, "url", w->url);
    json_member_time(&b, "expires_at", w->link.expires_at);
    json_close(&b, '}');
    answer_json(r, 200, &b, "Cache-Control: no-store\r\n");
    OPENSSL_cleanse(b.ptr, b.len);
}

static void written_done(struct store_job *j)
{
    struct written *w = CONTAINER_OF(j, struct written, job);
    struct http_request *r = w->x.http;
    struct server *sv = w->x.server;
    struct arena a = w->arena;

    if (w->err == ERR_OK)
        log_line(LOG_INFO, "event=approval_link task=%.*s step=%.*s person=%.*s by=%.*s",
                 SLICE_ARG(w->link.task), SLICE_ARG(w->link.step), SLICE_ARG(w->link.person),
                 SLICE_ARG(w->audit.actor));
    if (r) {
        exchange_untie(&w->x);
        if (w->err == ERR_OK)
            answer_made(r, w);
        else
            answer_trouble(r, w->err, w->error.text);
    }
    sv->load.exchanges--;
    sv->load.asks_open--;
    arena_fini(&a);
}

/* "for bob, question 2, until 2026-01-31T10:00:00.000Z" */
static struct slice reason_of(const struct approval_link *l, struct arena *a)
{
    CLEANUP(buf_fini) struct buf b = {0};

    buf_fmt(&b, "for %.*s, question %" PRIu32 ", until ", SLICE_ARG(l->person), l->asking);
    time_write(&b, l->expires_at);
    return arena_copy(a, buf_view(&b));
}

static struct slice url_of(struct server *sv, struct slice origin, const struct approval_link *l,
                           struct arena *a)
{
    CLEANUP(buf_fini) struct buf b = {0};

    buf_slice(&b, origin);
    buf_str(&b, "/v1/approvals/");
    approval_link_write(sv->key, l, &b);
    return arena_copy(a, buf_view(&b));
}

static void write_down(struct server *sv, struct http_request *r, const struct making *m)
{
    struct arena a = {0};
    struct written *w = arena_alloc(&a, sizeof *w);

    *w = (struct written){.arena = a, .link = m->link};
    w->link.task = arena_copy(&w->arena, m->link.task);
    w->link.step = arena_copy(&w->arena, m->link.step);
    w->link.person = arena_copy(&w->arena, m->link.person);
    w->url = url_of(sv, m->origin, &w->link, &w->arena);
    w->audit = (struct audit){.at = server_now(sv),
                              .actor = arena_copy(&w->arena, m->actor),
                              .verb = SLICE("approval.link"),
                              .task = w->link.task,
                              .step = w->link.step,
                              .reason = reason_of(&w->link, &w->arena),
                              .address = arena_copy(&w->arena, m->address)};
    w->job = (struct store_job){.run = written_run, .done = written_done};
    exchange_begin(&w->x, sv, r);
    sv->load.exchanges++;
    sv->load.asks_open++;
    changes_add(sv->changes, w->audit.actor, r->account, &w->job);
}

/* ---- for whom, and for what ---- */

static void answer_unasked(struct http_request *r, const struct making *m)
{
    http_problem(r, 404, "no-such-approval", "step \"%.*s\" of task \"%.*s\" asks nothing%s",
                 SLICE_ARG(slice_cut(m->link.step, 80)), SLICE_ARG(m->link.task),
                 m->for_others ? "" : " of you");
}

/* As a decision of that person would be refused. */
static void answer_obstacle(struct server *sv, struct http_request *r, const struct making *m,
                            enum obstacle why)
{
    const struct slice person = m->link.person;

    if (why == OBSTACLE_VOTE_UNASKED || (why == OBSTACLE_VOTE_GROUP && !m->for_others)) {
        answer_unasked(r, m);
    } else if (why == OBSTACLE_VOTE_GROUP) {
        http_problem(r, 422, "bad-person",
                     "\"%.*s\" has no token with the role approve in a group that is asked",
                     SLICE_ARG(person));
    } else if (why == OBSTACLE_VOTE_SUBMITTER) {
        caller_log_forbidden(sv, r, m->actor, "the person submitted the task");
        http_problem(r, 403, "forbidden", "\"%.*s\" submitted task %.*s, and may not decide on it",
                     SLICE_ARG(person), SLICE_ARG(m->link.task));
    } else {
        http_problem(r, 409, "conflict", "step \"%.*s\" of task %.*s is decided, or will not be",
                     SLICE_ARG(m->link.step), SLICE_ARG(m->link.task));
    }
}

/* False: answered. */
static bool may_decide(struct server *sv, struct http_request *r, struct making *m,
                       const struct workflow *w, const struct task *t)
{
    CLEANUP(arena_fini) struct arena a = {0};
    int step = workflow_step_index(w, m->link.step);
    int64_t now = server_now(sv);
    struct ballot ballot = {.person = m->link.person, .agrees = true};

    if (step < 0) {
        answer_unasked(r, m);
        return false;
    }
    ballot.groups = access_groups_of(sv->access, m->link.person, now, &a, &ballot.group_count);
    const struct vote *v = task_find_vote(t, step, m->link.person);
    ballot.agrees = v ? v->agrees : true;
    enum obstacle why = vote_obstacle(w, t, (uint16_t)step, &ballot, now);
    if (why == OBSTACLE_NONE && v) {
        http_problem(r, 409, "conflict", "\"%.*s\" has decided on step \"%.*s\" already",
                     SLICE_ARG(m->link.person), SLICE_ARG(m->link.step));
        return false;
    }
    if (why != OBSTACLE_NONE) {
        answer_obstacle(sv, r, m, why);
        return false;
    }
    m->link.asking = t->steps[step].generation + 1;
    m->link.submitted_at = t->submitted_at;
    m->link.expires_at = now + m->expires_ms;
    return true;
}

static void making_answer(struct http_request *r, struct store_query *it)
{
    CLEANUP(arena_fini) struct arena a = {0};
    struct making *m = CONTAINER_OF(it, struct making, base);
    struct server *sv = it->x.server;
    struct error e = {0};
    struct task t;

    if (m->page.count == 0) {
        answer_unasked(r, m);
        return;
    }
    const struct task_row *row = &m->page.rows[0];
    const struct definition *def = registry_find(&sv->workflows, row->workflow, row->version);
    if (!def || task_decode(&def->workflow, row, &a, &t, &e) != ERR_OK)
        answer_trouble(r, ERR_BUSY, "this node cannot read the task at present");
    else if (may_decide(sv, r, m, &def->workflow, &t) && asks_have_room(sv, r, 0))
        write_down(sv, r, m);
}

static void making_run(struct store_job *j, struct store *store)
{
    struct making *m = CONTAINER_OF(j, struct making, base.job);

    m->base.err = store->ops->list(store, &m->query, &m->base.arena, &m->page, &m->base.error);
}

/* ---- the request ---- */

static bool expiry_ok(struct http_request *r, const struct json *j, int64_t *ret)
{
    const struct json *in = json_get(j, "expires_in");

    *ret = EXPIRY_MS;
    if (!in || in->type == JSON_NULL)
        return true;
    if (in->type == JSON_STRING && duration_parse(in->text, ret) && *ret > 0 && *ret <= EXPIRY_MAX)
        return true;
    http_problem(r, 422, "bad-expiry",
                 "expires_in must be a duration of at most 90d, such as \"3d\"");
    return false;
}

static bool makes_for_others(const struct bearer *b)
{
    return b->inner || b->roles & (ROLE_LINK | ROLE_ADMIN);
}

/* Whose link it is to be. False: answered. */
static bool person_ok(struct server *sv, struct http_request *r, const struct json *j,
                      struct slice *ret)
{
    const struct bearer *b = sv->api->bearer;
    const struct json *person = json_get(j, "person");

    *ret = b->person;
    if (person && person->type != JSON_NULL) {
        if (person->type != JSON_STRING || !access_is_person(person->text)) {
            http_problem(r, 422, "bad-person", "person: expected the name of a person");
            return false;
        }
        *ret = person->text;
    }
    if (!ret->ptr) {
        http_problem(r, 422, "bad-person", "person is missing: whose decision is it?");
        return false;
    }
    if (slice_eq(*ret, b->person) || makes_for_others(b))
        return true;
    caller_log_forbidden(sv, r, b->name, "a link for another person");
    http_problem(r, 403, "forbidden",
                 "a link for another person than \"%.*s\" requires the role link or admin",
                 SLICE_ARG(b->person));
    return false;
}

/* How people reach the server: as it was told, or else as the caller does. */
static struct slice origin_of(struct server *sv, struct http_request *r, struct arena *a)
{
    CLEANUP(buf_fini) struct buf b = {0};
    const char *told = sv->config.public_url ? sv->config.public_url : sv->config.advertise;
    bool secure = http_is_secure(sv->http) || sv->config.behind_proxy;
    struct slice host = http_header(r, "host");

    if (told)
        buf_str(&b, told);
    else if (host.ptr)
        buf_fmt(&b, "%s://%.*s", secure ? "https" : "http", SLICE_ARG(host));
    return arena_copy(a, buf_view(&b));
}

void approval_link_make(struct server *sv, struct http_request *r)
{
    CLEANUP(arena_fini) struct arena tree = {0};
    struct json *j = body_json(r, &tree);
    struct slice person;
    int64_t expires_ms = 0;

    if (!j || !members_ok(r, j, NAMES("person", "expires_in"), "a link")
        || !person_ok(sv, r, j, &person) || !expiry_ok(r, j, &expires_ms))
        return;
    if (!is_task_id(http_segment(r, 2)) || !http_segment(r, 3).ptr) {
        http_problem(r, 404, "no-such-approval", "there is no such task or step");
        return;
    }
    if (!reading_has_room(sv, r, READING_MANY))
        return;
    struct store_query *it = store_query_new(sv, r, sizeof(struct making), making_answer);
    struct making *m = CONTAINER_OF(it, struct making, base);
    m->link.task = arena_copy(&it->arena, http_segment(r, 2));
    m->link.step = arena_copy(&it->arena, http_segment(r, 3));
    m->link.person = arena_copy(&it->arena, person);
    m->actor = arena_copy(&it->arena, sv->caller);
    m->address = caller_address(sv, r, &it->arena);
    m->origin = origin_of(sv, r, &it->arena);
    m->expires_ms = expires_ms;
    m->for_others = makes_for_others(sv->api->bearer);
    m->query = (struct list_query){.ids = &m->link.task, .id_count = 1, .groups = true, .limit = 1};
    store_query_start(it, making_run);
}
