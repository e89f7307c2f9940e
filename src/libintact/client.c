/* A client's blocking calls: see <intact/client.h>. Calls that do not block are in client_start.c,
 * the choice of servers is in client_servers.c. */
#include "libintact/client.h"

#include <stdlib.h>
#include <time.h>

#include "base/clock.h"
#include "libintact/door.h"
#include "net/proof.h"
#include "json/json.h"

enum {
    CALL_MS = 60000,       /* a server's longest silence, beyond its requested wait */
    OTHER_MS = 10000,      /* the same, if another server can be asked */
    WAIT_PIECE_MS = 30000, /* the part of a long wait in one call */
    SHORT_PIECE_MS = 5000, /* the same, if another server can be asked */
    AGAIN_MS = 250,        /* between attempts to reach a server while waiting */
    CONNECTIONS = 16,
    KEY_MAX = 128, /* of an Idempotency-Key */
};

static char *copy_of(const char *text, bool *ok)
{
    char *copy = text ? strdup(text) : NULL;

    *ok &= copy || !text;
    return copy;
}

struct intact_client *intact_client_new(const char *server, const char *token)
{
    bool ok = true;
    struct intact_client *c = wire_init() ? calloc(1, sizeof(*c)) : NULL;

    if (!c)
        return NULL;
    c->reactor.fd = -1;
    c->wake_fd = -1;
    c->connections = CONNECTIONS;
    list_init(&c->waiting);
    list_init(&c->started);
    c->shown = &c->last;
    c->last.easy = curl_easy_init();
    ok = client_open_servers(c, wire_server(server));
    c->token = copy_of(wire_token(token), &ok);
    c->ca = copy_of(wire_ca(NULL), &ok);
    installation_state(&c->installation, NULL);
    if (!c->last.easy || !ok) {
        intact_client_free(c);
        return NULL;
    }
    return c;
}

void intact_client_set_ca(struct intact_client *c, const char *path)
{
    char *copy = path && path[0] ? strdup(path) : NULL;

    if (!copy)
        return;
    free(c->ca);
    c->ca = copy;
}

void intact_client_set_installation(struct intact_client *c, const char *id)
{
    installation_state(&c->installation, id);
}

const char *intact_client_installation(const struct intact_client *c)
{
    return c->installation.id;
}

void intact_client_set_find_token(struct intact_client *c, intact_token_finder *find, void *arg)
{
    c->find_token = c->token ? NULL : find;
    c->finder = NULL;
    c->arg = arg;
}

void intact_client_free(struct intact_client *c)
{
    struct wire_held sigpipe;

    if (!c)
        return;
    wire_hold(&sigpipe, SIGPIPE);
    client_start_fini(c);
    reply_fini(&c->last);
    wire_release(&sigpipe);
    client_close_servers(c);
    installation_fini(&c->installation);
    buf_fini(&c->introduction.conflict);
    free(c->token);
    free(c->ca);
    free(c->challenge);
    buf_fini(&c->path);
    free(c);
}

const char *intact_client_server(const struct intact_client *c)
{
    return c->server;
}

const char *intact_client_body(const struct intact_client *c)
{
    return intact_reply_body(c->shown);
}

size_t intact_client_body_size(const struct intact_client *c)
{
    return intact_reply_body_size(c->shown);
}

int intact_client_http_status(const struct intact_client *c)
{
    return intact_reply_http_status(c->shown);
}

const char *intact_client_error(const struct intact_client *c)
{
    return intact_reply_error(c->shown);
}

const char *intact_client_header(const struct intact_client *c, const char *name)
{
    return intact_reply_header(c->shown, name);
}

static bool set_call(CURL *easy, const struct intact_client *c, const struct question *q,
                     struct curl_slist *headers)
{
    CLEANUP(buf_fini) struct buf url = {0};
    bool ok = true;

    buf_fmt(&url, "%s%s", c->server, q->path);
    ok &= wire_address(easy, url.ptr, c->ca);
    if (c->door > 0)
        ok &= door_use(easy, c->door);
    ok &= curl_easy_setopt(easy, CURLOPT_HTTPHEADER, headers) == CURLE_OK;
    ok &= curl_easy_setopt(easy, CURLOPT_CUSTOMREQUEST, q->method) == CURLE_OK;
    /* libcurl repeats a request on its own if a kept connection breaks. */
    bool fresh = !client_may_repeat(q->method, q->path);
    ok &= curl_easy_setopt(easy, CURLOPT_FRESH_CONNECT, (long)fresh) == CURLE_OK;
    ok &= curl_easy_setopt(easy, CURLOPT_TIMEOUT_MS,
                           (long)((q->again ? OTHER_MS : CALL_MS) + q->wait_ms))
          == CURLE_OK;
    if (q->body) {
        ok &= curl_easy_setopt(easy, CURLOPT_POST, 1L) == CURLE_OK;
        ok &= curl_easy_setopt(easy, CURLOPT_POSTFIELDS, q->body) == CURLE_OK;
        ok &= curl_easy_setopt(easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)q->size) == CURLE_OK;
    }
    return ok;
}

struct curl_slist *client_prepare(const struct intact_client *c, struct intact_reply *r,
                                  const struct question *q)
{
    struct curl_slist *headers = wire_headers(c->token, q->type);

    if (c->installation.id[0])
        headers = wire_add_header(headers, c->installation.line);
    if (c->challenge && !c->token)
        headers = wire_add_header(headers, c->challenge);
    if (q->key) {
        CLEANUP(buf_fini) struct buf line = {0};
        buf_fmt(&line, "Idempotency-Key: %s", q->key);
        headers = wire_add_header(headers, line.ptr);
    }

    reply_clear(r);
    curl_easy_reset(r->easy); /* options only; the connection stays */
    if (headers && wire_prepare(r->easy, &r->body, r->why) && set_call(r->easy, c, q, headers))
        return headers;
    curl_slist_free_all(headers);
    return NULL;
}

void client_set_challenge(struct intact_client *c, const char *challenge)
{
    free(c->challenge);
    if (asprintf(&c->challenge, PROOF_CHALLENGE_HEADER ": %s", challenge) < 0)
        c->challenge = NULL; /* without it no token is found */
}

void client_set_door(struct intact_client *c, int door)
{
    ASSERT(door > 0);
    c->door = door;
    installation_state(&c->installation, "any"); /* ignores the environment */
}

bool client_finds_token(struct intact_client *c, const struct intact_reply *r)
{
    if (!c->token && c->find_token) {
        c->shown = r;
        c->token = c->find_token(c->arg, c);
        c->shown = &c->last;
        c->finder = c->find_token;
        c->find_token = NULL;
        c->fresh = c->stale = c->token != NULL;
    }
    return c->token != NULL;
}

void client_forget_found(struct intact_client *c)
{
    if (!c->finder)
        return;
    free(c->token);
    c->token = NULL;
    c->find_token = c->finder;
    c->finder = NULL;
}

/* See `fresh`. */
static bool connect_anew(struct intact_client *c)
{
    CURL *easy = curl_easy_init();

    if (!easy)
        return false;
    curl_easy_cleanup(c->last.easy);
    c->last.easy = easy;
    c->stale = false;
    return true;
}

/* Passes a successful body on as it arrives; other bodies are kept for the error message. */
static size_t hand_on(char *ptr, size_t size, size_t count, void *arg)
{
    struct intact_client *c = arg;
    struct intact_reply *r = &c->last;
    long status = 0;
    curl_off_t whole = -1;

    (void)curl_easy_getinfo(r->easy, CURLINFO_RESPONSE_CODE, &status); /* stays 0 on failure */
    if (status < 200 || status >= 300) {
        buf_add(&r->body, ptr, size * count);
        return r->body.overflow ? 0 : size * count;
    }
    (void)curl_easy_getinfo(r->easy, CURLINFO_CONTENT_LENGTH_DOWNLOAD_T, &whole); /* the same */
    c->refused = !c->take(c->take_arg, ptr, size * count, whole);
    return c->refused ? 0 : size * count;
}

/* The call may last, but not without a connection. A server that is still preparing its answer
 * sends nothing, so TCP keep-alive checks that it is there. */
static bool set_long_call(struct intact_client *c)
{
    CURL *easy = c->last.easy;
    bool ok = curl_easy_setopt(easy, CURLOPT_TIMEOUT_MS, 0L) == CURLE_OK;

    ok &= curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS, (long)CALL_MS) == CURLE_OK;
    ok &= curl_easy_setopt(easy, CURLOPT_TCP_KEEPALIVE, 1L) == CURLE_OK;
    ok &= curl_easy_setopt(easy, CURLOPT_TCP_KEEPIDLE, 15L) == CURLE_OK;
    ok &= curl_easy_setopt(easy, CURLOPT_TCP_KEEPINTVL, 15L) == CURLE_OK;
    ok &= curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, hand_on) == CURLE_OK;
    ok &= curl_easy_setopt(easy, CURLOPT_WRITEDATA, (void *)c) == CURLE_OK;
    return ok;
}

static CURLcode call_once(struct intact_client *c, const struct question *q)
{
    struct wire_held sigpipe;

    if (c->stale && !connect_anew(c))
        return CURLE_OUT_OF_MEMORY;
    struct curl_slist *headers = client_prepare(c, &c->last, q);
    if (!headers)
        return CURLE_OUT_OF_MEMORY;
    bool ready = !c->take || set_long_call(c);
    wire_hold(&sigpipe, SIGPIPE);
    CURLcode code = ready ? curl_easy_perform(c->last.easy) : CURLE_OUT_OF_MEMORY;
    wire_release(&sigpipe);
    /* stays 0 on failure */
    (void)curl_easy_getinfo(c->last.easy, CURLINFO_RESPONSE_CODE, &c->last.status);
    curl_slist_free_all(headers);
    return code;
}

static CURLcode call_with_token(struct intact_client *c, const struct question *q)
{
    bool had_token = c->token != NULL;
    CURLcode code = call_once(c, q);

    if (code == CURLE_OK && c->last.status == 401 && !had_token && client_finds_token(c, &c->last))
        code = call_once(c, q);
    return code;
}

/* Asks each server once. One of another installation has not executed the call. */
static enum intact_status ask_servers(struct intact_client *c, struct question *q, bool may_repeat)
{
    CLEANUP(buf_fini) struct buf foreign = {0};
    CURLcode code = CURLE_OK;
    bool is_foreign = false;

    for (size_t left = c->server_count; left > 0; left--) {
        q->again = may_repeat && left > 1;
        code = call_with_token(c, q);
        is_foreign = client_is_foreign(c, c->server, &c->last, code, &foreign);
        if (left == 1 || !client_moves_on(c, c->server_index, &c->last, code, may_repeat))
            break;
    }
    if (!is_foreign && c->installation.is_confirmed && c->confirmed) {
        c->confirmed(c, c->server, c->installation.id);
        c->confirmed = NULL;
    }
    enum intact_status status = reply_conclude(&c->last, c->server, code);
    if (is_foreign || (foreign.len > 0 && status != INTACT_OK))
        return client_refuse(&c->last, buf_view(&foreign));
    if (status == INTACT_UNREACHABLE && c->server_count > 1)
        buf_fmt(&c->last.error, "\nIt is the last of %zu servers; none could be reached.",
                c->server_count);
    return status;
}

static enum intact_status call(struct intact_client *c, const char *method, const char *path,
                               const char *type, const char *body, size_t size, int64_t wait_ms)
{
    CLEANUP(buf_fini) struct buf named = {0};
    struct question q = {.method = method,
                         .path = path,
                         .type = type,
                         .body = body,
                         .key = c->key,
                         .size = size,
                         .wait_ms = max_i64(wait_ms, 0)};

    if (c->installation.mistake[0])
        return client_refuse(&c->last, slice_of(c->installation.mistake));
    if (introduction_is_needed(c))
        introduction_run(c);
    if (c->introduction.conflict.len > 0)
        return client_refuse(&c->last, buf_view(&c->introduction.conflict));
    if (client_give_ids(c, &q, &named)) {
        q.body = named.ptr;
        q.size = named.len;
    }
    bool may_repeat = client_may_repeat(method, path) || c->key || c->may_repeat;
    return ask_servers(c, &q, may_repeat && !c->take);
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
        buf_clear(&c->last.error);
        buf_str(&c->last.error, "stopped: the caller did not accept the data");
    }
    return status;
}

void client_add_escaped(struct buf *b, const char *text)
{
    char *escaped = text[0] ? curl_easy_escape(NULL, text, 0) : NULL;

    buf_str(b, escaped ? escaped : "");
    curl_free(escaped);
}

void client_add_wait(struct buf *path, int64_t wait_ms)
{
    if (wait_ms > 0)
        buf_fmt(path, "?wait=%" PRId64 "ms", wait_ms);
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
    client_add_escaped(&c->path, name);
    return call(c, "PUT", c->path.ptr, type, definition, strlen(definition), 0);
}

enum intact_status intact_client_submit(struct intact_client *c, const char *task_json,
                                        int64_t wait_ms)
{
    buf_clear(&c->path);
    buf_str(&c->path, "/v1/tasks");
    client_add_wait(&c->path, wait_ms);
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
    client_add_escaped(&c->path, id);
    client_add_wait(&c->path, wait_ms);
    return call(c, "GET", c->path.ptr, NULL, NULL, 0, wait_ms);
}

/* As the server has it. An empty header would not be sent at all, and the call not be repeatable.
 */
static bool is_key(const char *key)
{
    size_t len = strlen(key);

    for (size_t i = 0; i < len; i++)
        if (key[i] <= ' ' || key[i] >= 0x7f)
            return false;
    return len > 0 && len <= KEY_MAX;
}

enum intact_status intact_client_signal(struct intact_client *c, const char *id, const char *name,
                                        const char *data_json, const char *key)
{
    const char *data = data_json ? data_json : "null";

    if (key && !is_key(key))
        return client_refuse(&c->last,
                             SLICE("the key of the signal is not valid: expected 1 to 128 "
                                   "printable ASCII characters without spaces"));
    buf_clear(&c->path);
    buf_str(&c->path, "/v1/tasks/");
    client_add_escaped(&c->path, id);
    buf_str(&c->path, "/signals/");
    client_add_escaped(&c->path, name);
    c->key = key;
    enum intact_status status =
        call(c, "POST", c->path.ptr, "application/json", data, strlen(data), 0);
    c->key = NULL;
    return status;
}

/* Repeated, it is the same vote; but without its number the question may be another one by then. */
static enum intact_status vote(struct intact_client *c, const char *id, const char *step,
                               const char *what, uint32_t asking, const char *comment)
{
    CLEANUP(buf_fini) struct buf body = {0};

    json_open(&body, '{');
    if (asking != 0)
        json_member_number(&body, "asking", asking);
    if (comment)
        json_member_text(&body, "comment", slice_of(comment));
    json_close(&body, '}');
    buf_clear(&c->path);
    buf_str(&c->path, "/v1/approvals/");
    client_add_escaped(&c->path, id);
    buf_byte(&c->path, '/');
    client_add_escaped(&c->path, step);
    buf_fmt(&c->path, "/%s", what);
    c->may_repeat = asking != 0;
    enum intact_status status =
        call(c, "POST", c->path.ptr, "application/json", body.ptr, body.len, 0);
    c->may_repeat = false;
    return status;
}

enum intact_status intact_client_approve(struct intact_client *c, const char *id, const char *step,
                                         uint32_t asking, const char *comment)
{
    return vote(c, id, step, "approve", asking, comment);
}

enum intact_status intact_client_reject(struct intact_client *c, const char *id, const char *step,
                                        uint32_t asking, const char *comment)
{
    return vote(c, id, step, "reject", asking, comment);
}

enum intact_status intact_client_approvals(struct intact_client *c, const char *query)
{
    buf_clear(&c->path);
    buf_str(&c->path, "/v1/approvals");
    if (query && *query)
        buf_fmt(&c->path, "?%s", query);
    return call(c, "GET", c->path.ptr, NULL, NULL, 0, 0);
}

/* INTACT_OK: it has ended, in any state. INTACT_TIMEOUT: not yet. */
static enum intact_status ended(struct intact_client *c)
{
    CLEANUP(arena_fini) struct arena a = {0};
    struct json *task = NULL;

    if (json_parse(&a, buf_view(&c->last.body), &task, NULL) != ERR_OK)
        task = NULL;
    struct slice state = json_get_text(task, "state");
    if (slice_is(state, "processed") || slice_is(state, "compensated") || slice_is(state, "error"))
        return INTACT_OK;
    return INTACT_TIMEOUT;
}

static void pause_ms(int64_t ms)
{
    const struct timespec t = {ms / 1000, (long)(ms % 1000) * 1000000};

    (void)nanosleep(&t, NULL); /* an early wake-up is fine */
}

enum intact_status intact_client_wait(struct intact_client *c, const char *id, int64_t timeout_ms)
{
    const int64_t end = clock_boot_ms() + max_i64(timeout_ms, 0);
    const int64_t piece = c->server_count > 1 ? SHORT_PIECE_MS : WAIT_PIECE_MS;

    for (;;) {
        int64_t called = clock_boot_ms();
        int64_t left = max_i64(end - called, 0);
        enum intact_status status = intact_client_get(c, id, min_i64(left, piece));

        if (status == INTACT_REFUSED)
            return status;
        if (status == INTACT_OK)
            status = ended(c);
        int64_t now = clock_boot_ms();
        if (status == INTACT_OK || now >= end) {
            if (status == INTACT_TIMEOUT)
                buf_str(&c->last.error, "the task has not ended yet");
            return status;
        }
        /* It did not wait: it is unreachable, or answers waiting calls because it restarts. */
        if (now - called < AGAIN_MS)
            pause_ms(min_i64(AGAIN_MS, end - now));
    }
}

static enum intact_status end_attempt(struct intact_client *c, const char *token,
                                      const char *member, const char *json)
{
    CLEANUP(buf_fini) struct buf body = {0};

    buf_clear(&c->path);
    buf_str(&c->path, "/v1/attempts/");
    client_add_escaped(&c->path, token);
    buf_fmt(&body, "{\"%s\":%s}", member, json);
    return call(c, "POST", c->path.ptr, "application/json", body.ptr, body.len, 0);
}

enum intact_status intact_attempt_complete(struct intact_client *c, const char *token,
                                           const char *output_json)
{
    return end_attempt(c, token, "output", output_json ? output_json : "null");
}

enum intact_status intact_attempt_fail(struct intact_client *c, const char *token,
                                       const char *error_json)
{
    return end_attempt(c, token, "error", error_json ? error_json : "{}");
}

enum intact_status intact_client_list(struct intact_client *c, const char *query)
{
    buf_clear(&c->path);
    buf_fmt(&c->path, "/v1/tasks%s%s", query && query[0] ? "?" : "", query ? query : "");
    return call(c, "GET", c->path.ptr, NULL, NULL, 0, 0);
}
