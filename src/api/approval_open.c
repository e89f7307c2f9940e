/*
 * GET and POST /v1/approvals/{link}: the page that a person opens with a link, and the decision
 * that its form sends. Opening decides nothing: programs open links, too, before people do. A link
 * is judged by itself, before anything is read of its task.
 */

#include "api/approvals.h"
#include "api/caller.h"
#include "api/handlers.h"
#include "api/page.h"
#include "api/query.h"
#include "core/reason.h"
#include "core/votes.h"
#include "definition/registry.h"
#include "dispatch/token.h"
#include "node/exchange.h"
#include "node/node.h"
#include "node/strict.h"
#include "store/codec/codec.h"
#include "json/json.h"

/* ---- the link ---- */

/* False: answered. The names are in the request's memory. */
static bool link_ok(struct server *sv, struct http_request *r, struct approval_link *ret)
{
    if (!approval_link_check(sv->key, http_segment(r, 2), &r->arena, ret)) {
        page_say(r, 404, "This is no link of ours", false,
                 "The link was not made here, or not all of it has arrived. Copy it as a whole.");
        return false;
    }
    if (ret->expires_at > server_now(sv))
        return true;
    page_say(r, 410, "This link has expired", false,
             "Nothing was decided. Ask for a new link, or decide with your token.");
    return false;
}

bool approval_link_head(struct server *sv, struct http_request *r)
{
    struct approval_link link;

    if (!link_ok(sv, r, &link))
        return false;
    if (http_limit_body(r, FORM_MAX, true))
        return true;
    page_say(r, 413, "This is too much", true, "A decision has at most %d bytes.", FORM_MAX);
    return false;
}

/* Why the person of the link cannot decide, or not so. */
static void answer_obstacle(struct http_request *r, enum obstacle o, struct slice person)
{
    switch ((int)o) {
    case OBSTACLE_VOTE_GROUP:
        page_say(r, 403, "You are not asked", false,
                 "\"%.*s\" has no token with the role approve in a group that is asked.",
                 SLICE_ARG(person));
        return;
    case OBSTACLE_VOTE_SUBMITTER:
        page_say(r, 403, "You may not decide on this", false,
                 "\"%.*s\" submitted the task, and somebody else has to decide.",
                 SLICE_ARG(person));
        return;
    case OBSTACLE_VOTE_ANEW:
        page_say(r, 410, "This was asked anew", false,
                 "The question has changed, and earlier decisions do not count. This link was for "
                 "the earlier question: ask for a new link.");
        return;
    case OBSTACLE_VOTE_OTHER:
        page_say(r, 409, "You have decided already", true,
                 "You decided otherwise before, and that stands.");
        return;
    case OBSTACLE_VOTE_FULL:
        page_say(r, 409, "There is no room for another vote", false,
                 "The task has as many votes as it may.");
        return;
    case OBSTACLE_ENDED:
        page_say(r, 410, "This is decided", false,
                 "Enough people have decided, or the time to decide has passed.");
        return;
    default: /* the step begins anew, or the task is undone, closed or at its end */
        page_say(r, 410, "This is not asked any more", false,
                 "The task has ended, or goes on without this decision.");
        return;
    }
}

static void answer_deleted(struct http_request *r)
{
    page_say(r, 410, "This is not asked any more", false, "The task was deleted.");
}

/* ---- opening it ---- */

struct opening {
    struct store_query base; /* first */
    struct approval_link link;
    struct list_query query;
    struct row_page page;
};

static void opening_run(struct store_job *j, struct store *store)
{
    struct opening *o = CONTAINER_OF(j, struct opening, base.job);

    o->base.err = store->ops->list(store, &o->query, &o->base.arena, &o->page, &o->base.error);
}

static void row(struct buf *b, const char *name, struct slice value)
{
    buf_fmt(b, "<dt>%s</dt><dd dir=\"auto\">", name);
    page_text(b, value);
    buf_str(b, "</dd>\n");
}

static void row_time(struct buf *b, const char *name, int64_t at)
{
    if (at == 0)
        return;
    buf_fmt(b, "<dt>%s</dt><dd>", name);
    page_time(b, at);
    buf_str(b, "</dd>\n");
}

static void row_votes(struct buf *b, const struct task *t, uint16_t step)
{
    for (uint16_t i = 0; i < t->vote_count; i++) {
        const struct vote *v = &t->votes[i];
        if (v->step != step)
            continue;
        buf_fmt(b, "<dt>%s</dt><dd dir=\"auto\">", v->agrees ? "Agreed" : "Rejected");
        page_text(b, v->person);
        buf_str(b, ", ");
        page_time(b, v->at);
        if (v->comment.len > 0)
            buf_str(b, ": ");
        page_text(b, v->comment);
        buf_str(b, "</dd>\n");
    }
}

static struct slice question_of(const struct step *s, struct arena *a)
{
    struct json *j = NULL;

    if (json_parse(a, s->input.json, &j, NULL) != ERR_OK || j->type != JSON_STRING)
        return s->input.json;
    return j->text;
}

static void render_question(struct buf *b, const struct workflow *w, const struct task *t,
                            uint16_t step, struct slice person, struct arena *a)
{
    const struct step *s = &t->steps[step];

    buf_str(b, "<blockquote dir=\"auto\">");
    page_text(b, question_of(s, a));
    buf_str(b, "</blockquote>\n<dl>\n");
    row(b, "You are", person);
    row(b, "Workflow", w->name);
    row(b, "Task", t->id);
    row(b, "Step", w->steps[step].name);
    if (task_submitter(t).ptr)
        row(b, "Submitted by", task_submitter(t));
    row_time(b, "Asked", s->begun_at);
    row_time(b, "Decide by", s->complete_by);
    buf_fmt(b, "<dt>So far</dt><dd>%u of %u agreed</dd>\n", step_votes(t, step).agreed,
            w->steps[step].approve.people);
    row_votes(b, t, step);
    buf_str(b, "</dl>\n");
}

/* Without an action, it goes to the address of the page. */
static void render_form(struct buf *b)
{
    buf_fmt(b,
            "<form method=\"post\" accept-charset=\"utf-8\">\n"
            "<label for=\"comment\">Comment (to reject, it is required)</label>\n"
            "<textarea id=\"comment\" name=\"comment\" rows=\"3\" maxlength=\"%d\"></textarea>\n"
            "<button name=\"decision\" value=\"approve\">Approve</button>\n"
            "<button name=\"decision\" value=\"reject\">Reject</button>\n</form>\n",
            COMMENT_MAX);
}

static void answer_voted(struct http_request *r, const struct vote *v)
{
    CLEANUP(buf_fini) struct buf b = {0};

    buf_str(&b, "<p>You decided at ");
    page_time(&b, v->at);
    buf_str(&b, ". This link has done its work.</p>\n");
    page_answer(r, 200, v->agrees ? "You approved this" : "You rejected this", buf_view(&b));
}

/* The decision that the person would take, or has taken. */
static enum obstacle obstacle_of(const struct opening *o, const struct workflow *w,
                                 const struct task *t, uint16_t step, const struct vote *v)
{
    CLEANUP(arena_fini) struct arena a = {0};
    const struct approval_link *l = &o->link;
    struct server *sv = o->base.x.server;
    int64_t now = server_now(sv);
    struct ballot ballot = {.person = l->person,
                            .asking = l->asking,
                            .submitted_at = l->submitted_at,
                            .agrees = v ? v->agrees : true};

    ballot.groups = access_groups_of(sv->access, l->person, now, &a, &ballot.group_count);
    return vote_obstacle(w, t, step, &ballot, now);
}

static void answer_opened(struct http_request *r, const struct opening *o, const struct workflow *w,
                          const struct task *t)
{
    CLEANUP(arena_fini) struct arena a = {0};
    CLEANUP(buf_fini) struct buf b = {0};
    int step = workflow_step_index(w, o->link.step);

    if (step < 0) { /* of another task of this id */
        answer_deleted(r);
        return;
    }
    const struct vote *v = task_find_vote(t, step, o->link.person);
    enum obstacle why = obstacle_of(o, w, t, (uint16_t)step, v);
    if (why != OBSTACLE_NONE) {
        answer_obstacle(r, why, o->link.person);
        return;
    }
    if (v) {
        answer_voted(r, v);
        return;
    }
    render_question(&b, w, t, (uint16_t)step, o->link.person, &a);
    render_form(&b);
    page_answer(r, 200, "Your decision is asked", buf_view(&b));
}

static void opening_answer(struct http_request *r, struct store_query *it)
{
    CLEANUP(arena_fini) struct arena a = {0};
    const struct opening *o = CONTAINER_OF(it, struct opening, base);
    struct error e = {0};
    struct task t;

    if (o->page.count == 0) {
        answer_deleted(r);
        return;
    }
    const struct task_row *row = &o->page.rows[0];
    const struct definition *def =
        registry_find(&it->x.server->workflows, row->workflow, row->version);
    if (def && task_decode(&def->workflow, row, &a, &t, &e) == ERR_OK)
        answer_opened(r, o, &def->workflow, &t);
    else
        page_say(r, 503, "Try again", true, "This node cannot read the task at present.");
}

void approval_link_get(struct server *sv, struct http_request *r)
{
    struct approval_link link;

    if (!link_ok(sv, r, &link) || !reading_has_room(sv, r, READING_MANY))
        return;
    struct store_query *it = store_query_new(sv, r, sizeof(struct opening), opening_answer);
    struct opening *o = CONTAINER_OF(it, struct opening, base);
    o->link = link;
    o->link.task = arena_copy(&it->arena, link.task);
    o->link.step = arena_copy(&it->arena, link.step);
    o->link.person = arena_copy(&it->arena, link.person);
    o->query = (struct list_query){.ids = &o->link.task, .id_count = 1, .groups = true, .limit = 1};
    store_query_start(it, opening_run);
}

/* ---- deciding ---- */

struct deciding {
    void (*answered)(struct ask *a); /* first: found through ask.user */
    struct exchange x;
    struct arena arena;
    struct ask ask;
};

static void answer_counts(struct http_request *r, const struct ask *a)
{
    if (a->ballot.agrees)
        page_say(r, 200, "You approved", false, "Your decision is stored. %u of %u agreed.",
                 a->agreed, a->people);
    else
        page_say(r, 200, "You rejected", false, "Your decision is stored.");
}

static void decided(struct ask *a)
{
    struct deciding *d = a->user;
    struct http_request *r = d->x.http;
    struct arena arena = d->arena; /* d lies in it */

    if (a->outcome == ERR_OK && !a->existed)
        log_line(LOG_INFO, "event=voted task=%.*s step=%.*s vote=%s by=%.*s", SLICE_ARG(a->id),
                 SLICE_ARG(a->step), ask_kind_text(a->kind), SLICE_ARG(a->ballot.person));
    exchange_untie(&d->x);
    if (r && http_is_alive(r)) {
        if (a->outcome == ERR_OK)
            answer_counts(r, a);
        else if (a->outcome == ERR_NOT_FOUND)
            answer_deleted(r);
        else if (a->refusal != OBSTACLE_NONE)
            answer_obstacle(r, a->refusal, a->ballot.person);
        else
            page_say(r, 503, "Try again", true,
                     "It is not certain that your decision was stored. Repeat it.");
    }
    arena_fini(&arena);
}

static struct slice trimmed(struct slice s)
{
    while (s.len > 0 && memchr(" \t\n", s.ptr[0], 3))
        s = (struct slice){s.ptr + 1, s.len - 1};
    while (s.len > 0 && memchr(" \t\n", s.ptr[s.len - 1], 3))
        s.len--;
    return s;
}

struct form {
    struct slice decision, comment; /* NONE: it was not there */
};

static bool form_read(struct http_request *r, struct form *ret)
{
    struct slice rest = r->body;
    struct slice name, value;
    enum err err = ERR_OK;

    *ret = (struct form){0};
    while ((err = form_next(&rest, &r->arena, &name, &value)) == ERR_OK) {
        struct slice *field = slice_is(name, "decision")  ? &ret->decision
                              : slice_is(name, "comment") ? &ret->comment
                                                          : NULL;
        if (!field || field->ptr)
            return false; /* unknown, or there twice */
        *field = value;
    }
    ret->comment = trimmed(ret->comment);
    return err == ERR_NOT_FOUND
           && (slice_is(ret->decision, "approve") || slice_is(ret->decision, "reject"));
}

/* False: answered. */
static bool form_ok(struct http_request *r, struct form *ret)
{
    static const char type[] = "application/x-www-form-urlencoded";

    if (r->body.len > FORM_MAX)
        page_say(r, 413, "This is too much", true, "A decision has at most %d bytes.", FORM_MAX);
    else if (!content_type_is(r, type) || http_header(r, "content-encoding").ptr)
        page_say(r, 415, "This is not understood", true, "Expected a form: %s.", type);
    else if (!form_read(r, ret))
        page_say(r, 422, "This is not understood", true, "Expected what the page's form sends.");
    else if (ret->comment.len > COMMENT_MAX)
        page_say(r, 422, "The comment is too long", true,
                 "It has %zu bytes, and may have %d. Nothing was decided.", ret->comment.len,
                 COMMENT_MAX);
    else if (slice_is(ret->decision, "reject") && ret->comment.len == 0)
        page_say(r, 422, "A comment is required", true, "To reject, say why. Nothing was decided.");
    else
        return true;
    return false;
}

static struct deciding *deciding_new(struct server *sv, struct http_request *r,
                                     const struct approval_link *link, const struct form *form)
{
    struct arena a = {0};
    struct deciding *d = arena_alloc(&a, sizeof *d);
    bool agrees = slice_is(form->decision, "approve");

    *d = (struct deciding){.answered = decided, .arena = a};
    struct slice comment =
        form->comment.len > 0 ? arena_copy(&d->arena, form->comment) : SLICE_NONE;
    d->ask = (struct ask){.kind = agrees ? ASK_APPROVE : ASK_REJECT,
                          .user = d,
                          .id = arena_copy(&d->arena, link->task),
                          .step = arena_copy(&d->arena, link->step),
                          .reason = comment,
                          .actor = SLICE("approval-link"),
                          .address = caller_address(sv, r, &d->arena),
                          .by_link = true,
                          .ballot = {.person = arena_copy(&d->arena, link->person),
                                     .comment = comment,
                                     .asking = link->asking,
                                     .submitted_at = link->submitted_at,
                                     .agrees = agrees}};
    d->ask.ballot.groups = access_groups_of(sv->access, link->person, server_now(sv), &d->arena,
                                            &d->ask.ballot.group_count);
    return d;
}

void approval_link_post(struct server *sv, struct http_request *r)
{
    struct approval_link link;
    struct form form;

    if (!link_ok(sv, r, &link) || !form_ok(r, &form) || !asks_have_room(sv, r, 0))
        return;
    struct deciding *d = deciding_new(sv, r, &link, &form);
    exchange_begin(&d->x, sv, r);
    server_ask(sv, &d->ask);
}
