/*
 * GET /v1/approvals: what waits for people, above all for the caller. POST
 * /v1/approvals/{task}/{step}/approve and .../reject: a vote, which is handed to the scheduler like
 * an operator's verb, and stored with the task and its audit entry, or refused.
 */

#include "api/approvals.h"
#include "api/body.h"
#include "api/caller.h"
#include "api/handlers.h"
#include "api/query.h"
#include "api/room.h"
#include "api/tasks.h"
#include "base/log.h"
#include "base/names.h"
#include "core/reason.h"
#include "definition/registry.h"
#include "node/access.h"
#include "node/exchange.h"
#include "node/json_answer.h"
#include "node/node.h"
#include "node/readings.h"
#include "node/strict.h"
#include "node/task_json.h"
#include "store/codec/codec.h"
#include "store/row.h"
#include "json/json.h"

enum {
    APPROVALS_USUAL = 50,
    APPROVALS_MAX = 500,
    ROWS_A_PAGE = 20, /* that are in memory together, with those that concern others */
    PAGES_MAX = 50,
    READ_MAX = 16 << 20, /* bytes that one request reads, about, ... */
    KEPT_MAX = 1 << 20,  /* ... and keeps: the loop decodes them without a pause */
};

/* ---- GET /v1/approvals ---- */

struct asked_list {
    struct store_query base; /* first */
    struct list_query query;
    struct slice task;
    struct slice person; /* NONE: what waits for anybody */
    struct slice *groups;
    size_t group_count;
    bool all; /* what waits for others, too */
    struct task_row *rows;
    size_t row_count, limit, kept; /* kept: bytes of their documents */
    bool more;
    int64_t now;
};

static bool any_group_is_asked(const struct asked_list *al, const struct task_row *row)
{
    for (size_t i = 0; i < al->group_count; i++)
        if (row_asks(row, al->groups[i]))
            return true;
    return al->all && row->asked.ptr;
}

/* With its groups of steps. */
static void keep(struct asked_list *al, const struct task_row *row)
{
    struct arena *a = &al->base.arena;
    struct task_row *kept = &al->rows[al->row_count++];
    struct payload *groups = arena_alloc(a, (row->payload_count + 1) * sizeof *groups);

    *kept = row_copy(a, row);
    al->kept += row->doc.len;
    for (size_t i = 0; i < row->payload_count; i++) {
        groups[i] = row->payloads[i];
        groups[i].json = arena_copy(a, groups[i].json);
        al->kept += groups[i].json.len;
    }
    kept->payloads = groups;
    kept->payload_count = row->payload_count;
}

static bool has_room(const struct asked_list *al)
{
    return al->row_count < al->limit && al->kept < KEPT_MAX;
}

/* Keeps the rows that concern the caller, as far as there is room. The next request goes on behind
 * the last one that was looked at. */
static void keep_asked(struct asked_list *al, const struct row_page *page)
{
    for (size_t i = 0; i < page->count; i++) {
        if (!has_room(al)) {
            al->more = true;
            return;
        }
        al->query.before_seq = page->rows[i].seq;
        if (any_group_is_asked(al, &page->rows[i]))
            keep(al, &page->rows[i]);
    }
    al->more = page->more;
    al->query.before_seq = page->next_seq;
}

/* Reads on until there are enough, or enough was read. */
static void asked_run(struct store_job *j, struct store *store)
{
    struct asked_list *al = CONTAINER_OF(j, struct asked_list, base.job);
    size_t bytes = 0;

    al->rows = arena_alloc(&al->base.arena, al->limit * sizeof *al->rows);
    al->more = true;
    for (int i = 0; i < PAGES_MAX && al->more && has_room(al) && bytes < READ_MAX; i++) {
        CLEANUP(arena_fini) struct arena a = {0};
        struct row_page page = {0};
        al->base.err = store->ops->list(store, &al->query, &a, &page, &al->base.error);
        if (al->base.err != ERR_OK)
            return;
        keep_asked(al, &page);
        bytes += a.total;
    }
}

/* The vote that the caller would cast. */
static bool waits_for_caller(const struct asked_list *al, const struct workflow *w,
                             const struct task *t, uint16_t step)
{
    const struct ballot b = {.person = al->person,
                             .groups = al->groups,
                             .group_count = al->group_count,
                             .agrees = true};

    return al->person.ptr && !task_find_vote(t, step, al->person)
           && vote_obstacle(w, t, step, &b, al->now) == OBSTACLE_NONE;
}

static void render_asked(struct buf *b, const struct asked_list *al, const struct workflow *w,
                         const struct task *t, uint16_t step)
{
    bool waits = waits_for_caller(al, w, t, step);

    if (!step_is_asking(w, t, step) || (!waits && !al->all))
        return;
    json_open(b, '{');
    json_member_text(b, "task", t->id);
    json_member_text(b, "step", w->steps[step].name);
    json_member_text(b, "workflow", w->name);
    json_member_number(b, "version", w->version);
    render_approval(b, w, t, step);
    json_member_bool(b, "waits_for_you", waits);
    json_close(b, '}');
}

/* A task that this node cannot read is left out: other nodes can, and `intact list` names it. */
static void render_task_asked(struct buf *b, const struct asked_list *al,
                              const struct task_row *row)
{
    CLEANUP(arena_fini) struct arena a = {0};
    const struct definition *def =
        registry_find(&al->base.x.server->workflows, row->workflow, row->version);
    struct error e = {0};
    struct task t;

    if (!def || task_decode(&def->workflow, row, &a, &t, &e) != ERR_OK)
        return;
    for (uint16_t i = 0; i < t.step_count; i++)
        render_asked(b, al, &def->workflow, &t, i);
}

static void asked_answer(struct http_request *r, struct store_query *it)
{
    CLEANUP(buf_fini) struct buf b = {0};
    const struct asked_list *al = CONTAINER_OF(it, struct asked_list, base);

    json_open(&b, '{');
    json_key(&b, "approvals");
    json_open(&b, '[');
    for (size_t i = 0; i < al->row_count; i++)
        render_task_asked(&b, al, &al->rows[i]);
    json_close(&b, ']');
    page_next(&b, al->more, al->query.before_seq);
    json_close(&b, '}');
    answer_json(r, 200, &b, NULL);
}

/* What the request asks for. */
struct asked_params {
    struct slice task;
    int64_t limit, cursor;
    bool all;
};

static bool all_ok(struct http_request *r, struct slice value, bool *ret)
{
    *ret = slice_is(value, "true");
    if (*ret || slice_is(value, "false"))
        return true;
    http_problem(r, 422, "bad-filter", "all is \"%.*s\", expected true or false", SLICE_ARG(value));
    return false;
}

static bool read_asked(struct http_request *r, struct slice name, struct slice value,
                       struct asked_params *p)
{
    if (slice_is(name, "all"))
        return all_ok(r, value, &p->all);
    if (slice_is(name, "task")) {
        p->task = value;
        if (is_task_id(value))
            return true;
        http_problem(r, 422, "bad-ids", "task: expected the id of a task");
        return false;
    }
    if (slice_is(name, "limit")) {
        if (count_of(value, APPROVALS_MAX, &p->limit))
            return true;
        http_problem(r, 422, "bad-limit", "limit is \"%.*s\", expected a number from 1 to %d",
                     SLICE_ARG(value), APPROVALS_MAX);
        return false;
    }
    if (slice_is(name, "cursor")) {
        if (count_of(value, INT64_MAX, &p->cursor))
            return true;
        http_problem(r, 422, "bad-cursor",
                     "cursor is \"%.*s\", expected the `next` of an earlier page",
                     SLICE_ARG(value));
        return false;
    }
    answer_unknown_parameter(r, name, NAMES("task", "all", "limit", "cursor"));
    return false;
}

static bool read_params(struct http_request *r, struct asked_params *p)
{
    struct slice name, value;

    *p = (struct asked_params){.limit = APPROVALS_USUAL};
    for (size_t at = 0; http_query_next(r, &at, &name, &value);)
        if (!read_asked(r, name, value, p))
            return false;
    return true;
}

static struct slice *groups_copy(const struct bearer *b, struct arena *a)
{
    struct slice *groups = arena_alloc(a, (b->group_count + 1) * sizeof *groups);

    for (size_t i = 0; i < b->group_count; i++)
        groups[i] = arena_copy(a, b->groups[i]);
    return groups;
}

static bool may_see_all(const struct bearer *b)
{
    return b->inner || b->roles & (ROLE_READ | ROLE_LINK | ROLE_ADMIN);
}

void approvals_list(struct server *sv, struct http_request *r)
{
    const struct bearer *b = sv->api->bearer;
    struct asked_params p;

    if (!read_params(r, &p))
        return;
    if (!p.all && b->roles & (ROLE_READ | ROLE_LINK) && !(b->roles & ROLE_APPROVE))
        p.all = true; /* it decides nothing */
    if (p.all && !may_see_all(b)) {
        http_problem(
            r, 403, "forbidden",
            "what waits for others requires the role read, repair, operate, link or admin");
        return;
    }
    if (!reading_has_room(sv, r, READING_MANY))
        return;
    struct store_query *it = store_query_new(sv, r, sizeof(struct asked_list), asked_answer);
    struct asked_list *al = CONTAINER_OF(it, struct asked_list, base);
    al->all = p.all;
    al->now = server_now(sv);
    al->person = arena_copy(&it->arena, b->person);
    al->groups = groups_copy(b, &it->arena);
    al->group_count = b->group_count;
    al->limit = (size_t)p.limit;
    al->query = (struct list_query){.asked = !p.task.ptr,
                                    .groups = true,
                                    .before_seq = p.cursor,
                                    .limit = ROWS_A_PAGE};
    if (p.task.ptr) {
        al->task = arena_copy(&it->arena, p.task);
        al->query.ids = &al->task;
        al->query.id_count = 1;
    }
    store_query_start(it, asked_run);
}

/* ---- votes ---- */

struct voting {
    void (*answered)(struct ask *a); /* first: found through ask.user */
    struct exchange x;
    struct arena arena;
    struct ask ask;
};

static void answer_vote(struct http_request *r, const struct ask *a)
{
    CLEANUP(buf_fini) struct buf b = {0};

    json_open(&b, '{');
    json_member_text(&b, "task", a->id);
    json_member_text(&b, "step", a->step);
    json_member_text(&b, "person", a->ballot.person);
    json_member_bool(&b, "agrees", a->ballot.agrees);
    json_member_time(&b, "at", a->voted_at);
    json_member_number(&b, "agreed", a->agreed);
    json_member_number(&b, "people", a->people);
    json_close(&b, '}');
    answer_json(r, 200, &b, NULL);
}

/* To those who are not asked, nothing is told of a task. */
static void answer_refusal(struct server *sv, struct http_request *r, const struct ask *a)
{
    bool unknown = a->outcome == ERR_NOT_FOUND || a->refusal == OBSTACLE_VOTE_UNASKED
                   || a->refusal == OBSTACLE_VOTE_GROUP;

    if (unknown) {
        http_problem(r, 404, "no-such-approval",
                     "step \"%.*s\" of task \"%.*s\" asks nothing of you",
                     SLICE_ARG(slice_cut(a->step, 80)), SLICE_ARG(slice_cut(a->id, 128)));
    } else if (a->refusal == OBSTACLE_VOTE_SUBMITTER) {
        caller_log_forbidden(sv, r, a->actor, "its person submitted the task");
        http_problem(r, 403, "forbidden", "%s", a->story);
    } else if (a->refusal == OBSTACLE_VOTE_ANEW) {
        http_problem(r, 409, "asked-anew", "%s", a->story);
    } else {
        answer_trouble(r, a->outcome, a->story);
    }
}

static void voted(struct ask *a)
{
    struct voting *v = a->user;
    struct http_request *r = v->x.http;
    struct server *sv = v->x.server;
    struct arena arena = v->arena; /* v lies in it */

    if (a->outcome == ERR_OK && !a->existed)
        log_line(LOG_INFO, "event=voted task=%.*s step=%.*s vote=%s by=%.*s", SLICE_ARG(a->id),
                 SLICE_ARG(a->step), ask_kind_text(a->kind), SLICE_ARG(a->ballot.person));
    exchange_untie(&v->x);
    if (r && http_is_alive(r)) {
        if (a->outcome == ERR_OK)
            answer_vote(r, a);
        else
            answer_refusal(sv, r, a);
    }
    arena_fini(&arena);
}

static bool comment_ok(struct http_request *r, const struct json *j, bool agrees)
{
    const struct json *comment = json_get(j, "comment");
    bool given = comment && comment->type != JSON_NULL;

    if (given && (comment->type != JSON_STRING || comment->text.len > COMMENT_MAX)) {
        http_problem(r, 422, "bad-comment", "comment: expected a text of at most %d bytes",
                     COMMENT_MAX);
        return false;
    }
    if (agrees || (given && comment->text.len > 0))
        return true;
    http_problem(r, 422, "no-comment", "a rejection requires a comment: {\"comment\": \"...\"}");
    return false;
}

static bool asking_ok(struct http_request *r, const struct json *j, uint32_t *ret)
{
    const struct json *asking = json_get(j, "asking");
    int64_t n = 0;

    if (asking && (!json_int(asking, &n) || n < 1 || n > UINT32_MAX)) {
        http_problem(r, 422, "bad-asking", "asking: expected the number of the question");
        return false;
    }
    *ret = (uint32_t)n;
    return true;
}

static bool person_ok(struct http_request *r, const struct bearer *b)
{
    if (b->person.ptr)
        return true;
    http_problem(r, 403, "forbidden",
                 "a decision requires a token, which says who decides: this server has none");
    return false;
}

static void vote(struct server *sv, struct http_request *r, bool agrees)
{
    CLEANUP(arena_fini) struct arena tree = {0};
    const struct bearer *b = sv->api->bearer;
    struct json *j = body_json(r, &tree);
    struct arena a = {0};
    uint32_t asking = 0;

    if (!j || !members_ok(r, j, NAMES("comment", "asking"), "a decision") || !person_ok(r, b)
        || !comment_ok(r, j, agrees) || !asking_ok(r, j, &asking))
        return;
    if (!http_segment(r, 2).ptr || !http_segment(r, 3).ptr) {
        http_problem(r, 404, "no-such-approval", "the path is not well encoded");
        return;
    }
    if (!asks_have_room(sv, r, 0))
        return;
    struct slice comment = json_get_text(j, "comment");
    struct voting *v = arena_alloc(&a, sizeof *v);
    v->arena = a;
    v->answered = voted;
    v->ask = (struct ask){
        .kind = agrees ? ASK_APPROVE : ASK_REJECT,
        .user = v,
        .id = arena_copy(&v->arena, http_segment(r, 2)),
        .step = arena_copy(&v->arena, http_segment(r, 3)),
        .reason = comment.len > 0 ? arena_copy(&v->arena, comment) : SLICE_NONE,
        .actor = arena_copy(&v->arena, sv->caller),
        .address = caller_address(sv, r, &v->arena),
        .ballot = {.person = arena_copy(&v->arena, b->person),
                   .comment = comment.len > 0 ? arena_copy(&v->arena, comment) : SLICE_NONE,
                   .groups = groups_copy(b, &v->arena),
                   .group_count = b->group_count,
                   .asking = asking,
                   .agrees = agrees},
    };
    exchange_begin(&v->x, sv, r);
    server_ask(sv, &v->ask);
}

void approval_approve(struct server *sv, struct http_request *r)
{
    vote(sv, r, true);
}

void approval_reject(struct server *sv, struct http_request *r)
{
    vote(sv, r, false);
}
