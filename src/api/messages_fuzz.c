/* Fuzz target of the API's readers: any bytes as the body of a work call, of a submission, of
 * many, of a command of an operator, and as the query of a listing; the first byte says which.
 * What is accepted keeps the limits of the protocol and can be stored and sent on; what is
 * refused is refused in valid JSON. */

#include "base/fuzz.h"
#include "http/connection.h"
#include "http/response.h"
#include "node/content.h"
#include "node/node.h"
#include "json/json.h"
#include "json/text.h"

/* Their reading is private to them. */
#include "api/tasks_list.c"
#include "api/tasks_many.c"
#include "api/tasks_operate.c"
#include "api/tasks_submit.c"
#include "api/work.c"
#include "node/submission.c"

static const char definition[] =
    "{\"intact\":1,\"workflow\":\"w\",\"inputs\":{\"sku\":{\"type\":\"string\",\"required\":true},"
    "\"n\":{\"type\":\"integer\",\"default\":1},\"o\":{\"type\":\"array\"}},\"steps\":["
    "{\"name\":\"a\",\"agent\":\"g\",\"action\":\"x\",\"undo\":\"none\"}]}";

/* A server that has one workflow, and no client that reads its answers. */
static struct server *server_here(void)
{
    static const struct store_ops no_ops;
    static struct store nothing = {.ops = &no_ops}; /* nothing of it is called */
    static struct server sv;
    static struct mistakes m;
    struct definition *d = NULL;

    if (sv.workflows.names.len > 0)
        return &sv;
    enum err err = definition_parse(slice_of(definition), DEFINITION_JSON, &d, &m, NULL);
    ASSERT(err == ERR_OK);
    registry_add(&sv.workflows, d, 1);
    limits_init(&sv.limits);
    sv.contents = contents_new();
    sv.config.store = &nothing;
    return &sv;
}

static struct http_message *message_of(struct slice path, struct slice query, struct slice body)
{
    static struct http_server http;
    static struct http_connection gone = {.phase = HTTP_CLOSED, .server = &http};
    struct slice head;
    struct http_message *m = http_message_new(1, SLICE("application/json"), &head);

    http.handler.arg = server_here();
    m->fields[m->field_count++] = (struct http_field){SLICE("Content-Type"), head};
    m->connection = &gone;
    m->request.method = SLICE("POST");
    m->request.path = path;
    m->request.query = query;
    m->request.body = body;
    return m;
}

static void check_utf8(struct slice s)
{
    if (!s.ptr)
        return;
    ASSERT(text_utf8_end(s) == s.len);
    ASSERT(s.len == 0 || !memchr(s.ptr, 0, s.len));
}

static void check_json(struct slice s)
{
    CLEANUP(arena_fini) struct arena a = {0};
    struct json *j = NULL;

    enum err err = json_parse_within(&a, s, JSON_DEPTH_OUTSIDE, &j, NULL);
    ASSERT(err == ERR_OK);
}

/* ---- work calls ---- */

static void check_result(const struct work_result *r)
{
    check_utf8(r->token);
    if (!r->failed) {
        if (r->output.ptr)
            check_json(r->output);
        return;
    }
    ASSERT(!r->output.ptr);
    ASSERT(r->error.code.len >= 1);
    ASSERT(r->error.code.len <= ERROR_CODE_MAX);
    ASSERT(r->error.message.len <= ERROR_MESSAGE_MAX);
    check_utf8(r->error.code);
    check_utf8(r->error.message);
    ASSERT(r->effect != EFFECT_HAPPENED);
    ASSERT(r->retry_after_ms >= 0);
    ASSERT(r->retry_after_ms <= 10000 * MS_PER_D);
}

static void check_work(const struct work *w)
{
    const struct work_exchange *wx = w->user;

    ASSERT(is_name(w->agent_name));
    ASSERT(is_name(w->instance_name));
    ASSERT(w->max <= WORK_MAX);
    ASSERT(w->wait_ms >= 0);
    ASSERT(w->wait_ms <= 5 * MS_PER_MIN);
    ASSERT(w->holding_count <= WORK_MAX);
    ASSERT(w->result_count <= WORK_MAX);
    for (size_t i = 0; i < w->holding_count; i++)
        check_utf8(w->holding[i]);
    for (size_t i = 0; i < w->result_count; i++) {
        check_result(&w->results[i]);
        check_utf8(wx->tokens[i]);
    }
}

static void as_work(struct slice body)
{
    CLEANUP(buf_fini) struct buf answer = {0};
    struct http_message *m = message_of(SLICE("/v1/agents/p%61yment/work"), SLICE_NONE, body);
    struct json *j = body_json(&m->request, &m->request.arena);

    if (j) {
        struct work *w = work_new();
        struct work_exchange *wx = arena_alloc(&w->arena, sizeof *wx);
        w->user = wx;
        if (read_work(&m->request, j, w)) {
            check_work(w);
            render_answer(&answer, w, 1000000);
            check_json(buf_view(&answer));
        }
        work_free(w);
    }
    http_message_free(m);
}

/* ---- submissions ---- */

static void check_refused(const struct submission *s)
{
    CLEANUP(buf_fini) struct buf b = {0};

    ASSERT(s->status == 400 || s->status == 422);
    ASSERT(s->problem_type);
    ASSERT(s->problem[0]);
    submission_problem(&b, s->status, s->problem_type, slice_of(s->problem));
    check_json(buf_view(&b));
}

static void check_tags(struct slice tags)
{
    CLEANUP(arena_fini) struct arena a = {0};
    struct json *j = NULL;

    enum err err = json_parse(&a, tags, &j, NULL);
    ASSERT(err == ERR_OK);
    ASSERT(j->type == JSON_OBJECT && j->count <= TAGS_MAX);
    for (const struct json *m = j->child; m; m = m->next)
        ASSERT(is_tag_key(m->key) && m->type == JSON_STRING && m->text.len <= TAG_VALUE_MAX);
}

static void check_submission(const struct submission *s)
{
    const struct ask *a = &s->ask;
    CLEANUP(buf_fini) struct buf b = {0};

    ASSERT(id_ok(a->id));
    ASSERT(a->definition);
    ASSERT(a->priority >= 0);
    ASSERT(a->priority <= 9);
    json_time(&b, a->not_before);
    check_utf8(a->reply_to);
    if (a->tags.ptr)
        check_tags(a->tags);
    if (!a->only_if_exists)
        check_json(a->input);
}

static void check_one(struct submission *s, bool taken)
{
    if (taken)
        check_submission(s);
    if (!taken || s->ask.only_if_exists)
        check_refused(s);
}

static void read_one(struct slice text, uint32_t line)
{
    struct submission s = {.line = line};

    check_one(&s, submission_read(server_here(), &s, text));
    arena_fini(&s.arena);
}

static void as_submission(struct slice body)
{
    read_one(body, 1);
}

/* Every byte of the body is in one line, or ends one. */
static void as_many(struct slice body)
{
    struct slice rest = body;
    size_t lines = count_lines(body);
    size_t bytes = 0;
    size_t seen = 0;

    for (uint32_t line = 1; rest.len > 0; line++) {
        struct slice text = next_line(&rest);
        ASSERT(!memchr(text.ptr, '\n', text.len));
        bytes += text.len + (text.ptr + text.len < body.ptr + body.len);
        if (is_blank(text))
            continue;
        seen++;
        read_one(text, line);
    }
    ASSERT(seen == lines);
    ASSERT(bytes == body.len);
}

/* ---- the rest ---- */

static void as_operation(struct slice body)
{
    struct http_message *m = message_of(SLICE("/v1/tasks/o-17/skip"), SLICE_NONE, body);
    static const enum ask_kind kinds[] = {ASK_UNDO,   ASK_SKIP,    ASK_RETRY,  ASK_CANCEL,
                                          ASK_PAUSE,  ASK_CORRECT, ASK_SUPPLY, ASK_CLOSE,
                                          ASK_RESUME, ASK_REOPEN,  ASK_RESOLVE};
    enum ask_kind kind = kinds[body.len % COUNT_OF(kinds)];
    struct json *j = body_json(&m->request, &m->request.arena);

    if (j && body_ok(&m->request, j, kind)) {
        check_utf8(json_get_text(j, "reason"));
        ASSERT(json_get_text(j, "reason").len > 0);
        ASSERT(kind != ASK_SKIP || json_get_text(j, "step").ptr);
        ASSERT(kind != ASK_SUPPLY || json_get(j, "output"));
        ASSERT(kind != ASK_CORRECT || json_get(j, "input"));
        ASSERT((kind == ASK_RESOLVE) == slice_is(json_get_text(j, "effect"), "none"));
    }
    http_message_free(m);
}

/* What head.c lets through decodes. */
static bool decodes(struct http_request *r)
{
    struct slice name, value;

    for (size_t i = 0; i < r->query.len; i++)
        if (r->query.ptr[i] <= ' ' || r->query.ptr[i] > '~')
            return false;
    for (size_t at = 0; http_query_next(r, &at, &name, &value);)
        if (!name.ptr || !value.ptr)
            return false;
    return true;
}

static void check_listing(const struct lister *ls)
{
    const struct list_query *q = &ls->filter.query;

    ASSERT(q->limit >= 1 && q->limit <= LIST_MAX);
    ASSERT(q->before_seq >= 0);
    ASSERT(q->states < 1U << (TASK_ERROR + 1));
    ASSERT(q->tag_count <= TAGS_MAX);
    for (size_t i = 0; i < q->tag_count; i++)
        ASSERT(is_tag_key(q->tags[i].key));
}

static void as_listing(struct http_message *m)
{
    struct lister ls = {0};

    if (read_query(&m->request, &ls)) {
        check_listing(&ls);
        ASSERT(!m->is_answered);
    } else {
        ASSERT(m->is_answered);
        m->is_answered = false;
    }
    arena_fini(&ls.arena);
}

/* Whatever was decoded, a problem that quotes it is valid JSON. */
static void as_query(struct slice query)
{
    struct http_message *m = message_of(SLICE("/v1/tasks"), query, SLICE(""));
    CLEANUP(buf_fini) struct buf b = {0};
    struct slice wait = http_query(&m->request, "wait");
    int64_t ms = 0;
    int64_t n = 0;

    if (!decodes(&m->request)) {
        http_message_free(m);
        return;
    }
    as_listing(m);
    if (!parameters_ok(&m->request, NAMES("wait"))) {
        m->is_answered = false;
    } else if (wait_of(&m->request, &ms)) {
        ASSERT(ms >= 0);
        ASSERT(ms <= 5 * MS_PER_MIN);
    } else {
        m->is_answered = false;
    }
    if (count_of(query, INT64_MAX, &n))
        ASSERT(n >= 1);
    http_problem_write(&b, 422, "bad-wait", wait);
    check_json(buf_view(&b));
    http_message_free(m);
}

/* A content type that passes names that type and nothing else. */
static void as_content_type(struct slice value)
{
    struct http_message *m = message_of(SLICE("/v1/tasks"), SLICE_NONE, SLICE("{}"));

    m->fields[0].value = value;
    if (content_type_is(&m->request, "application/json")) {
        ASSERT(value.len >= strlen("application/json"));
        ASSERT(!content_type_is(&m->request, "application/x-ndjson"));
    } else {
        answer_content_type(&m->request, "application/json");
        ASSERT(m->is_answered);
    }
    http_message_free(m);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    struct fuzz f = {bytes, len};
    uint8_t what = fuzz_byte(&f);
    struct slice rest = fuzz_rest(&f);

    if (what == UINT8_MAX) {
        as_content_type(rest);
        return 0;
    }
    switch (what % 5) {
    case 0:
        as_work(rest);
        break;
    case 1:
        as_submission(rest);
        break;
    case 2:
        as_many(rest);
        break;
    case 3:
        as_operation(rest);
        break;
    default:
        as_query(rest);
    }
    return 0;
}
