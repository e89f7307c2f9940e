#include "server/compiling.h"

#include <stdlib.h>

struct compilings {
    struct server *server;
    struct link waiting; /* of struct compiling; the first of them may be running */
    size_t count, bytes;
    bool running;
};

struct compiling {
    struct exchange x;
    struct link link;
    uv_work_t work;
    char *text; /* the request may end before the thread has done with it */
    size_t len;
    enum definition_format format;
    struct compiled result;
    char caller[ACCESS_NAME_MAX];
    void (*then)(struct server *sv, struct http_request *r, struct compiled *c);
};

static void run(struct compiled *c, struct slice text, enum definition_format format)
{
    c->mistakes = calloc(1, sizeof *c->mistakes);
    ASSERT(c->mistakes);
    c->warnings = calloc(1, sizeof *c->warnings);
    ASSERT(c->warnings);
    c->err = definition_parse(text, format, &c->definition, c->mistakes, c->warnings);
}

static void compiled_fini(struct compiled *c)
{
    definition_free(c->definition);
    free(c->mistakes);
    free(c->warnings);
}

static void begin_next(struct compilings *cs);

static void on_thread(uv_work_t *work)
{
    struct compiling *c = CONTAINER_OF(work, struct compiling, work);

    run(&c->result, (struct slice){c->text, c->len}, c->format);
}

static void thread_done(uv_work_t *work, int status)
{
    struct compiling *c = CONTAINER_OF(work, struct compiling, work);
    struct server *sv = c->x.server;
    struct http_request *r = c->x.http;
    struct compilings *cs = sv->compilings;

    ASSERT(status == 0); /* nobody cancels it */
    link_remove(&c->link);
    cs->running = false;
    cs->count--;
    cs->bytes -= c->len;
    sv->exchange_count--;
    begin_next(cs);
    if (r) {
        exchange_untie(&c->x);
        c->then(sv, r, &c->result);
    }
    compiled_fini(&c->result);
    free(c->text);
    free(c);
}

static void begin_next(struct compilings *cs)
{
    struct link *first = list_first(&cs->waiting);

    if (cs->running || !first)
        return;
    struct compiling *c = CONTAINER_OF(first, struct compiling, link);
    cs->running = true;
    int rc = uv_queue_work(&cs->server->loop, &c->work, on_thread, thread_done);
    ASSERT(rc == 0); /* it has what to do */
}

static void compile_later(struct server *sv, struct http_request *r, enum definition_format format,
                          void (*then)(struct server *sv, struct http_request *r,
                                       struct compiled *c))
{
    struct compilings *cs = sv->compilings;

    if (cs->count >= COMPILINGS_MAX || cs->bytes + r->body.len > COMPILING_BYTES) {
        http_problem(r, 503, "busy", "too many definitions wait to be read; try again");
        return;
    }
    struct compiling *c = calloc(1, sizeof *c);
    ASSERT(c);
    c->text = malloc(r->body.len);
    ASSERT(c->text);
    c->len = r->body.len;
    memcpy(c->text, r->body.ptr, c->len);
    c->format = format;
    c->then = then;
    ASSERT(sv->caller.len <= sizeof c->caller);
    if (sv->caller.ptr) {
        memcpy(c->caller, sv->caller.ptr, sv->caller.len);
        c->result.caller = (struct slice){c->caller, sv->caller.len};
    }
    exchange_begin(&c->x, sv, r);
    sv->exchange_count++;
    cs->count++;
    cs->bytes += c->len;
    list_push(&cs->waiting, &c->link);
    begin_next(cs);
}

/* False: it is neither JSON nor YAML by what the request says. */
static bool format_of(const struct http_request *r, enum definition_format *ret)
{
    static const char *const yaml[] = {"application/yaml", "text/yaml", "application/x-yaml"};

    *ret = DEFINITION_YAML;
    for (size_t i = 0; i < COUNT_OF(yaml); i++)
        if (content_type_is(r, yaml[i]))
            return true;
    *ret = DEFINITION_JSON;
    return content_type_is(r, "application/json");
}

void definition_compile(struct server *sv, struct http_request *r,
                        void (*then)(struct server *sv, struct http_request *r, struct compiled *c))
{
    enum definition_format format;

    if (!format_of(r, &format)) {
        answer_content_type(r, "application/json or application/yaml");
        return;
    }
    if (!content_encoding_ok(r))
        return;
    if (r->body.len > DEFINITION_MAX) {
        http_problem(r, 413, "too-big", "a definition may have at most %d bytes, this has %zu",
                     DEFINITION_MAX, r->body.len);
        return;
    }
    if (r->body.len > DEFINITION_SMALL) {
        compile_later(sv, r, format, then);
        return;
    }
    struct compiled c = {.caller = sv->caller};
    run(&c, r->body, format);
    then(sv, r, &c);
    compiled_fini(&c);
}

/* ---- life ---- */

struct compilings *compilings_new(struct server *sv)
{
    struct compilings *cs = calloc(1, sizeof *cs);

    ASSERT(cs);
    cs->server = sv;
    list_init(&cs->waiting);
    return cs;
}

void compilings_free(struct compilings *cs)
{
    ASSERT(!cs || list_empty(&cs->waiting));
    free(cs);
}
