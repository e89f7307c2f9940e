#include "server/internal.h"

#include <openssl/rand.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/when.h"
#include "json/json.h"

/* One submission: of a single request, or a line of many. */
struct submission {
    struct ask ask;
    struct submissions *all;
    uint32_t line;
    int status; /* 0: not answered yet */
    const char *problem_type;
    char problem[300];
    char id[40]; /* if we gave it */
};

/* All submissions of one request, answered together. */
struct submissions {
    struct exchange x;
    struct arena arena;
    struct submission *list;
    size_t count, open;
    bool many;
    int64_t wait_ms;
};

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

/* RFC 9562, UUID version 7: the time in front, so that ids given one after another lie together. */
static void give_id(struct server *sv, struct submission *s)
{
    unsigned char u[16];
    int64_t now = server_now(sv);

    int rc = RAND_bytes(u, sizeof u);
    ASSERT(rc == 1);
    for (int i = 0; i < 6; i++)
        u[i] = (unsigned char)(now >> (40 - 8 * i));
    u[6] = (unsigned char)((u[6] & 0x0f) | 0x70);
    u[8] = (unsigned char)((u[8] & 0x3f) | 0x80);
    (void)snprintf(s->id, sizeof s->id,
                   "%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x", u[0],
                   u[1], u[2], u[3], u[4], u[5], u[6], u[7], u[8], u[9], u[10], u[11], u[12], u[13],
                   u[14], u[15]);
    s->ask.id = slice_of(s->id);
}

static bool id_ok(struct slice id)
{
    return is_name(id) && !slice_is(id, ".") && !slice_is(id, "..");
}

static bool keys_ok(struct submission *s, const struct json *j)
{
    static const char *const known[] = {"workflow", "version",    "id",       "input",
                                        "priority", "not_before", "reply_to", "tags"};

    for (const struct json *m = j->child; m; m = m->next) {
        bool found = false;
        for (size_t i = 0; i < COUNT_OF(known); i++)
            found |= slice_is(m->key, known[i]);
        if (!found) {
            problem(s, 422, "unknown-member", "there is no member \"%.*s\" in a submission",
                    SLICE_ARG(m->key));
            return false;
        }
    }
    return true;
}

static bool tags_ok(struct submission *s, const struct json *tags)
{
    if (!tags || tags->type == JSON_NULL)
        return true;
    if (tags->type != JSON_OBJECT || tags->count > 32) {
        problem(s, 422, "bad-tags", "tags must be an object of at most 32 strings");
        return false;
    }
    for (const struct json *m = tags->child; m; m = m->next)
        if (m->type != JSON_STRING || m->text.len > 256 || m->key.len > 64 || m->key.len == 0) {
            problem(s, 422, "bad-tags",
                    "tag \"%.*s\" must be a string of at most 256 bytes, its name of 1 to 64",
                    SLICE_ARG(m->key));
            return false;
        }
    s->ask.tags = tags->raw;
    return true;
}

static bool read_options(struct submission *s, const struct json *j)
{
    const struct json *not_before = json_get(j, "not_before");
    const struct json *priority = json_get(j, "priority");
    int64_t p = 5;

    if (priority && (!json_int(priority, &p) || p < 0 || p > 9)) {
        problem(s, 422, "bad-priority", "priority must be a whole number from 0 to 9");
        return false;
    }
    s->ask.priority = (int)p;
    if (not_before && not_before->type != JSON_NULL
        && (not_before->type != JSON_STRING || !time_parse(not_before->text, &s->ask.not_before))) {
        problem(s, 422, "bad-not-before",
                "not_before must be a time such as 2026-01-31T10:00:00.000Z");
        return false;
    }
    const struct json *reply_to = json_get(j, "reply_to");
    if (reply_to && reply_to->type != JSON_NULL && reply_to->type != JSON_STRING) {
        problem(s, 422, "bad-reply-to", "reply_to must be an address, this is %s",
                json_type_text(reply_to->type));
        return false;
    }
    s->ask.reply_to = json_get_text(j, "reply_to");
    return tags_ok(s, json_get(j, "tags"));
}

static bool read_workflow(struct server *sv, struct submission *s, const struct json *j)
{
    struct slice name = json_get_text(j, "workflow");
    const struct json *version = json_get(j, "version");
    int64_t v = 0;

    if (!name.ptr || (version && (!json_int(version, &v) || v < 1))) {
        problem(s, 422, "bad-workflow",
                "workflow must be a name, version (if given) a whole number from 1");
        return false;
    }
    s->ask.definition = registry_find(&sv->workflows, name, v);
    if (!s->ask.definition) {
        problem(s, 422, "no-such-workflow",
                "there is no workflow \"%.*s\"%s; store it with PUT /v1/workflows/%.*s",
                SLICE_ARG(name), v ? " of that version" : "", SLICE_ARG(name));
        return false;
    }
    return true;
}

static bool read_input(struct submission *s, const struct json *j, struct arena *a)
{
    struct slice input = json_get_raw(j, "input");
    struct error e = {0};

    if (!input.ptr)
        input = SLICE("null");
    if (definition_check_input(s->ask.definition, input, a, &s->ask.input, &e) == ERR_OK)
        return true;
    problem(s, 422, "bad-input", "%s", e.text);
    return false;
}

/* Read first, so that the answer to a line can name it whatever else is wrong. */
static bool read_id(struct submission *s, const struct json *j)
{
    const struct json *id = json_get(j, "id");

    if (!id)
        return true;
    if (id->type == JSON_STRING && id_ok(id->text)) {
        s->ask.id = id->text;
        return true;
    }
    problem(s, 422, "bad-id", "id must be 1 to 128 characters of [A-Za-z0-9._:-], not . or ..");
    return false;
}

static bool read_submission(struct server *sv, struct submission *s, struct slice text,
                            struct arena *a)
{
    struct json_fault fault = {0};
    struct json *j = NULL;

    s->ask.kind = ASK_SUBMIT;
    s->ask.user = s;
    if (json_parse_within(a, text, (unsigned)sv->limits.json_depth, &j, &fault) != ERR_OK) {
        problem(s, 400, "not-json", "not JSON: line %u, column %u: %s", fault.line, fault.column,
                fault.what);
        return false;
    }
    if (j->type != JSON_OBJECT) {
        problem(s, 422, "not-an-object", "a submission is an object, this is %s",
                json_type_text(j->type));
        return false;
    }
    if (!read_id(s, j) || !keys_ok(s, j) || !read_workflow(sv, s, j) || !read_options(s, j))
        return false;
    s->ask.content = json_hash(j);
    /* What was accepted once is accepted again, even if a newer version asks for other inputs. */
    s->ask.only_if_exists = !read_input(s, j, a);
    if (s->ask.only_if_exists && !s->ask.id.ptr) {
        s->ask.only_if_exists = false; /* nobody is asked */
        return false;
    }
    if (!s->ask.id.ptr)
        give_id(sv, s);
    return true;
}

/* ---- answering ---- */

static void render_problem(struct buf *b, const struct submission *s)
{
    json_open(b, '{');
    json_key(b, "type");
    CLEANUP(buf_fini) struct buf type = {0};
    buf_fmt(&type, "urn:intact:problem:%s", s->problem_type);
    json_string(b, buf_view(&type));
    json_key(b, "status");
    json_number(b, s->status);
    json_key(b, "detail");
    json_string(b, slice_of(s->problem));
    json_close(b, '}');
}

static void answer_many(const struct submissions *all)
{
    CLEANUP(buf_fini) struct buf b = {0};

    for (size_t i = 0; i < all->count; i++) {
        const struct submission *s = &all->list[i];
        json_open(&b, '{');
        json_key(&b, "line");
        json_number(&b, s->line);
        json_key(&b, "status");
        json_number(&b, s->status);
        json_key(&b, "id");
        json_string(&b, s->ask.id);
        if (s->problem_type) {
            json_key(&b, "problem");
            render_problem(&b, s);
        }
        json_close(&b, '}');
        buf_byte(&b, '\n');
    }
    http_answer(all->x.http, 200, "application/x-ndjson", buf_view(&b), NULL);
}

static void answer_one(struct submissions *all)
{
    const struct submission *s = &all->list[0];
    struct http_request *r = all->x.http;
    CLEANUP(buf_fini) struct buf b = {0};
    CLEANUP(buf_fini) struct buf location = {0};

    if (s->problem_type) {
        http_problem(r, s->status, s->problem_type, "%s", s->problem);
        return;
    }
    if (all->wait_ms > 0 && door_may_wait(all->x.server)) {
        task_get_when_ended(all->x.server, r, s->ask.id, all->wait_ms, s->status);
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

static void answer_if_complete(struct submissions *all)
{
    if (all->open > 0)
        return;
    if (all->x.http && http_is_alive(all->x.http)) {
        struct http_request *r = all->x.http;
        exchange_untie(&all->x);
        all->x.http = r;
        if (all->many)
            answer_many(all);
        else
            answer_one(all);
    }
    struct arena a = all->arena; /* all of it lies in it */
    arena_fini(&a);
}

static void accepted(struct submission *s)
{
    s->status = s->ask.existed ? 200 : 201;
    s->problem_type = NULL;
}

void ask_answered(void *arg, struct ask *a)
{
    struct submission *s = a->user;
    (void)arg;

    if (a->kind != ASK_SUBMIT) {
        void (**answered)(struct ask *) = a->user; /* see tasks_operate.c */
        (*answered)(a);
        return;
    }
    if (a->outcome == ERR_INVALID && a->only_if_exists)
        ; /* the problem stands as it was found */
    else if (a->outcome == ERR_OK)
        accepted(s);
    else if (a->outcome == ERR_CONFLICT)
        problem(s, 409, "task-exists", "%s", a->story);
    else
        problem(s, err_http_status(a->outcome), trouble_type(a->outcome), "%s%s", a->story,
                err_is_transient(a->outcome) ? "; try again" : "");
    s->all->open--;
    answer_if_complete(s->all);
}

/* ---- reading ---- */

static size_t count_lines(struct slice body)
{
    size_t n = 1;

    for (size_t i = 0; i < body.len; i++)
        n += body.ptr[i] == '\n';
    return n;
}

static void read_lines(struct server *sv, struct submissions *all, struct slice body)
{
    uint32_t line = 0;

    while (body.len > 0) {
        const char *nl = memchr(body.ptr, '\n', body.len);
        size_t len = nl ? (size_t)(nl - body.ptr) : body.len;
        struct slice text = {body.ptr, len};
        body = (struct slice){body.ptr + len + (nl != NULL), body.len - len - (nl != NULL)};
        line++;
        if (len == 0 || (len == 1 && text.ptr[0] == '\r'))
            continue;
        struct submission *s = &all->list[all->count++];
        s->all = all;
        s->line = line;
        if (read_submission(sv, s, text, &all->arena))
            all->open++;
    }
}

void tasks_post(struct server *sv, struct http_request *r)
{
    struct arena a = {0};
    bool many = content_type_is(r, "application/x-ndjson");
    int64_t wait_ms = 0;

    if (!many && !content_type_is(r, "application/json")) {
        http_problem(r, 415, "content-type",
                     "send a task as application/json, or many as application/x-ndjson");
        return;
    }
    if (!wait_of(r, &wait_ms))
        return;
    struct submissions *all = arena_alloc(&a, sizeof *all);
    all->arena = a;
    all->many = many;
    all->wait_ms = wait_ms;
    struct slice body = arena_copy(&all->arena, r->body); /* it may outlive the client */
    all->list = arena_alloc(&all->arena, (many ? count_lines(body) : 1) * sizeof *all->list);
    exchange_begin(&all->x, sv, r);
    if (many) {
        read_lines(sv, all, body);
    } else {
        all->count = 1;
        all->list[0].all = all;
        all->list[0].line = 1;
        all->open = read_submission(sv, &all->list[0], body, &all->arena) ? 1 : 0;
    }
    for (size_t i = 0; i < all->count; i++)
        if (all->list[i].status == 0 || all->list[i].ask.only_if_exists)
            scheduler_ask(sv->scheduler, &all->list[i].ask);
    answer_if_complete(all);
}
