/* The connection of live verbs to servers: one event stream, which is opened again when it
 * breaks, and several calls beside it, all on one thread (live_stream.h). event_parser.c parses the
 * stream; verbs/watch.c and verbs/top.c show what comes. */

#include "cli/client/live_stream.h"

#include <stdlib.h>

#include "base/clock.h"
#include "cli/terminal/term.h"
#include "libintact/installation.h"
#include "libintact/wire.h"
#include "json/json.h"

enum {
    AGAIN_MS = 1000,      /* after a broken stream, unless the server says otherwise */
    AGAIN_MAX_MS = 10000, /* longest pause between two tries */
    SILENCE_S = 45,       /* the server sends a sign of life every 15 s */
    CALL_MS = 30000,
    FDS_MAX = 4,
};

/* One transfer: the stream, or a call. */
struct transfer {
    struct live *live;
    CURL *easy;
    struct curl_slist *headers;
    struct buf body;
    size_t at; /* the server it uses, see struct live */
    char why[CURL_ERROR_SIZE];
    void (*take)(void *arg, const struct live_answer *a); /* for a call */
    void *arg;
    bool open;
};

struct live {
    CURLM *multi;
    char *servers;
    struct buf server; /* the current one */
    size_t at;         /* its position in `servers` */
    char *token, *ca;
    struct installation installation;
    struct transfer gets[LIVE_GETS];
    bool news; /* something arrived during this live_wait */
    /* the stream: */
    struct transfer stream;
    char *path;
    void (*take)(void *arg, const struct event *e);
    void *arg;
    struct event_parser parser;
    enum live_state state;
    int64_t again_at;   /* when to reconnect; 0: it is open, or not wanted */
    int64_t again_ms;   /* the last wait for that */
    struct buf trouble; /* one line */
};

/* ---- transfers ---- */

static void transfer_close(struct transfer *t)
{
    if (t->open)
        (void)curl_multi_remove_handle(t->live->multi, t->easy);
    curl_easy_cleanup(t->easy);
    curl_slist_free_all(t->headers);
    t->easy = NULL;
    t->headers = NULL;
    t->open = false;
}

/* Out of memory counts as unreachable. */
static bool transfer_open(struct live *l, struct transfer *t, const char *path)
{
    CLEANUP(buf_fini) struct buf url = {0};

    t->live = l;
    t->at = l->at;
    buf_clear(&t->body);
    t->body.overflow = false;
    t->why[0] = 0;
    t->easy = curl_easy_init();
    t->headers = wire_headers(l->token, NULL);
    if (l->installation.id[0])
        t->headers = wire_add_header(t->headers, l->installation.line);
    buf_fmt(&url, "%s%s", l->server.ptr, path);
    bool ok = t->easy && wire_prepare(t->easy, &t->body, t->why)
              && wire_address(t->easy, url.ptr, l->ca)
              && curl_easy_setopt(t->easy, CURLOPT_HTTPHEADER, t->headers) == CURLE_OK
              && curl_easy_setopt(t->easy, CURLOPT_PRIVATE, t) == CURLE_OK;
    return ok;
}

static bool transfer_start(struct transfer *t)
{
    t->open = curl_multi_add_handle(t->live->multi, t->easy) == CURLM_OK;
    return t->open;
}

static long status_of(const struct transfer *t)
{
    long status = 0;

    (void)curl_easy_getinfo(t->easy, CURLINFO_RESPONSE_CODE, &status); /* otherwise it stays 0 */
    return status;
}

/* ---- servers ---- */

static void ask_at(struct live *l, size_t at)
{
    size_t len = strcspn(l->servers + at, ",");

    l->at = at;
    while (len > 0 && l->servers[at + len - 1] == '/')
        len--;
    buf_clear(&l->server);
    buf_add(&l->server, l->servers + at, len);
    buf_str(&l->server, "");
}

static void ask_next(struct live *l)
{
    size_t end = l->at + strcspn(l->servers + l->at, ",");

    ask_at(l, l->servers[end] ? end + 1 : 0);
}

/* The server is unreachable, not ready, or of another installation (421): another server of the
 * list may do better. */
static bool is_elsewhere(const struct live *l, long status)
{
    return status == 0 || status == 502 || status == 503 || status == 504
           || (status == 421 && strchr(l->servers, ','));
}

static void ask_first(struct live *l, const char *first)
{
    size_t seen = 0;

    ask_at(l, 0);
    for (; strcmp(l->server.ptr, first) != 0 && seen <= l->at; ask_next(l))
        seen = l->at + 1; /* at the start again: not in the list */
}

const char *live_server(const struct live *l)
{
    return buf_view(&l->server).ptr;
}

/* ---- the stream ---- */

static void again_later(struct live *l)
{
    int64_t least = l->parser.retry_ms >= 0 ? l->parser.retry_ms : AGAIN_MS;

    l->again_ms = l->again_ms == 0 ? least : min_i64(l->again_ms * 2 + 100, AGAIN_MAX_MS);
    l->again_at = clock_steady_ms() + l->again_ms;
    l->state = LIVE_CONNECTING;
    ask_next(l);
}

static void take_event(void *arg, const struct event *e)
{
    struct live *l = arg;

    l->news = true;
    l->again_ms = 0;
    l->take(l->arg, e);
}

static size_t stream_bytes(char *ptr, size_t size, size_t count, void *arg)
{
    struct live *l = arg;

    if (status_of(&l->stream) != 200) {
        buf_add(&l->stream.body, ptr, size * count); /* the body has the reason */
        return l->stream.body.overflow ? 0 : size * count;
    }
    if (l->state != LIVE_FOLLOWING) {
        l->state = LIVE_FOLLOWING;
        buf_clear(&l->trouble);
        l->news = true;
    }
    event_parser_feed(&l->parser, (struct slice){ptr, size * count}, take_event, l);
    return size * count;
}

static bool stream_prepare(struct live *l)
{
    struct transfer *t = &l->stream;
    CLEANUP(buf_fini) struct buf last = {0};
    bool ok = transfer_open(l, t, l->path);

    if (!ok)
        return false;
    if (l->parser.id.len > 0) {
        buf_fmt(&last, "Last-Event-ID: %.*s", SLICE_ARG(buf_view(&l->parser.id)));
        struct curl_slist *longer = curl_slist_append(t->headers, last.ptr);
        t->headers = longer ? longer : t->headers;
        ok &= longer && curl_easy_setopt(t->easy, CURLOPT_HTTPHEADER, t->headers) == CURLE_OK;
    }
    ok &= curl_easy_setopt(t->easy, CURLOPT_WRITEFUNCTION, stream_bytes) == CURLE_OK;
    ok &= curl_easy_setopt(t->easy, CURLOPT_WRITEDATA, l) == CURLE_OK;
    ok &= curl_easy_setopt(t->easy, CURLOPT_LOW_SPEED_LIMIT, 1L) == CURLE_OK;
    ok &= curl_easy_setopt(t->easy, CURLOPT_LOW_SPEED_TIME, (long)SILENCE_S) == CURLE_OK;
    return ok;
}

static void stream_start(struct live *l)
{
    l->again_at = 0;
    event_parser_cut(&l->parser);
    if (stream_prepare(l) && transfer_start(&l->stream))
        return;
    transfer_close(&l->stream);
    buf_clear(&l->trouble);
    buf_str(&l->trouble, "there is no memory");
    again_later(l);
}

static void explain(struct live *l, long status, CURLcode code)
{
    CLEANUP(arena_fini) struct arena a = {0};
    struct json *problem = NULL;
    struct slice detail = SLICE_NONE;

    buf_clear(&l->trouble);
    if (status == 0 || status == 200) {
        buf_fmt(&l->trouble, "%s",
                l->stream.why[0]   ? l->stream.why
                : code != CURLE_OK ? curl_easy_strerror(code)
                                   : "the server ended the stream");
        return;
    }
    if (json_parse(&a, buf_view(&l->stream.body), &problem, NULL) == ERR_OK)
        detail = json_get_text(problem, "detail");
    if (detail.len)
        buf_slice(&l->trouble, detail);
    else
        buf_fmt(&l->trouble, "the server answered with status %ld", status);
}

static void stream_ended(struct live *l, CURLcode code)
{
    long status = status_of(&l->stream);

    l->news = true;
    if (status == 204) {
        l->state = LIVE_OVER;
        return;
    }
    explain(l, status, code);
    if (status < 300 || status == 429 || is_elsewhere(l, status))
        again_later(l);
    else
        l->state = LIVE_REFUSED;
}

void live_follow(struct live *l, const char *path, void (*take)(void *arg, const struct event *e),
                 void *arg)
{
    ASSERT(!l->path);
    l->path = strdup(path);
    if (!l->path)
        abort();
    l->take = take;
    l->arg = arg;
    stream_start(l);
}

enum live_state live_state(const struct live *l)
{
    return l->state;
}

const char *live_trouble(const struct live *l)
{
    return buf_view(&l->trouble).ptr;
}

/* ---- calls ---- */

bool live_get(struct live *l, const char *path,
              void (*take)(void *arg, const struct live_answer *a), void *arg)
{
    struct transfer *t = NULL;

    for (size_t i = 0; i < LIVE_GETS && !t; i++)
        t = l->gets[i].easy ? NULL : &l->gets[i];
    if (!t)
        return false;
    t->take = take;
    t->arg = arg;
    if (transfer_open(l, t, path)
        && curl_easy_setopt(t->easy, CURLOPT_TIMEOUT_MS, (long)CALL_MS) == CURLE_OK
        && transfer_start(t))
        return true;
    transfer_close(t);
    return false;
}

bool live_is_asking(const struct live *l)
{
    for (size_t i = 0; i < LIVE_GETS; i++)
        if (l->gets[i].easy)
            return true;
    return false;
}

static void get_ended(struct transfer *t, CURLcode code)
{
    struct live_answer a = {.status = code == CURLE_OK ? (int)status_of(t) : 0,
                            .body = buf_view(&t->body)};

    t->live->news = true;
    if (a.status == 0)
        a.body = slice_of(t->why[0] ? t->why : curl_easy_strerror(code));
    /* If there is a stream, the stream chooses the next server. */
    if (is_elsewhere(t->live, a.status) && t->at == t->live->at && !t->live->path)
        ask_next(t->live);
    transfer_close(t); /* the slot is free for the next call ... */
    struct buf body = t->body;
    t->body = (struct buf){0}; /* ... while its body is kept until it was read */
    t->take(t->arg, &a);
    buf_fini(&body);
}

/* ---- the loop ---- */

static void take_ends(struct live *l)
{
    int left = 0;

    for (CURLMsg *m = NULL; (m = curl_multi_info_read(l->multi, &left));) {
        struct transfer *t = NULL;
        CURLcode code = m->data.result;
        if (m->msg != CURLMSG_DONE
            || curl_easy_getinfo(m->easy_handle, CURLINFO_PRIVATE, (char **)&t) != CURLE_OK)
            continue;
        if (t == &l->stream) {
            stream_ended(l, code);
            transfer_close(t);
        } else {
            get_ended(t, code);
        }
    }
}

static void perform(struct live *l)
{
    struct wire_held sigpipe;
    int running = 0;

    wire_hold(&sigpipe, SIGPIPE);
    (void)curl_multi_perform(l->multi, &running); /* errors are reported per transfer */
    wire_release(&sigpipe);
    take_ends(l);
}

void live_wait(struct live *l, const int *fds, int fd_count, int64_t wait_ms)
{
    struct curl_waitfd extra[FDS_MAX] = {{0}};
    int64_t now = clock_steady_ms();

    ASSERT(fd_count <= FDS_MAX);
    l->news = false;
    if (l->again_at != 0 && now >= l->again_at)
        stream_start(l);
    perform(l);
    if (l->news)
        return;
    for (int i = 0; i < fd_count; i++)
        extra[i] = (struct curl_waitfd){.fd = fds[i], .events = CURL_WAIT_POLLIN};
    if (l->again_at != 0)
        wait_ms = min_i64(wait_ms, max_i64(l->again_at - now, 0));
    (void)curl_multi_poll(l->multi, extra, (unsigned)fd_count, (int)max_i64(wait_ms, 0), NULL);
    perform(l);
}

/* ---- life ---- */

static char *copy_of(const char *text)
{
    char *copy = text ? strdup(text) : NULL;

    if (text && !copy)
        abort();
    return copy;
}

struct live *live_new(const char *servers, const char *first, const char *token, const char *ca,
                      const char *installation)
{
    struct live *l = wire_init() ? calloc(1, sizeof *l) : NULL;

    if (!l)
        return NULL;
    l->multi = curl_multi_init();
    l->servers = copy_of(servers);
    ask_first(l, first);
    l->token = copy_of(token);
    l->ca = copy_of(ca);
    if (installation[0])
        installation_learn(&l->installation, first, installation);
    l->parser.retry_ms = -1;
    if (l->multi)
        return l;
    live_free(l);
    return NULL;
}

void live_free(struct live *l)
{
    if (!l)
        return;
    if (l->stream.easy)
        transfer_close(&l->stream);
    buf_fini(&l->stream.body);
    for (size_t i = 0; i < LIVE_GETS; i++) {
        if (l->gets[i].easy)
            transfer_close(&l->gets[i]);
        buf_fini(&l->gets[i].body);
    }
    (void)curl_multi_cleanup(l->multi);
    event_parser_fini(&l->parser);
    buf_fini(&l->trouble);
    free(l->path);
    free(l->servers);
    buf_fini(&l->server);
    free(l->token);
    free(l->ca);
    installation_fini(&l->installation);
    free(l);
}
