/*
 * Changes of schedules: PUT, DELETE, pause, resume, run, backfill. Each reads the row, decides, and
 * writes it by its revision, with its audit entry; after a conflict with the leader it is decided
 * again.
 */

#include <stdio.h>
#include <stdlib.h>

#include "api/body.h"
#include "api/caller.h"
#include "api/compiling.h"
#include "api/handlers.h"
#include "api/schedules.h"
#include "background/cache.h"
#include "base/when.h"
#include "definition/family.h"
#include "definition/grammar.h"
#include "definition/registry.h"
#include "node/channels.h"
#include "node/json_answer.h"
#include "node/new_id.h"
#include "node/node.h"
#include "node/strict.h"
#include "node/submission.h"
#include "outbox/reply_to.h"
#include "store/row.h"

enum { CHANGES_MAX = 10, REASON_MAX = 1024 };

/* ---- on the store's thread ---- */

/* Names a living node that would refuse the ids of runs. */
static enum err find_older(struct schedule_call *c, struct store *st)
{
    struct node_row *rows = NULL;
    size_t count = 0;

    if (!st->shared || !c->schedule)
        return ERR_OK;
    enum err err = st->ops->nodes->list(st, c->now, &c->arena, &rows, &count, &c->error);
    for (size_t i = 0; err == ERR_OK && i < count; i++)
        if (rows[i].alive && rows[i].grammar < GRAMMAR_SCHEDULE)
            (void)snprintf(c->older, sizeof c->older, "%.*s", SLICE_ARG(rows[i].name));
    return err;
}

/* One try. ERR_CONFLICT: the row was changed meanwhile. */
static enum err try_change(struct schedule_call *c, struct store *st)
{
    const struct schedule_query q = {.name = c->name, .limit = 1};
    struct schedule_page page = {0};

    c->writes = false;
    buf_clear(&c->doc);
    enum err err = st->ops->schedules->list(st, &q, &c->arena, &page, &c->error);
    if (err != ERR_OK)
        return err;
    if (page.count == 0 && !c->schedule)
        return error_set(&c->error, ERR_NOT_FOUND, "there is no schedule %.*s", SLICE_ARG(c->name));
    err = c->change(c, page.count ? &page.rows[0] : NULL);
    if (err != ERR_OK || !c->writes)
        return err;
    c->next.audit = &c->audit;
    err = st->ops->schedules->write(st, &c->next, 1, NULL, &c->error);
    if (err == ERR_OK && !c->next.done)
        err = error_set(&c->error, ERR_CONFLICT, "schedule %.*s is changed all the time",
                        SLICE_ARG(c->name));
    return err;
}

void schedule_change_run(struct store_job *j, struct store *st)
{
    struct schedule_call *c = CONTAINER_OF(j, struct schedule_call, job);

    if (c->removes) {
        c->err = st->ops->schedules->remove(st, c->name, &c->audit, &c->error);
        c->writes = true;
        json_open(&c->body, '{');
        json_member_text(&c->body, "name", c->name);
        json_close(&c->body, '}');
        return;
    }
    c->err = find_older(c, st);
    if (c->err != ERR_OK || *c->older)
        return;
    c->err = ERR_CONFLICT;
    for (int i = 0; i < CHANGES_MAX && c->err == ERR_CONFLICT; i++)
        c->err = try_change(c, st);
    if (c->err == ERR_OK && c->body.len == 0)
        c->err = schedule_render(c, &c->next.row, false);
}

/* ---- what is changed ---- */

/* Encodes the state into the next row. */
static void set_next(struct schedule_call *c, const struct schedule *s,
                     const struct schedule_state *st)
{
    schedule_encode(s, st, c->now, &c->doc, &c->next.row);
    c->writes = true;
}

/* What the verbs of operators share: `verb` changes the state, and may set c->writes. */
typedef enum err state_verb(struct schedule_call *c, const struct schedule *s,
                            struct schedule_state *st);

static enum err change_state(struct schedule_call *c, const struct schedule_row *row,
                             state_verb *verb)
{
    struct schedule_state *st = arena_alloc(&c->arena, sizeof *st);
    struct schedule *s = NULL;

    c->next = (struct schedule_change){.row = *row};
    enum err err = schedule_decode(row, &c->arena, &s, st, &c->error);
    if (err != ERR_OK)
        return err;
    err = verb(c, s, st);
    if (err == ERR_OK && c->writes) {
        set_next(c, s, st);
        c->next.row.workflow = row->workflow; /* the schedule goes now */
        c->next.row.text = row->text;
    }
    schedule_free(s);
    return err;
}

static enum err pause_state(struct schedule_call *c, const struct schedule *s,
                            struct schedule_state *st)
{
    (void)s;
    c->writes = plan_pause(st, c->now);
    return ERR_OK;
}

static enum err resume_state(struct schedule_call *c, const struct schedule *s,
                             struct schedule_state *st)
{
    (void)s;
    c->writes = plan_resume(st, c->now);
    return ERR_OK;
}

/* Its task is beside those of the moments: it is not the open run. */
static enum err run_state(struct schedule_call *c, const struct schedule *s,
                          struct schedule_state *st)
{
    struct slice input;

    enum err err =
        schedule_input(s, c->now - c->now % MS_PER_S, st->fired, &c->arena, &input, &c->error);
    if (err != ERR_OK)
        return err;
    c->submission =
        run_submission(s, schedule_person(&c->next.row), c->submission.id, input, c->now);
    c->submission.workflow = arena_copy(&c->arena, c->submission.workflow);
    c->submission.tags = arena_copy(&c->arena, c->submission.tags);
    c->submission.reply_to = arena_copy(&c->arena, c->submission.reply_to);
    c->next.submissions = &c->submission;
    c->next.submission_count = 1;
    c->writes = true;
    return ERR_OK;
}

static enum err backfill_state(struct schedule_call *c, const struct schedule *s,
                               struct schedule_state *st)
{
    uint64_t count = 0;

    enum err err = plan_backfill(s, st, c->from, c->to, &count, &c->error);
    if (err == ERR_CONFLICT) /* it would be tried again */
        return error_set(&c->error, ERR_INVALID, "%d backfills are not done yet",
                         BACKLOG_RANGES_MAX);
    c->writes = err == ERR_OK;
    c->count = (int64_t)count;
    return err;
}

static enum err do_pause(struct schedule_call *c, const struct schedule_row *row)
{
    return change_state(c, row, pause_state);
}

static enum err do_resume(struct schedule_call *c, const struct schedule_row *row)
{
    return change_state(c, row, resume_state);
}

static enum err do_run(struct schedule_call *c, const struct schedule_row *row)
{
    enum err err = change_state(c, row, run_state);

    if (err == ERR_OK && c->body.len == 0) {
        json_open(&c->body, '{');
        json_member_text(&c->body, "name", c->name);
        json_member_text(&c->body, "task", c->submission.id);
        json_close(&c->body, '}');
    }
    return err;
}

static enum err do_backfill(struct schedule_call *c, const struct schedule_row *row)
{
    enum err err = change_state(c, row, backfill_state);

    if (err == ERR_OK && c->body.len == 0) {
        json_open(&c->body, '{');
        json_member_text(&c->body, "name", c->name);
        json_member_number(&c->body, "moments", c->count);
        json_close(&c->body, '}');
    }
    return err;
}

/* ---- PUT ---- */

static enum err keep_state(struct schedule_call *c, const struct schedule_row *row,
                           struct schedule_state *st)
{
    struct schedule *old = NULL;
    struct error e = {0};

    if (schedule_decode(row, &c->arena, &old, st, &e) != ERR_OK) {
        *st = (struct schedule_state){.last = c->now, .run = row->run};
        return ERR_OK; /* an unreadable version is replaced */
    }
    plan_replace(old, c->schedule, st, c->now);
    schedule_free(old);
    return ERR_OK;
}

/* The same text is stored again if nobody knows whose it is, and now somebody says so. */
static bool is_there(const struct schedule_call *c, const struct schedule_row *row)
{
    return row && slice_eq(row->text, c->schedule->text)
           && (schedule_person(row).ptr || !c->person.ptr);
}

static enum err do_put(struct schedule_call *c, const struct schedule_row *row)
{
    struct schedule_state *st = arena_alloc(&c->arena, sizeof *st);

    if (is_there(c, row)) {
        c->next.row = *row;
        return ERR_OK;
    }
    *st = (struct schedule_state){.last = c->now};
    c->next = (struct schedule_change){.new_version = true};
    if (row) {
        c->next.row = *row;
        (void)keep_state(c, row, st);
    }
    c->next.row.name = c->schedule->name;
    c->next.row.version++;
    c->next.row.author = c->audit.actor.ptr ? c->audit.actor : SLICE("");
    c->next.row.person = schedule_person_text(c->next.row.version, c->person, &c->arena);
    c->next.row.stored_at = c->now;
    c->audit.reason = audit_workflow_reason(&c->arena, c->name, c->next.row.version);
    c->status = 201;
    set_next(c, c->schedule, st);
    return ERR_OK;
}

static void answer_mistakes(struct http_request *r, enum err err, const struct mistakes *m,
                            const struct mistakes *warnings)
{
    CLEANUP(buf_fini) struct buf b = {0};
    int status = err == ERR_PARSE ? 400 : 422;

    json_open(&b, '{');
    json_member_text(&b, "type", SLICE("urn:intact:problem:bad-schedule"));
    json_member_text(&b, "title", SLICE("The schedule has mistakes"));
    json_member_number(&b, "status", status);
    json_key(&b, "errors");
    mistakes_render(&b, m);
    json_key(&b, "warnings");
    mistakes_render(&b, warnings);
    json_close(&b, '}');
    http_answer(r, status, "application/problem+json", buf_view(&b), NULL);
}

/* What it names exists here. False: answered. */
static bool is_known(struct server *sv, struct http_request *r, const struct schedule *s)
{
    CLEANUP(arena_fini) struct arena a = {0};
    struct error e = {0};
    struct reply reply = {0};
    struct slice name = http_segment(r, 2);

    if (!slice_eq(name, s->name)) {
        http_problem(r, 422, "other-name",
                     "the text is of schedule \"%.*s\", the path says \"%.*s\"", SLICE_ARG(s->name),
                     SLICE_ARG(slice_cut(name, 80)));
        return false;
    }
    if (!registry_find(&sv->workflows, s->workflow, 0)) {
        http_problem(r, 422, "no-such-workflow", "there is no workflow \"%.*s\"",
                     SLICE_ARG(s->workflow));
        return false;
    }
    if (s->reply_to.ptr)
        reply_read(s->reply_to, &a, &reply);
    if (reply.to.ptr && !channels_take(sv, reply.to, &e)) {
        http_problem(r, 422, "bad-reply-to", "%s", e.text);
        return false;
    }
    return true;
}

/* Its tasks would be refused, one by one. */
static bool family_ok(struct server *sv, struct http_request *r, const struct definition *d,
                      const struct bearer *author)
{
    CLEANUP(arena_fini) struct arena a = {0};
    const struct family_source source = {registry_newest, &sv->workflows, author->person.ptr};
    struct family_fault f;
    struct slice family;

    if (!d || family_resolve(d, &source, &a, &family, &f) == ERR_OK)
        return true;
    const struct family_problem p = family_problem(f.what);
    http_problem(r, p.status, p.type, "children: found %s, expected %s", f.path, f.expected);
    return false;
}

/* Likewise. */
static bool author_ok(struct server *sv, struct http_request *r, const struct schedule *s,
                      const struct bearer *author)
{
    const struct definition *d = registry_find(&sv->workflows, s->workflow, 0);

    if (!d || !d->needs_submitter || author->person.ptr)
        return family_ok(sv, r, d, author);
    http_problem(r, 422, "no-submitter",
                 "workflow \"%.*s\" has an approval by another person than its submitter, which is "
                 "whoever stores this schedule: store it with a token",
                 SLICE_ARG(s->workflow));
    return false;
}

static void put_now(struct server *sv, struct http_request *r)
{
    const struct bearer *bearer = caller_recheck(sv, r);
    struct mistakes *m = calloc(1, sizeof *m);
    struct mistakes *warnings = calloc(1, sizeof *warnings);
    enum definition_format format = DEFINITION_YAML;
    struct schedule *s = NULL;

    ASSERT(m && warnings);
    (void)definition_format_of(r, &format); /* it was checked before */
    enum err err = bearer ? schedule_parse(r->body, (enum source_format)format, &s, m, warnings)
                          : ERR_OK; /* answered */
    if (err != ERR_OK)
        answer_mistakes(r, err, m, warnings);
    free(m);
    if (!s || !is_known(sv, r, s) || !author_ok(sv, r, s, bearer) || !asks_have_room(sv, r, 0)) {
        schedule_free(s);
        free(warnings);
        return;
    }
    struct schedule_call *c = schedule_call_new(sv, r);
    c->audit.actor = arena_copy(&c->arena, bearer->name);
    c->person = arena_copy(&c->arena, bearer->person);
    c->audit.verb = SLICE("schedule.put");
    c->schedule = s;
    c->warnings = warnings;
    c->change = do_put;
    schedule_call_begin(c, sv, r);
}

/* Small enough for the event loop. */
void schedule_put(struct server *sv, struct http_request *r)
{
    enum definition_format format;

    if (!definition_format_of(r, &format)) {
        answer_content_type(r, "application/json or application/yaml");
        return;
    }
    if (!content_encoding_ok(r))
        return;
    if (r->body.len > SCHEDULE_TEXT_MAX) {
        http_problem(r, 413, "too-big", "a schedule may have at most %d bytes, this has %zu",
                     SCHEDULE_TEXT_MAX, r->body.len);
        return;
    }
    cache_serve(sv, r, put_now);
}

/* ---- verbs of operators ---- */

static struct slice reason_of(struct schedule_call *c, struct slice text)
{
    CLEANUP(buf_fini) struct buf b = {0};

    buf_fmt(&b, "%.*s", SLICE_ARG(c->name));
    if (text.len)
        buf_fmt(&b, ": %.*s", SLICE_ARG(text));
    return arena_copy(&c->arena, buf_view(&b));
}

/* NULL: answered. */
static struct schedule_call *
verb_begin(struct server *sv, struct http_request *r, const struct json *j, const char *verb,
           enum err (*change)(struct schedule_call *c, const struct schedule_row *row))
{
    struct slice reason = json_get_text(j, "reason");

    if (reason.len == 0 || reason.len > REASON_MAX) {
        http_problem(r, 422, "no-reason",
                     "a reason of at most %d bytes is required: {\"reason\": \"...\"}", REASON_MAX);
        return NULL;
    }
    if (!asks_have_room(sv, r, 0))
        return NULL;
    struct schedule_call *c = schedule_call_new(sv, r);
    c->change = change;
    c->audit.verb = slice_of(verb);
    c->audit.reason = reason_of(c, reason);
    return c;
}

static void simple_verb(struct server *sv, struct http_request *r, const char *verb,
                        enum err (*change)(struct schedule_call *c, const struct schedule_row *row))
{
    CLEANUP(arena_fini) struct arena tree = {0};
    struct json *j = body_json(r, &tree);

    if (!j || !members_ok(r, j, NAMES("reason"), "a change of a schedule"))
        return;
    struct schedule_call *c = verb_begin(sv, r, j, verb, change);
    if (c)
        schedule_call_begin(c, sv, r);
}

void schedule_pause(struct server *sv, struct http_request *r)
{
    simple_verb(sv, r, "schedule.pause", do_pause);
}

void schedule_resume(struct server *sv, struct http_request *r)
{
    simple_verb(sv, r, "schedule.resume", do_resume);
}

void schedule_run(struct server *sv, struct http_request *r)
{
    CLEANUP(arena_fini) struct arena tree = {0};
    CLEANUP(buf_fini) struct buf id = {0};
    struct json *j = body_json(r, &tree);
    char uuid[ID_TEXT_SIZE];

    if (!j || !members_ok(r, j, NAMES("reason"), "a run of a schedule"))
        return;
    struct schedule_call *c = verb_begin(sv, r, j, "schedule.run", do_run);
    if (!c)
        return;
    id_give(sv, uuid);
    buf_fmt(&id, "%.*s@run-%s", SLICE_ARG(c->name), uuid);
    c->submission.id = arena_copy(&c->arena, buf_view(&id));
    c->status = 202;
    schedule_call_begin(c, sv, r);
}

static bool read_moments(struct http_request *r, const struct json *j, int64_t now,
                         int64_t *ret_from, int64_t *ret_to)
{
    if (time_parse(json_get_text(j, "from"), ret_from) && time_parse(json_get_text(j, "to"), ret_to)
        && *ret_from <= *ret_to && *ret_to <= now)
        return true;
    http_problem(r, 422, "bad-moments",
                 "from and to are times such as \"2026-01-31T10:00:00Z\", the first one not after "
                 "the second one, which is not in the future");
    return false;
}

void schedule_backfill(struct server *sv, struct http_request *r)
{
    CLEANUP(arena_fini) struct arena tree = {0};
    struct json *j = body_json(r, &tree);
    int64_t from = 0;
    int64_t to = 0;

    if (!j || !members_ok(r, j, NAMES("from", "to", "reason"), "a backfill")
        || !read_moments(r, j, server_now(sv), &from, &to))
        return;
    struct schedule_call *c = verb_begin(sv, r, j, "schedule.backfill", do_backfill);
    if (!c)
        return;
    c->from = from;
    c->to = to;
    c->status = 202;
    schedule_call_begin(c, sv, r);
}

void schedule_delete(struct server *sv, struct http_request *r)
{
    if (!asks_have_room(sv, r, 0))
        return;
    struct schedule_call *c = schedule_call_new(sv, r);
    c->removes = true;
    c->audit.verb = SLICE("schedule.delete");
    c->audit.reason = reason_of(c, SLICE_NONE);
    schedule_call_begin(c, sv, r);
}
