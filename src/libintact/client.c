#include <intact/client.h>

#include <stdlib.h>
#include <time.h>

#include "libintact/wire.h"
#include "json/json.h"

enum {
    CALL_MS = 60000,       /* a server that says nothing for so long, beyond what it may wait */
    WAIT_PIECE_MS = 30000, /* of a long wait, in one call */
    AGAIN_MS = 250,        /* between two tries to reach a server while waiting */
};

struct intact_client {
    CURL *easy;
    char *server, *token, *ca;
    char *(*find_token)(void *arg, const struct intact_client *c); /* NULL: not any more */
    void *arg;
    struct buf body, error, path;
    long status;
    intact_take *take; /* of the call at work: gets the body of a good answer; NULL: `body` does */
    void *take_arg;
    bool refused; /* by `take` */
    char why[CURL_ERROR_SIZE];
};

static char *copy_of(const char *text, bool *ok)
{
    char *copy = text ? strdup(text) : NULL;

    *ok &= copy || !text;
    return copy;
}

struct intact_client *intact_client_new(const char *server, const char *token)
{
    return intact_client_open(&(struct intact_client_options){.server = server, .token = token});
}

struct intact_client *intact_client_open(const struct intact_client_options *o)
{
    bool ok = true;
    struct intact_client *c = wire_init() ? calloc(1, sizeof(*c)) : NULL;

    if (!c)
        return NULL;
    c->easy = curl_easy_init();
    c->server = copy_of(wire_server(o->server), &ok);
    c->token = copy_of(wire_token(o->token), &ok);
    c->ca = copy_of(wire_ca(o->ca), &ok);
    c->find_token = c->token ? NULL : o->find_token;
    c->arg = o->arg;
    if (!c->easy || !ok) {
        intact_client_free(c);
        return NULL;
    }
    size_t len = strcspn(c->server, ","); /* of several servers any one will do */
    while (len > 0 && c->server[len - 1] == '/')
        len--;
    c->server[len] = 0;
    return c;
}

void intact_client_free(struct intact_client *c)
{
    if (!c)
        return;
    curl_easy_cleanup(c->easy);
    free(c->server);
    free(c->token);
    free(c->ca);
    buf_fini(&c->body);
    buf_fini(&c->error);
    buf_fini(&c->path);
    free(c);
}

const char *intact_client_server(const struct intact_client *c)
{
    return c->server;
}

const char *intact_client_body(const struct intact_client *c)
{
    return buf_view(&c->body).ptr;
}

size_t intact_client_body_size(const struct intact_client *c)
{
    return c->body.len;
}

int intact_client_http_status(const struct intact_client *c)
{
    return (int)c->status;
}

const char *intact_client_error(const struct intact_client *c)
{
    return buf_view(&c->error).ptr;
}

const char *intact_client_header(const struct intact_client *c, const char *name)
{
    struct curl_header *h = NULL;

    if (c->status == 0 || curl_easy_header(c->easy, name, 0, CURLH_HEADER, -1, &h) != CURLHE_OK)
        return NULL;
    return h->value;
}

/* One line for each mistake of a definition or an input. */
static void explain_mistakes(struct buf *e, const struct json *errors)
{
    for (const struct json *j = errors ? errors->child : NULL; j; j = j->next) {
        struct slice path = json_get_text(j, "path");
        struct slice found = json_get_text(j, "found");
        int64_t line = json_get_int(j, "line", 0);

        buf_str(e, "\n  ");
        if (line > 0)
            buf_fmt(e, "%" PRId64 ":%" PRId64 ": ", line, json_get_int(j, "column", 0));
        if (path.len)
            buf_fmt(e, "%.*s: ", SLICE_ARG(path));
        if (found.len)
            buf_fmt(e, "found %.*s, ", SLICE_ARG(found));
        buf_fmt(e, "expected %.*s", SLICE_ARG(json_get_text(j, "expected")));
    }
}

static const char *advice(long status)
{
    switch (status) {
    case 401:
        return "\nGive one with INTACT_TOKEN or --token-file; `intact token create` makes one.";
    case 429:
    case 503:
        return "\nThe server has too much to do or is about to stop; try again in a moment.";
    default:
        return "";
    }
}

static void explain_refusal(struct intact_client *c)
{
    CLEANUP(arena_fini) struct arena a = {0};
    struct buf *e = &c->error;
    struct json *problem = NULL;
    enum err err = json_parse(&a, buf_view(&c->body), &problem, NULL);
    struct slice title = err == ERR_OK ? json_get_text(problem, "title") : SLICE_NONE;
    struct slice detail = err == ERR_OK ? json_get_text(problem, "detail") : SLICE_NONE;

    if (c->status == 401)
        title = SLICE("the server wants a token");
    else if (detail.len)
        title = SLICE_NONE; /* it is the status in words, and says less */
    if (!title.len && !detail.len)
        buf_fmt(e, "%s answered with status %ld", c->server, c->status);
    else
        buf_fmt(e, "%.*s%s%.*s", SLICE_ARG(title), title.len && detail.len ? ": " : "",
                SLICE_ARG(detail));
    if (err == ERR_OK)
        explain_mistakes(e, json_get(problem, "errors"));
    buf_str(e, advice(c->status));
}

static enum intact_status conclude(struct intact_client *c, CURLcode code)
{
    if (code != CURLE_OK) {
        c->status = 0;
        buf_clear(&c->body);
        buf_fmt(&c->error,
                "cannot reach %s: %s\nIs the server running? `intact serve` starts one; --server "
                "or INTACT_SERVER names another.",
                c->server, c->why[0] ? c->why : curl_easy_strerror(code));
        return INTACT_UNREACHABLE;
    }
    if (c->status >= 200 && c->status < 300)
        return INTACT_OK;
    explain_refusal(c);
    return c->status == 429 || c->status >= 500 ? INTACT_BUSY : INTACT_REFUSED;
}

/* What a good answer brings goes to the caller as it comes; a problem is kept to be told. */
static size_t hand_on(char *ptr, size_t size, size_t count, void *arg)
{
    struct intact_client *c = arg;
    long status = 0;
    curl_off_t whole = -1;

    (void)curl_easy_getinfo(c->easy, CURLINFO_RESPONSE_CODE, &status); /* or it stays 0 */
    if (status < 200 || status >= 300) {
        buf_add(&c->body, ptr, size * count);
        return c->body.overflow ? 0 : size * count;
    }
    (void)curl_easy_getinfo(c->easy, CURLINFO_CONTENT_LENGTH_DOWNLOAD_T, &whole); /* the same */
    c->refused = !c->take(c->take_arg, ptr, size * count, whole);
    return c->refused ? 0 : size * count;
}

/* It may last; what must not last is that nothing at all comes. A server that has first to make
 * what it sends says nothing meanwhile, and it is the kernel who knows whether it is still there.
 */
static bool set_long_call(struct intact_client *c)
{
    bool ok = curl_easy_setopt(c->easy, CURLOPT_TIMEOUT_MS, 0L) == CURLE_OK;

    ok &= curl_easy_setopt(c->easy, CURLOPT_CONNECTTIMEOUT_MS, (long)CALL_MS) == CURLE_OK;
    ok &= curl_easy_setopt(c->easy, CURLOPT_TCP_KEEPALIVE, 1L) == CURLE_OK;
    ok &= curl_easy_setopt(c->easy, CURLOPT_TCP_KEEPIDLE, 15L) == CURLE_OK;
    ok &= curl_easy_setopt(c->easy, CURLOPT_TCP_KEEPINTVL, 15L) == CURLE_OK;
    ok &= curl_easy_setopt(c->easy, CURLOPT_WRITEFUNCTION, hand_on) == CURLE_OK;
    ok &= curl_easy_setopt(c->easy, CURLOPT_WRITEDATA, (void *)c) == CURLE_OK;
    return ok;
}

static bool set_call(struct intact_client *c, const char *method, const char *url, const char *body,
                     size_t size, int64_t wait_ms)
{
    bool ok = wire_prepare(c->easy, &c->body, c->why);

    ok &= wire_address(c->easy, url, c->ca);
    ok &= curl_easy_setopt(c->easy, CURLOPT_CUSTOMREQUEST, method) == CURLE_OK;
    ok &= curl_easy_setopt(c->easy, CURLOPT_TIMEOUT_MS, (long)(CALL_MS + wait_ms)) == CURLE_OK;
    if (body) {
        ok &= curl_easy_setopt(c->easy, CURLOPT_POST, 1L) == CURLE_OK;
        ok &= curl_easy_setopt(c->easy, CURLOPT_POSTFIELDS, body) == CURLE_OK;
        ok &= curl_easy_setopt(c->easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)size) == CURLE_OK;
    }
    if (c->take)
        ok &= set_long_call(c);
    return ok;
}

static CURLcode call_once(struct intact_client *c, const char *method, const char *path,
                          const char *type, const char *body, size_t size, int64_t wait_ms)
{
    CLEANUP(buf_fini) struct buf url = {0};
    struct curl_slist *headers = wire_headers(c->token, type);
    struct wire_sigpipe sigpipe;
    CURLcode code = CURLE_OUT_OF_MEMORY;

    buf_clear(&c->body);
    buf_clear(&c->error);
    c->body.overflow = false;
    c->why[0] = 0;
    c->status = 0;
    buf_fmt(&url, "%s%s", c->server, path);
    curl_easy_reset(c->easy); /* options only; the connection stays */
    if (set_call(c, method, url.ptr, body, size, wait_ms)
        && curl_easy_setopt(c->easy, CURLOPT_HTTPHEADER, headers) == CURLE_OK) {
        wire_sigpipe_block(&sigpipe);
        code = curl_easy_perform(c->easy);
        wire_sigpipe_restore(&sigpipe);
        (void)curl_easy_getinfo(c->easy, CURLINFO_RESPONSE_CODE, &c->status); /* or it stays 0 */
    }
    curl_slist_free_all(headers);
    return code;
}

/* Whoever has this connection need not be who listens now, and it is the latter for whom a token
 * was found. */
static bool connect_anew(struct intact_client *c)
{
    CURL *easy = curl_easy_init();

    if (!easy)
        return false;
    curl_easy_cleanup(c->easy);
    c->easy = easy;
    return true;
}

static enum intact_status call(struct intact_client *c, const char *method, const char *path,
                               const char *type, const char *body, size_t size, int64_t wait_ms)
{
    CURLcode code = call_once(c, method, path, type, body, size, wait_ms);

    if (code == CURLE_OK && c->status == 401 && c->find_token) {
        c->token = c->find_token(c->arg, c);
        c->find_token = NULL;
        if (c->token && !connect_anew(c)) {
            free(c->token);
            c->token = NULL;
            return conclude(c, CURLE_OUT_OF_MEMORY);
        }
        if (c->token)
            code = call_once(c, method, path, type, body, size, wait_ms);
    }
    return conclude(c, code);
}

enum intact_status intact_client_call(struct intact_client *c, const char *method, const char *path,
                                      const char *content_type, const char *body, size_t size)
{
    return call(c, method, path, content_type, body, size, 0);
}

enum intact_status intact_client_fetch(struct intact_client *c, const char *method,
                                       const char *path, intact_take *take, void *arg)
{
    c->take = take;
    c->take_arg = arg;
    c->refused = false;
    enum intact_status status = call(c, method, path, NULL, "", 0, 0);
    c->take = NULL;
    if (c->refused) {
        buf_clear(&c->error);
        buf_str(&c->error, "given up: what came was not taken");
    }
    return status;
}

static void add_escaped(struct intact_client *c, struct buf *b, const char *text)
{
    char *escaped = text[0] ? curl_easy_escape(c->easy, text, 0) : NULL;

    buf_str(b, escaped ? escaped : "");
    curl_free(escaped);
}

static bool is_json_text(const char *text)
{
    return text[strspn(text, " \t\r\n")] == '{';
}

enum intact_status intact_client_put_workflow(struct intact_client *c, const char *name,
                                              const char *definition)
{
    const char *type = is_json_text(definition) ? "application/json" : "application/yaml";

    buf_clear(&c->path);
    buf_str(&c->path, "/v1/workflows/");
    add_escaped(c, &c->path, name);
    return call(c, "PUT", c->path.ptr, type, definition, strlen(definition), 0);
}

static void add_wait(struct buf *path, int64_t wait_ms)
{
    if (wait_ms > 0)
        buf_fmt(path, "?wait=%" PRId64 "ms", wait_ms);
}

enum intact_status intact_client_submit(struct intact_client *c, const char *task_json,
                                        int64_t wait_ms)
{
    buf_clear(&c->path);
    buf_str(&c->path, "/v1/tasks");
    add_wait(&c->path, wait_ms);
    return call(c, "POST", c->path.ptr, "application/json", task_json, strlen(task_json), wait_ms);
}

enum intact_status intact_client_submit_many(struct intact_client *c, const char *ndjson,
                                             size_t size)
{
    return call(c, "POST", "/v1/tasks", "application/x-ndjson", ndjson, size, 0);
}

enum intact_status intact_client_get(struct intact_client *c, const char *id, int64_t wait_ms)
{
    buf_clear(&c->path);
    buf_str(&c->path, "/v1/tasks/");
    add_escaped(c, &c->path, id);
    add_wait(&c->path, wait_ms);
    return call(c, "GET", c->path.ptr, NULL, NULL, 0, wait_ms);
}

/* INTACT_OK: it has ended, whichever way. INTACT_TIMEOUT: not yet. */
static enum intact_status ended(struct intact_client *c)
{
    CLEANUP(arena_fini) struct arena a = {0};
    struct json *task = NULL;

    if (json_parse(&a, buf_view(&c->body), &task, NULL) != ERR_OK)
        task = NULL;
    struct slice state = json_get_text(task, "state");
    if (slice_is(state, "processed") || slice_is(state, "compensated") || slice_is(state, "error"))
        return INTACT_OK;
    return INTACT_TIMEOUT;
}

static void pause_ms(int64_t ms)
{
    const struct timespec t = {ms / 1000, (long)(ms % 1000) * 1000000};

    (void)nanosleep(&t, NULL); /* woken early is fine */
}

enum intact_status intact_client_wait(struct intact_client *c, const char *id, int64_t timeout_ms)
{
    const int64_t end = wire_now_ms() + max_i64(timeout_ms, 0);

    for (;;) {
        int64_t called = wire_now_ms();
        int64_t left = max_i64(end - called, 0);
        enum intact_status status = intact_client_get(c, id, min_i64(left, WAIT_PIECE_MS));

        if (status == INTACT_REFUSED)
            return status;
        if (status == INTACT_OK)
            status = ended(c);
        int64_t now = wire_now_ms();
        if (status == INTACT_OK || now >= end) {
            if (status == INTACT_TIMEOUT)
                buf_str(&c->error, "the task has not ended yet");
            return status;
        }
        /* It did not wait: it could not be reached, or answers its waiting calls to restart. */
        if (now - called < AGAIN_MS)
            pause_ms(min_i64(AGAIN_MS, end - now));
    }
}

enum intact_status intact_client_list(struct intact_client *c, const char *query)
{
    buf_clear(&c->path);
    buf_fmt(&c->path, "/v1/tasks%s%s", query && query[0] ? "?" : "", query ? query : "");
    return call(c, "GET", c->path.ptr, NULL, NULL, 0, 0);
}
