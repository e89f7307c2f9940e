#include "api/body.h"
#include "node/submission.h"

#include <openssl/rand.h>
#include <stdio.h>

#include "base/when.h"
#include "dispatch/trace.h"
#include "outbox/reply.h"

static void problem(struct submission *s, int status, const char *type, const char *fmt, ...)
    PRINTF(4, 5);

static void problem(struct submission *s, int status, const char *type, const char *fmt, ...)
{
    va_list ap;

    s->status = status;
    s->problem_type = type;
    va_start(ap, fmt);
    text_format(s->problem, sizeof s->problem, fmt, ap);
    va_end(ap);
}

void id_give(struct server *sv, char ret[ID_TEXT_SIZE])
{
    unsigned char u[16];
    int64_t now = server_now(sv);

    int rc = RAND_bytes(u, sizeof u);
    ASSERT(rc == 1);
    for (int i = 0; i < 6; i++)
        u[i] = (unsigned char)(now >> (40 - 8 * i));
    u[6] = (unsigned char)((u[6] & 0x0f) | 0x70);
    u[8] = (unsigned char)((u[8] & 0x3f) | 0x80);
    (void)snprintf(ret, ID_TEXT_SIZE,
                   "%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x", u[0],
                   u[1], u[2], u[3], u[4], u[5], u[6], u[7], u[8], u[9], u[10], u[11], u[12], u[13],
                   u[14], u[15]);
}

static void give_id(struct server *sv, struct submission *s)
{
    id_give(sv, s->id);
    s->ask.id = slice_of(s->id);
}

static bool id_ok(struct slice id)
{
    return is_name(id) && !slice_is(id, ".") && !slice_is(id, "..");
}

static bool keys_ok(struct submission *s, const struct json *j)
{
    CLEANUP(buf_fini) struct buf story = {0};

    if (members_known(j,
                      NAMES("workflow", "version", "id", "input", "priority", "not_before",
                            "reply_to", "tags", "paused", "traceparent"),
                      "a submission", &story))
        return true;
    problem(s, 422, "unknown-member", "%s", story.ptr);
    return false;
}

/* How a wrong value is shown. */
static struct slice shown(const struct json *j)
{
    return slice_cut(j->raw, 60);
}

static bool tags_ok(struct submission *s, const struct json *tags)
{
    if (!tags || tags->type == JSON_NULL)
        return true;
    if (tags->type != JSON_OBJECT || tags->count > TAGS_MAX) {
        problem(s, 422, "bad-tags", "tags must be an object of at most %d strings", TAGS_MAX);
        return false;
    }
    for (const struct json *m = tags->child; m; m = m->next)
        if (m->type != JSON_STRING || m->text.len > TAG_VALUE_MAX || !is_tag_key(m->key)) {
            problem(s, 422, "bad-tags",
                    "tag \"%.*s\" must be a string of at most %d bytes, its key 1 to 64 of "
                    "[A-Za-z0-9._-]",
                    SLICE_ARG(m->key), TAG_VALUE_MAX);
            return false;
        }
    s->ask.tags = tags->raw;
    return true;
}

static bool priority_ok(struct submission *s, const struct json *priority)
{
    int64_t p = 5;

    if (priority && (!json_int(priority, &p) || p < 0 || p > 9)) {
        problem(s, 422, "bad-priority", "priority is %.*s, expected a whole number from 0 to 9",
                SLICE_ARG(shown(priority)));
        return false;
    }
    s->ask.priority = (int)p;
    return true;
}

/* A moment and no length of time: who submits again, later, means the same moment. */
static bool not_before_ok(struct submission *s, const struct json *not_before)
{
    if (!not_before || not_before->type == JSON_NULL)
        return true;
    if (not_before->type == JSON_STRING && time_parse(not_before->text, &s->ask.not_before))
        return true;
    problem(s, 422, "bad-not-before",
            "not_before is %.*s, expected a time such as \"2026-01-31T10:00:00.000Z\"",
            SLICE_ARG(shown(not_before)));
    return false;
}

static bool reply_to_ok(struct submission *s, const struct json *reply_to)
{
    struct reply reply;
    struct error e = {0};

    if (!reply_to || reply_to->type == JSON_NULL)
        return true;
    if (reply_check(reply_to, &reply, &e) != ERR_OK) {
        problem(s, 422, "bad-reply-to", "%s", e.text);
        return false;
    }
    s->ask.reply_to = arena_copy(&s->arena, reply_text(reply_to));
    s->said.reply_target = arena_copy(&s->arena, reply.to);
    return true;
}

static bool paused_ok(struct submission *s, const struct json *paused)
{
    s->ask.paused = paused && paused->type == JSON_TRUE;
    if (!paused || paused->type == JSON_TRUE || paused->type == JSON_FALSE)
        return true;
    problem(s, 422, "bad-paused", "paused is %.*s, expected true or false",
            SLICE_ARG(shown(paused)));
    return false;
}

/* What belongs to a trace says so: the submission itself, its tags (who submits in SQL has no other
 * place), or the request. What is none is ignored, as the standard wants it. */
static void read_trace(struct submission *s, const struct json *j)
{
    const struct slice said[] = {json_get_text(j, "traceparent"),
                                 json_get_text(json_get(j, "tags"), "traceparent"), s->trace};

    for (size_t i = 0; i < COUNT_OF(said) && !s->ask.trace.ptr; i++)
        if (said[i].ptr)
            s->ask.trace = trace_read(&s->arena, said[i]);
}

static bool read_options(struct submission *s, const struct json *j)
{
    return priority_ok(s, json_get(j, "priority")) && not_before_ok(s, json_get(j, "not_before"))
           && reply_to_ok(s, json_get(j, "reply_to")) && tags_ok(s, json_get(j, "tags"))
           && paused_ok(s, json_get(j, "paused"));
}

static bool find_workflow(struct server *sv, struct submission *s, struct slice name, int64_t v)
{
    s->ask.definition = registry_find(&sv->workflows, name, v);
    if (s->ask.definition)
        return true;
    const struct definition *newest = registry_find(&sv->workflows, name, 0);
    struct slice short_name = slice_cut(name, 80);
    if (newest)
        problem(s, 422, "no-such-workflow",
                "there is no version %" PRId64 " of workflow \"%.*s\", the newest is %" PRId64, v,
                SLICE_ARG(short_name), newest->workflow.version);
    else
        problem(s, 422, "no-such-workflow", "there is no workflow \"%.*s\"", SLICE_ARG(short_name));
    return false;
}

static bool workflow_ok(struct submission *s, const struct json *j)
{
    const struct json *workflow = json_get(j, "workflow");
    const struct json *version = json_get(j, "version");

    if (!workflow || workflow->type != JSON_STRING) {
        problem(s, 422, "bad-workflow", "workflow is %s, expected the name of a workflow",
                workflow ? json_type_text(workflow->type) : "missing");
        return false;
    }
    if (version && (!json_int(version, &s->said.version) || s->said.version < 1)) {
        problem(s, 422, "bad-workflow", "version is %.*s, expected a whole number from 1",
                SLICE_ARG(shown(version)));
        return false;
    }
    s->said.workflow = arena_copy(&s->arena, workflow->text);
    return true;
}

static bool workflow_known(struct server *sv, struct submission *s)
{
    if (!grant_submits(s->grant, s->said.workflow)) {
        struct slice name = slice_cut(s->said.workflow, 80);
        problem(s, 403, "forbidden", "the token \"%.*s\" may not submit to workflow \"%.*s\"",
                SLICE_ARG(s->grant->owner), SLICE_ARG(name));
        return false;
    }
    return find_workflow(sv, s, s->said.workflow, s->said.version);
}

/* In memory of its own, most of which is not needed any longer: trees are many times as large as
 * their texts. */
static bool read_input(struct submission *s)
{
    CLEANUP(arena_fini) struct arena trees = {0};
    struct slice input = s->said.input.ptr ? s->said.input : SLICE("null");
    struct error e = {0};
    struct slice checked;

    if (!s->ask.definition->has_inputs) {
        s->ask.input = input; /* it may be anything */
        return true;
    }
    if (definition_check_input(s->ask.definition, input, &trees, &checked, &e) != ERR_OK) {
        problem(s, 422, "bad-input", "%s", e.text);
        return false;
    }
    s->ask.input = checked.ptr == input.ptr ? input : arena_copy(&s->arena, checked);
    return true;
}

/* Read first, so that the answer to a line can name it whatever else is wrong. */
static bool read_id(struct submission *s, const struct json *j)
{
    const struct json *id = json_get(j, "id");

    if (!id)
        return true;
    if (id->type == JSON_STRING && id_ok(id->text)) {
        s->ask.id = arena_copy(&s->arena, id->text);
        return true;
    }
    problem(s, 422, "bad-id",
            "id is %.*s, expected 1 to 128 characters of [A-Za-z0-9._:-], not . or ..",
            SLICE_ARG(shown(id)));
    return false;
}

static bool read_tree(struct submission *s, const struct json *j)
{
    if (j->type != JSON_OBJECT) {
        problem(s, 422, "not-an-object", "a submission is an object, this is %s",
                json_type_text(j->type));
        return false;
    }
    if (!read_id(s, j) || !keys_ok(s, j) || !workflow_ok(s, j))
        return false;
    s->said.names_workflow = true;
    return read_options(s, j);
}

/* What a text may take while it is parsed. */
struct bounds {
    unsigned depth;
    size_t tree;
};

static struct bounds bounds_of(const struct server *sv)
{
    return (struct bounds){(unsigned)sv->limits.json_depth, trees_max(sv)};
}

/* All that follows from the text alone. Any thread, with `contents` of its own. What is wrong with
 * it is the problem, unless its workflow turns out to be: that comes first. */
static void submission_parse(struct submission *s, struct slice text, struct bounds max,
                             struct contents *contents)
{
    CLEANUP(arena_fini) struct arena tree = {0};
    CLEANUP(buf_fini) struct buf story = {0};
    struct json_fault fault = {0};
    struct json *j = NULL;

    s->ask.kind = ASK_SUBMIT;
    s->ask.user = s;
    enum err err = json_parse_bounded(&tree, text, max.depth, max.tree, &j, &fault);
    if (err == ERR_TOO_BIG) {
        problem(s, 413, "too-big",
                "its values need more memory than this server has (--limit memory)");
        return;
    }
    if (err != ERR_OK) {
        refusal_write(&story, text, &fault, s->line);
        problem(s, 400, "not-json", "not JSON: %s", story.ptr);
        return;
    }
    if (!read_tree(s, j))
        return;
    read_trace(s, j);
    s->said.input = json_get_raw(j, "input");
    s->ask.content = content_of(contents, j, &s->arena);
}

/* What is known here of what the text names. False: it has its problem. */
static bool submission_place(struct server *sv, struct submission *s)
{
    struct error e = {0};

    if (!s->said.names_workflow || !workflow_known(sv, s) || s->problem_type)
        return false;
    if (s->said.reply_target.ptr && !telling_takes(sv, s->said.reply_target, &e)) {
        problem(s, 422, "bad-reply-to", "%s", e.text);
        /* What was accepted once is accepted again, even if the configuration names it no more. */
        s->ask.only_if_exists = true;
    }
    s->ask.owner = s->grant ? s->grant->owner : SLICE_NONE;
    s->ask.own_only = !grant_reads(s->grant, s->ask.definition->workflow.name);
    return true;
}

/* Any thread. What was accepted once is accepted again, even if a newer version asks for other
 * inputs. */
static void submission_check(struct submission *s)
{
    if (!read_input(s))
        s->ask.only_if_exists = true;
}

static bool submission_finish(struct server *sv, struct submission *s)
{
    if (s->ask.only_if_exists && !s->ask.id.ptr) {
        s->ask.only_if_exists = false; /* nobody is asked */
        return false;
    }
    if (!s->ask.id.ptr)
        give_id(sv, s);
    return true;
}

bool submission_read(struct server *sv, struct submission *s, struct slice text)
{
    submission_parse(s, text, bounds_of(sv), sv->contents);
    bool ok = submission_place(sv, s);
    if (ok) {
        submission_check(s);
        ok = submission_finish(sv, s);
    }
    sv->metrics.tasks_refused += !ok;
    return ok;
}

/* ---- the same, beside the loop ---- */

/* It lies in the submission's arena. */
struct aside_reading {
    struct aside_job job;
    struct server *server;
    struct submission *s;
    struct slice text, token;
    struct bounds max;
    void (*then)(struct submission *s, bool ok);
};

static void reading_begin_aside(struct aside_reading *ar)
{
    aside_add(ar->server->bodies, ar->token, ASIDE_SOON, &ar->job);
}

static void reading_end(struct aside_reading *ar, bool ok)
{
    struct server *sv = ar->server;

    sv->exchange_count--;
    sv->asks_open--;
    sv->metrics.tasks_refused += !ok;
    ar->then(ar->s, ok);
}

static void check_on_thread(struct aside_job *j)
{
    submission_check(CONTAINER_OF(j, struct aside_reading, job)->s);
}

static void checked(struct aside_job *j)
{
    struct aside_reading *ar = CONTAINER_OF(j, struct aside_reading, job);

    reading_end(ar, submission_finish(ar->server, ar->s));
}

static void parse_on_thread(struct aside_job *j)
{
    struct aside_reading *ar = CONTAINER_OF(j, struct aside_reading, job);

    struct contents *contents = contents_new();

    submission_parse(ar->s, ar->text, ar->max, contents);
    contents_free(contents);
}

static void parsed(struct aside_job *j)
{
    struct aside_reading *ar = CONTAINER_OF(j, struct aside_reading, job);

    if (!submission_place(ar->server, ar->s)) {
        reading_end(ar, false);
        return;
    }
    j->run = check_on_thread;
    j->done = checked;
    reading_begin_aside(ar);
}

void submission_read_aside(struct server *sv, struct submission *s, struct slice text,
                           struct slice token, void (*then)(struct submission *s, bool ok))
{
    struct aside_reading *ar = arena_alloc(&s->arena, sizeof *ar);

    *ar = (struct aside_reading){
        .job = {.run = parse_on_thread, .done = parsed, .bytes = text.len},
        .server = sv,
        .s = s,
        .text = text,
        .token = token,
        .max = bounds_of(sv),
        .then = then,
    };
    sv->exchange_count++;
    sv->asks_open++;
    reading_begin_aside(ar);
}

struct slice submission_trace(const struct http_request *r, struct arena *a)
{
    if (http_header_count(r, "traceparent") != 1)
        return SLICE_NONE;
    return arena_copy(a, http_header(r, "traceparent"));
}

/* ---- answering ---- */

void submission_problem(struct buf *b, int status, const char *type, struct slice detail)
{
    CLEANUP(buf_fini) struct buf urn = {0};

    buf_fmt(&urn, "urn:intact:problem:%s", type);
    json_open(b, '{');
    json_key(b, "type");
    json_string(b, buf_view(&urn));
    json_key(b, "status");
    json_number(b, status);
    json_key(b, "detail");
    json_string(b, detail);
    json_close(b, '}');
}

static void count_submission(struct metrics *m, const struct ask *a)
{
    m->tasks_existed += a->outcome == ERR_OK && a->existed;
    m->tasks_refused +=
        a->outcome == ERR_CONFLICT || a->outcome == ERR_INVALID || a->outcome == ERR_TOO_BIG;
}

static void accepted(struct submission *s)
{
    s->status = s->ask.existed ? 200 : 201;
    s->problem_type = NULL;
}

void ask_answered(void *arg, struct ask *a)
{
    struct server *sv = arg;
    struct submission *s = a->user;

    ASSERT(sv->asks_open > 0);
    sv->asks_open--;
    if (operations_answered(sv->operations, a))
        return;
    if (a->kind != ASK_SUBMIT) {
        void (**answered)(struct ask *) = a->user; /* see tasks_operate.c */
        (*answered)(a);
        return;
    }
    count_submission(&sv->metrics, a);
    if (a->outcome == ERR_OK && !a->existed && !a->deleted)
        quotas_task(sv->quotas, a->owner, true);
    if (a->outcome == ERR_INVALID && a->only_if_exists)
        ; /* the problem stands as it was found */
    else if (a->outcome == ERR_OK)
        accepted(s);
    else if (a->outcome == ERR_CONFLICT && a->overran)
        problem(s, 409, "task-overran", "%s", a->story);
    else if (a->outcome == ERR_CONFLICT)
        problem(s, 409, "task-exists", "%s", a->story);
    else
        problem(s, err_http_status(a->outcome), trouble_type(a->outcome), "%s%s", a->story,
                err_is_transient(a->outcome) ? "; try again" : "");
    s->answered(s);
}

/* ---- one task ---- */

/* The request of a single submission; it lies in the submission's arena. */
struct single {
    struct exchange x;
    struct submission s;
    struct registry_wait definitions;
    struct slice body;
    struct buf large;    /* in which it lies, if it is */
    struct slice caller; /* NONE: it is not large */
    int64_t wait_ms;
    size_t bytes;
};

/* All that is left to be told of it. */
static void answer_deleted(struct http_request *r, const struct submission *s)
{
    CLEANUP(buf_fini) struct buf b = {0};

    json_open(&b, '{');
    json_key(&b, "id");
    json_string(&b, s->ask.id);
    json_key(&b, "workflow");
    json_string(&b, s->ask.definition->workflow.name);
    json_key(&b, "version");
    json_number(&b, s->ask.version);
    json_key(&b, "deleted");
    json_bool(&b, true);
    json_key(&b, "state");
    json_string(&b, slice_of(task_state_text(s->ask.state)));
    json_key(&b, "ended_at");
    json_time(&b, s->ask.ended_at);
    json_close(&b, '}');
    answer_json(r, s->status, &b, NULL);
}

static void single_answer(struct single *one)
{
    const struct submission *s = &one->s;
    struct http_request *r = one->x.http;
    CLEANUP(buf_fini) struct buf b = {0};
    CLEANUP(buf_fini) struct buf location = {0};

    exchange_untie(&one->x);
    if (s->status == 403)
        route_log_forbidden(one->x.server, r, s->grant->owner,
                            "it may not submit to this workflow");
    if (s->problem_type) {
        http_problem(r, s->status, s->problem_type, "%s", s->problem);
        return;
    }
    if (s->ask.deleted) {
        answer_deleted(r, s);
        return;
    }
    if (one->wait_ms > 0 && door_may_read(one->x.server, r)) {
        /* Its own, or one whose content it knows. */
        task_get_when_ended(one->x.server, r, s->ask.id, NULL, one->wait_ms, s->status);
        return;
    }
    json_open(&b, '{');
    json_key(&b, "id");
    json_string(&b, s->ask.id);
    json_key(&b, "workflow");
    json_string(&b, s->ask.definition->workflow.name);
    json_key(&b, "version");
    json_number(&b, s->ask.version);
    json_close(&b, '}');
    buf_fmt(&location, "Location: /v1/tasks/%.*s\r\n", SLICE_ARG(s->ask.id));
    answer_json(r, s->status, &b, location.ptr);
}

static void single_end(struct single *one)
{
    struct arena a = one->s.arena; /* it lies in it */

    if (one->x.http && one->large.len > 0)
        one->x.http->body = SLICE(""); /* it goes, however long the request stays */
    if (one->x.http && http_is_alive(one->x.http))
        single_answer(one);
    exchange_untie(&one->x); /* whose client is about to be told to have gone */
    one->x.server->asks_bytes -= one->bytes;
    buf_fini(&one->large);
    arena_fini(&a);
}

static void single_answered(struct submission *s)
{
    single_end(CONTAINER_OF(s, struct single, s));
}

static void single_is_read(struct submission *s, bool ok)
{
    struct single *one = CONTAINER_OF(s, struct single, s);

    if (ok)
        server_ask(one->x.server, &s->ask);
    else
        single_end(one);
}

static void single_read(struct single *one)
{
    struct server *sv = one->x.server;

    if (one->large.len > 0)
        submission_read_aside(sv, &one->s, one->body, one->caller, single_is_read);
    else
        single_is_read(&one->s, submission_read(sv, &one->s, one->body));
}

static void single_may_be_read(struct registry_wait *w, enum err err, const char *story)
{
    struct single *one = CONTAINER_OF(w, struct single, definitions);

    one->x.server->exchange_count--;
    one->x.server->asks_open--;
    if (err == ERR_OK) {
        single_read(one);
        return;
    }
    problem(&one->s, err_http_status(err), trouble_type(err), "%s; try again", story);
    single_end(one);
}

/* It may outlive the client. */
static void single_take_body(struct single *one, struct http_request *r)
{
    if (r->body.len > BODY_SMALL) {
        one->large = http_take_body(r);
        one->body = buf_view(&one->large);
        one->caller = arena_copy(&one->s.arena, one->x.server->caller);
    } else {
        one->body = arena_copy(&one->s.arena, r->body);
    }
}

/* What another node has answered of a definition is so here, too: what is stored by now is known
 * before the submission is read. */
static void single_post(struct server *sv, struct http_request *r, int64_t wait_ms)
{
    struct arena a = {0};
    struct single *one = arena_alloc(&a, sizeof *one);

    one->s.arena = a;
    one->s.answered = single_answered;
    one->s.line = 1;
    one->wait_ms = wait_ms;
    one->bytes = r->body.len;
    sv->asks_bytes += one->bytes;
    exchange_begin(&one->x, sv, r);
    single_take_body(one, r);
    one->s.trace = submission_trace(r, &one->s.arena);
    one->s.grant = grant_new(sv->bearer, &one->s.arena);
    one->definitions.told = single_may_be_read;
    if (!registry_read(&sv->workflows, &one->definitions)) {
        single_read(one);
        return;
    }
    sv->exchange_count++;
    sv->asks_open++;
}

void tasks_post(struct server *sv, struct http_request *r)
{
    bool many = content_type_is(r, "application/x-ndjson");
    int64_t wait_ms = 0;

    if (!many && !content_type_is(r, "application/json")) {
        answer_content_type(r, "application/json, or application/x-ndjson for many tasks");
        return;
    }
    if (!content_encoding_ok(r) || !parameters_ok(r, NAMES("wait")) || !wait_of(r, &wait_ms)
        || !asks_have_room(sv, r, r->body.len))
        return;
    if (many)
        many_post(sv, r, wait_ms);
    else if (quota_submits(sv->quotas, r->account, r, 1) && body_may_be_read(sv, r))
        single_post(sv, r, wait_ms);
}
