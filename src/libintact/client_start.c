/* A client's calls that do not block: each has its own handle in the client's reactor. See
 * <intact/client.h>. */
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "libintact/client.h"

enum { CONNECTIONS_MAX = 1000 };

struct intact_call {
    struct link link; /* in the client's `waiting` or `started` */
    struct intact_reply reply;
    struct buf method, path, type, body, key;
    bool has_type, has_body;
    int64_t wait_ms;
    bool is_started;
    bool had_token, may_repeat;
    bool is_foreign;    /* the latest answer is from another installation */
    struct buf foreign; /* the error message if a server of another installation was asked */
    size_t server_index, tries;
    struct curl_slist *headers;
    intact_client_done *done;
    void *arg;
};

/* libcurl's default is four times the present number of transfers. */
static void keep_connections(struct intact_client *c)
{
    if (c->reactor.multi)
        (void)curl_multi_setopt(c->reactor.multi, CURLMOPT_MAXCONNECTS, (long)c->connections);
}

static bool is_open(struct intact_client *c)
{
    if (c->reactor.fd >= 0)
        return true;
    if (!reactor_open(&c->reactor))
        return false;
    c->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    c->reactor.wake_fd = c->wake_fd;
    for (size_t i = 0; i < c->server_count; i++)
        c->reactor.is_tls |= strncasecmp(c->all[i], "https:", 6) == 0;
    keep_connections(c);
    if (c->wake_fd >= 0 && reactor_watch(&c->reactor, c->wake_fd))
        return true;
    client_start_fini(c);
    return false;
}

static void wake(const struct intact_client *c)
{
    const uint64_t one = 1;

    (void)!write(c->wake_fd, &one, sizeof(one)); /* can only fail if it is readable already */
}

/* Removes it from libcurl. */
static void take_back(struct intact_client *c, struct intact_call *x)
{
    if (x->is_started) {
        (void)curl_multi_remove_handle(c->reactor.multi, x->reply.easy); /* it is registered */
        c->started_count--;
        x->is_started = false;
    }
    curl_slist_free_all(x->headers);
    x->headers = NULL;
    link_remove(&x->link);
}

static void free_call(struct intact_call *x)
{
    reply_fini(&x->reply);
    buf_fini(&x->method);
    buf_fini(&x->path);
    buf_fini(&x->type);
    buf_fini(&x->body);
    buf_fini(&x->key);
    buf_fini(&x->foreign);
    free(x);
}

static void give_up(struct intact_client *c, struct intact_call *x)
{
    take_back(c, x);
    c->call_count--;
    free_call(x);
}

void client_start_fini(struct intact_client *c)
{
    LIST_FOREACH (l, after, &c->waiting) {
        give_up(c, CONTAINER_OF(l, struct intact_call, link));
    }
    LIST_FOREACH (l, after, &c->started) {
        give_up(c, CONTAINER_OF(l, struct intact_call, link));
    }
    if (c->reactor.fd >= 0) {
        introduction_fini(c, c->reactor.multi);
        reactor_close(&c->reactor);
    }
    if (c->wake_fd >= 0)
        close(c->wake_fd);
    c->wake_fd = -1;
}

/* NOLINTNEXTLINE(readability-function-size): its parameters are those of the public header */
struct intact_call *intact_client_start(struct intact_client *c, const char *method,
                                        const char *path, const char *content_type,
                                        const char *body, size_t size, int64_t wait_ms,
                                        intact_client_done *done, void *arg)
{
    CURL *easy = method && path && done && is_open(c) ? curl_easy_init() : NULL;
    struct intact_call *x = easy ? calloc(1, sizeof(*x)) : NULL;

    if (!x) {
        curl_easy_cleanup(easy);
        return NULL;
    }
    x->reply.easy = easy;
    x->done = done;
    x->arg = arg;
    x->wait_ms = max_i64(wait_ms, 0);
    buf_str(&x->method, method);
    buf_str(&x->path, path);
    buf_str(&x->type, content_type ? content_type : "");
    x->has_type = content_type != NULL;
    const struct question q = {
        .method = method, .path = path, .type = content_type, .body = body, .size = size};
    if (!client_give_ids(c, &q, &x->body))
        buf_add(&x->body, body ? body : "", body ? size : 0);
    x->has_body = body != NULL;
    x->may_repeat = client_may_repeat(method, path);
    list_push(&c->waiting, &x->link);
    c->call_count++;
    wake(c);
    return x;
}

void client_call_set_key(struct intact_call *call, const char *key)
{
    ASSERT(!call->is_started);
    buf_str(&call->key, key);
    call->may_repeat = true;
}

struct intact_call *intact_client_start_submit(struct intact_client *c, const char *task_json,
                                               int64_t wait_ms, intact_client_done *done, void *arg)
{
    CLEANUP(buf_fini) struct buf path = {0};

    if (!task_json)
        return NULL;
    buf_str(&path, "/v1/tasks");
    client_add_wait(&path, wait_ms);
    return intact_client_start(c, "POST", path.ptr, "application/json", task_json,
                               strlen(task_json), wait_ms, done, arg);
}

struct intact_call *intact_client_start_get(struct intact_client *c, const char *id,
                                            int64_t wait_ms, intact_client_done *done, void *arg)
{
    CLEANUP(buf_fini) struct buf path = {0};

    if (!id)
        return NULL;
    buf_str(&path, "/v1/tasks/");
    client_add_escaped(&path, id);
    client_add_wait(&path, wait_ms);
    return intact_client_start(c, "GET", path.ptr, NULL, NULL, 0, wait_ms, done, arg);
}

void intact_client_cancel(struct intact_client *c, struct intact_call *call)
{
    struct wire_held sigpipe;

    if (!call || call == c->current)
        return;
    wire_hold(&sigpipe, SIGPIPE); /* it may close a connection */
    give_up(c, call);
    wire_release(&sigpipe);
}

void intact_client_set_connections(struct intact_client *c, unsigned connections)
{
    c->connections = connections < 1                 ? 1
                     : connections > CONNECTIONS_MAX ? CONNECTIONS_MAX
                                                     : connections;
    keep_connections(c);
}

int intact_client_fd(struct intact_client *c)
{
    return is_open(c) ? c->reactor.fd : -1;
}

int intact_client_timeout_ms(const struct intact_client *c)
{
    if (!list_empty(&c->waiting) && c->started_count < c->connections && c->introduction.open == 0)
        return 0;
    if (c->reactor.fd < 0 || c->reactor.timer_at == INT64_MAX)
        return -1;
    return (int)min_i64(max_i64(c->reactor.timer_at - clock_boot_ms(), 0), INT32_MAX);
}

/* See `fresh`. */
static void forget_connections(struct intact_client *c)
{
    if (!c->fresh || c->started_count > 0 || c->introduction.open > 0
        || !reactor_forget(&c->reactor))
        return;
    keep_connections(c);
    c->fresh = false;
}

static bool send_call(struct intact_client *c, struct intact_call *x)
{
    const struct question q = {.method = x->method.ptr,
                               .path = x->path.ptr,
                               .key = x->key.len > 0 ? x->key.ptr : NULL,
                               .type = x->has_type ? x->type.ptr : NULL,
                               .body = x->has_body ? buf_view(&x->body).ptr : NULL,
                               .size = x->body.len,
                               .wait_ms = x->wait_ms,
                               .again = x->may_repeat && x->tries + 1 < c->server_count};

    x->server_index = c->server_index;
    x->tries++;

    x->had_token = c->token != NULL;
    x->headers = client_prepare(c, &x->reply, &q);
    if (!x->headers
        || curl_easy_setopt(x->reply.easy, CURLOPT_FRESH_CONNECT,
                            (long)(c->fresh || !x->may_repeat))
               != CURLE_OK
        || curl_easy_setopt(x->reply.easy, CURLOPT_PRIVATE, (void *)x) != CURLE_OK)
        return false;
    x->is_started = curl_multi_add_handle(c->reactor.multi, x->reply.easy) == CURLM_OK;
    c->started_count += x->is_started;
    return x->is_started;
}

/* The call is done: calls its function. */
static void finish(struct intact_client *c, struct intact_call *x, CURLcode code)
{
    take_back(c, x);
    c->call_count--;
    enum intact_status status = reply_conclude(&x->reply, c->all[x->server_index], code);
    if (x->is_foreign || (x->foreign.len > 0 && status != INTACT_OK))
        (void)client_refuse(&x->reply, buf_view(&x->foreign));
    c->current = x;
    x->done(&x->reply, x->arg);
    c->current = NULL;
    free_call(x);
}

static size_t count_waiting(const struct intact_client *c)
{
    size_t count = 0;

    LIST_FOREACH (link, after, &c->waiting)
        count++;
    return count;
}

/* Only those waiting now: the function of a call may start others, and may make a call that changes
 * the memory of `told`. */
static void refuse_waiting(struct intact_client *c, struct slice told)
{
    CLEANUP(buf_fini) struct buf story = {0};

    buf_slice(&story, told);
    for (size_t left = count_waiting(c); left > 0 && !list_empty(&c->waiting); left--) {
        struct intact_call *x = CONTAINER_OF(list_first(&c->waiting), struct intact_call, link);
        buf_slice(&x->foreign, buf_view(&story));
        finish(c, x, CURLE_ABORTED_BY_CALLBACK);
    }
}

/* False: waiting calls must wait on, or were refused. */
static bool may_send(struct intact_client *c)
{
    if (c->installation.mistake[0]) {
        refuse_waiting(c, slice_of(c->installation.mistake));
        return false;
    } else if (c->introduction.conflict.len > 0 && c->introduction.open == 0) {
        struct buf conflict = c->introduction.conflict;
        c->introduction.conflict = (struct buf){0};
        refuse_waiting(c, buf_view(&conflict));
        buf_fini(&conflict);
        return false;
    } else if (introduction_is_needed(c) && c->introduction.open == 0
               && !introduction_begin(c, c->reactor.multi)) {
        c->introduction.is_over = true;
    }
    return c->introduction.open == 0;
}

static void start_waiting(struct intact_client *c)
{
    forget_connections(c);
    if (list_empty(&c->waiting) || !may_send(c))
        return;
    while (!list_empty(&c->waiting) && c->started_count < c->connections) {
        struct intact_call *x = CONTAINER_OF(list_first(&c->waiting), struct intact_call, link);
        link_remove(&x->link);
        if (send_call(c, x))
            list_push(&c->started, &x->link);
        else
            finish(c, x, CURLE_OUT_OF_MEMORY);
    }
}

/* Repeats it with a token or at another server. */
static bool is_repeated(struct intact_client *c, struct intact_call *x, CURLcode code)
{
    if (x->tries < c->server_count
        && client_moves_on(c, x->server_index, &x->reply, code, x->may_repeat))
        return true;
    if (code != CURLE_OK || x->reply.status != 401 || x->had_token
        || !client_finds_token(c, &x->reply))
        return false;
    x->tries--;
    return true;
}

static void answered(struct intact_client *c, struct intact_call *x, CURLcode code)
{
    (void)curl_easy_getinfo(x->reply.easy, CURLINFO_RESPONSE_CODE, &x->reply.status);
    x->is_foreign = client_is_foreign(c, c->all[x->server_index], &x->reply, code, &x->foreign);
    if (is_repeated(c, x, code)) {
        take_back(c, x);
        list_push_front(&c->waiting, &x->link);
    } else {
        finish(c, x, code);
    }
}

static void take_answers(struct intact_client *c)
{
    int left = 0;

    for (CURLMsg *m = curl_multi_info_read(c->reactor.multi, &left); m;
         m = curl_multi_info_read(c->reactor.multi, &left)) {
        char *private = NULL;
        if (m->msg != CURLMSG_DONE)
            continue;
        CURLcode code = m->data.result; /* m is invalid once its handle is removed */
        (void)curl_easy_getinfo(m->easy_handle, CURLINFO_PRIVATE, &private); /* set by send_call */
        if (private)
            answered(c, (struct intact_call *)(void *)private, code);
        else
            introduction_ended(c, c->reactor.multi, m->easy_handle, code);
    }
}

size_t intact_client_drive(struct intact_client *c)
{
    struct wire_held sigpipe;

    if (c->driven || !is_open(c))
        return c->call_count;
    c->driven = true;
    if (c->reactor.is_tls)
        wire_hold(&sigpipe, SIGPIPE);
    reactor_turn(&c->reactor);
    take_answers(c);
    start_waiting(c);
    reactor_due(&c->reactor);
    take_answers(c);
    if (c->reactor.is_tls)
        wire_release(&sigpipe);
    c->driven = false;
    return c->call_count;
}
