/* One request to a service over libcurl, with limits, checks of the address, and an outcome for
 * people: see transfer.h. */
#include "net/transfer.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/when.h"
#include "net/reactor.h"
#include "net/watchdog.h"

enum { KEPT_BUFFER_MAX = 64 << 10 /* bytes that an idle transfer keeps */ };

/* ---- libcurl's callbacks ---- */

static size_t on_head(char *ptr, size_t size, size_t count, void *arg)
{
    struct transfer *t = arg;
    size_t len = size * count;

    t->head_lines++;
    if (t->head.len + len > HEAD_MAX || t->head_lines > HEAD_LINES_MAX) {
        t->is_head_too_large = true;
        return 0;
    }
    if (len >= 5 && memcmp(ptr, "HTTP/", 5) == 0)
        t->is_head_whole = false; /* that of a 100 Continue may have come before */
    else if (t->is_head_whole)
        return len; /* a trailer: nobody asks for one */
    else
        t->is_head_whole = len <= 2 && (*ptr == '\r' || *ptr == '\n');
    buf_add(&t->head, ptr, len);
    return len;
}

/* The body arrives decompressed, so a small one may become large. */
static size_t on_body(char *ptr, size_t size, size_t count, void *arg)
{
    struct transfer *t = arg;
    size_t len = size * count;

    if (t->body.len + len > t->config->answer_max) {
        t->is_body_too_large = true;
        return 0;
    }
    buf_add(&t->body, ptr, len);
    return len;
}

/* The address is checked here, where it is final, not where a name is resolved. */
static curl_socket_t on_open(void *arg, curlsocktype purpose, struct curl_sockaddr *to)
{
    /* If a peer disappears silently, the requests on a shared connection are lost one after
     * another: its machine must acknowledge what was sent within this time. */
    static const unsigned silent_ms = 20000;
    struct transfer *t = arg;
    (void)purpose;

    if (!t->config->proxy && !address_is_allowed(&to->addr, &t->config->networks)) {
        address_write(&to->addr, t->forbidden, sizeof t->forbidden);
        return CURL_SOCKET_BAD;
    }
    t->was_tried = true;
    int fd = socket(to->family, to->socktype | SOCK_CLOEXEC, to->protocol);
    if (fd >= 0) /* otherwise the kernel's default applies */
        (void)setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &silent_ms, sizeof silent_ms);
    watchdog_opened(fd, t->config);
    return fd;
}

static int on_close(void *arg, curl_socket_t fd)
{
    (void)arg;
    watchdog_closes(fd);
    return close(fd);
}

/* ---- creation ---- */

static bool set_tls(CURL *easy, const struct transfer_config *s)
{
    bool ok = curl_easy_setopt(easy, CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2) == CURLE_OK;

    if (s->ca)
        ok &= curl_easy_setopt(easy, CURLOPT_CAINFO, s->ca) == CURLE_OK
              && curl_easy_setopt(easy, CURLOPT_CAPATH, NULL) == CURLE_OK;
    if (s->cert)
        ok &= curl_easy_setopt(easy, CURLOPT_SSLCERT, s->cert) == CURLE_OK
              && curl_easy_setopt(easy, CURLOPT_SSLKEY, s->key) == CURLE_OK;
    return ok;
}

static bool set_always(struct transfer *t)
{
    const struct transfer_config *s = t->config;
    CURL *easy = t->easy;
    bool ok = true;

    ok &= curl_easy_setopt(easy, CURLOPT_PRIVATE, (void *)t) == CURLE_OK;
    ok &= curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L) == CURLE_OK;
    ok &= curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, t->why) == CURLE_OK;
    ok &= curl_easy_setopt(easy, CURLOPT_HEADERFUNCTION, on_head) == CURLE_OK;
    ok &= curl_easy_setopt(easy, CURLOPT_HEADERDATA, (void *)t) == CURLE_OK;
    ok &= curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, on_body) == CURLE_OK;
    ok &= curl_easy_setopt(easy, CURLOPT_WRITEDATA, (void *)t) == CURLE_OK;
    ok &= curl_easy_setopt(easy, CURLOPT_OPENSOCKETFUNCTION, on_open) == CURLE_OK;
    ok &= curl_easy_setopt(easy, CURLOPT_OPENSOCKETDATA, (void *)t) == CURLE_OK;
    ok &= curl_easy_setopt(easy, CURLOPT_CLOSESOCKETFUNCTION, on_close) == CURLE_OK;
    ok &= curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https") == CURLE_OK;
    ok &= curl_easy_setopt(easy, CURLOPT_FOLLOWLOCATION, 0L) == CURLE_OK;
    ok &= curl_easy_setopt(easy, CURLOPT_PATH_AS_IS, 1L) == CURLE_OK;
    ok &= curl_easy_setopt(easy, CURLOPT_ACCEPT_ENCODING, "gzip, deflate") == CURLE_OK;
    ok &= curl_easy_setopt(easy, CURLOPT_USERAGENT, s->user_agent) == CURLE_OK;
    ok &=
        curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS, (long)s->connect_timeout_ms) == CURLE_OK;
    ok &= curl_easy_setopt(easy, CURLOPT_TCP_KEEPALIVE, 1L) == CURLE_OK;
    ok &= curl_easy_setopt(easy, CURLOPT_MAXLIFETIME_CONN, 600L) == CURLE_OK;
#if LIBCURL_VERSION_NUM >= 0x075700
    ok &= curl_easy_setopt(easy, CURLOPT_QUICK_EXIT, 1L) == CURLE_OK;
#endif
    /* The environment's proxy settings are for interactive users. */
    ok &= curl_easy_setopt(easy, CURLOPT_PROXY, s->proxy ? s->proxy : "") == CURLE_OK;
    ok &= curl_easy_setopt(easy, CURLOPT_NOPROXY, "") == CURLE_OK;
    ok &= curl_easy_setopt(easy, CURLOPT_HTTP_VERSION,
                           (long)(s->http2 ? CURL_HTTP_VERSION_2TLS : CURL_HTTP_VERSION_1_1))
          == CURLE_OK;
    ok &= curl_easy_setopt(easy, CURLOPT_PIPEWAIT, (long)(s->http2 && s->is_https)) == CURLE_OK;
    return ok && set_tls(easy, s);
}

struct transfer *transfer_new(const struct transfer_config *s)
{
    struct transfer *t = calloc(1, sizeof *t);

    ASSERT(t);
    t->config = s;
    list_init(&t->link);
    t->easy = wire_init() ? curl_easy_init() : NULL;
    if (t->easy && set_always(t))
        return t;
    transfer_free(t);
    return NULL;
}

void transfer_free(struct transfer *t)
{
    if (!t)
        return;
    ASSERT(!t->owner);
    link_remove(&t->link);
    curl_easy_cleanup(t->easy);
    curl_slist_free_all(t->lines);
    buf_fini(&t->head);
    buf_fini(&t->body);
    free(t);
}

/* ---- start and end ---- */

static void give_back(struct buf *b)
{
    if (b->cap > KEPT_BUFFER_MAX)
        buf_fini(b);
    else
        buf_clear(b);
}

void transfer_clear(struct transfer *t)
{
    give_back(&t->head);
    give_back(&t->body);
    curl_slist_free_all(t->lines);
    t->lines = NULL;
    t->head_lines = 0;
    t->is_head_whole = t->is_head_too_large = t->is_body_too_large = false;
    t->was_tried = false;
    t->forbidden[0] = t->why[0] = 0;
}

static bool set_question(CURL *easy, const struct question *q)
{
    bool is_head = strcmp(q->method, "HEAD") == 0;
    bool wants_length = strcmp(q->method, "POST") == 0 || strcmp(q->method, "PUT") == 0
                        || strcmp(q->method, "PATCH") == 0;
    struct slice body = q->body.ptr || !wants_length ? q->body : SLICE("");
    bool ok = curl_easy_setopt(easy, CURLOPT_NOBODY, (long)is_head) == CURLE_OK;

    ok &= curl_easy_setopt(easy, CURLOPT_POSTFIELDS, NULL) == CURLE_OK;
    if (body.ptr) {
        ok &= curl_easy_setopt(easy, CURLOPT_POST, 1L) == CURLE_OK;
        ok &= curl_easy_setopt(easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)body.len) == CURLE_OK;
        ok &= curl_easy_setopt(easy, CURLOPT_POSTFIELDS, body.ptr) == CURLE_OK;
    } else if (!is_head) {
        ok &= curl_easy_setopt(easy, CURLOPT_HTTPGET, 1L) == CURLE_OK;
    }
    ok &= curl_easy_setopt(easy, CURLOPT_CUSTOMREQUEST, is_head ? NULL : q->method) == CURLE_OK;
    ok &= curl_easy_setopt(easy, CURLOPT_URL, q->url) == CURLE_OK;
    ok &= curl_easy_setopt(easy, CURLOPT_HTTPHEADER, q->lines) == CURLE_OK;
    ok &= curl_easy_setopt(easy, CURLOPT_TIMEOUT_MS, (long)q->within_ms) == CURLE_OK;
    return ok;
}

bool transfer_start(struct transfer *t, CURLM *multi, void *owner, const struct question *q)
{
    ASSERT(!t->owner);
    transfer_clear(t);
    t->lines = q->lines;
    t->within_ms = q->within_ms;
    if (!set_question(t->easy, q) || curl_multi_add_handle(multi, t->easy) != CURLM_OK)
        return false;
    t->owner = owner;
    return true;
}

void transfer_stop(struct transfer *t, CURLM *multi)
{
    ASSERT(t->owner);
    (void)curl_multi_remove_handle(multi, t->easy); /* it is registered */
    t->owner = NULL;
}

bool transfer_was_sent(const struct transfer *t)
{
    long sent = 0;

    (void)curl_easy_getinfo(t->easy, CURLINFO_REQUEST_SIZE, &sent); /* stays 0 on failure */
    return sent > 0;
}

/* ---- outcomes ---- */

static bool is_of_tls(CURLcode code)
{
    switch ((int)code) {
    case CURLE_SSL_CONNECT_ERROR:
    case CURLE_PEER_FAILED_VERIFICATION:
    case CURLE_SSL_CERTPROBLEM:
    case CURLE_SSL_CIPHER:
    case CURLE_SSL_CACERT_BADFILE:
    case CURLE_SSL_ISSUER_ERROR:
    case CURLE_SSL_CRL_BADFILE:
    case CURLE_SSL_INVALIDCERTSTATUS:
    case CURLE_SSL_PINNEDPUBKEYNOTMATCH:
    case CURLE_SSL_ENGINE_INITFAILED:
    case CURLE_SSL_CLIENTCERT:
    case CURLE_USE_SSL_FAILED:
        return true;
    default:
        return false;
    }
}

static void tell_timeout(struct transfer *t, struct transfer_outcome *o, struct buf *story)
{
    curl_off_t connected = 0;
    const char *what = "the answer did not come";

    (void)curl_easy_getinfo(t->easy, CURLINFO_PRETRANSFER_TIME_T, &connected); /* or 0 */
    o->code = "timeout";
    if (!o->was_sent && connected == 0) {
        o->code = "unreachable";
        what = "no connection came about";
    } else if (t->head.len > 0) {
        what = "the answer began and did not end";
    }
    buf_fmt(story, "%s within ", what);
    duration_tell(story,
                  strstr(t->why, "onnection time") ? t->config->connect_timeout_ms : t->within_ms);
    if (t->body.len > 0)
        buf_fmt(story, "; %zu bytes of its body came", t->body.len);
}

/* "cannot be reached: Failed to connect to ... (Connection refused)" */
static void tell_unreachable(const struct transfer *t, CURLcode code, struct buf *story)
{
    long number = 0;

    buf_str(story, "cannot be reached: ");
    answer_quote(story, slice_of(t->why[0] ? t->why : curl_easy_strerror(code)), 200);
    (void)curl_easy_getinfo(t->easy, CURLINFO_OS_ERRNO, &number); /* stays 0 on failure */
    if (number > 0 && strerrordesc_np((int)number))
        buf_fmt(story, " (%s)", strerrordesc_np((int)number));
}

/* The connection broke, or the response is not HTTP. */
static void tell_broken(const struct transfer *t, CURLcode code, struct transfer_outcome *o,
                        struct buf *story)
{
    o->code = o->was_sent ? "bad_answer" : "unreachable";
    switch ((int)code) {
    case CURLE_GOT_NOTHING:
        buf_str(story, "the connection was closed before an answer came");
        return;
    case CURLE_PARTIAL_FILE:
        buf_fmt(story, "the answer was cut off after %zu bytes of its body", t->body.len);
        return;
    case CURLE_BAD_CONTENT_ENCODING:
        buf_str(story, "the body is not packed as its Content-Encoding says");
        return;
    case CURLE_UNSUPPORTED_PROTOCOL:
    case CURLE_WEIRD_SERVER_REPLY:
        o->code = "bad_answer";
        buf_str(story, "what came is not HTTP");
        return;
    default:
        buf_str(story, o->was_sent ? "the exchange broke: " : "cannot be reached: ");
        answer_quote(story, slice_of(t->why[0] ? t->why : curl_easy_strerror(code)), 200);
    }
}

static void tell_fault(struct transfer *t, CURLcode code, struct transfer_outcome *o,
                       struct buf *story)
{
    o->may_try_again = true;
    /* libcurl has its own limit for a line, without a code for it. */
    if ((code == CURLE_OUT_OF_MEMORY || (int)code == 100 /* CURLE_TOO_LARGE */) && o->was_sent
        && !t->is_head_whole)
        t->is_head_too_large = true;
    if (t->forbidden[0] && !t->was_tried && !o->was_sent) {
        o->code = "forbidden_address";
        o->may_try_again = false;
        buf_fmt(story,
                "leads to %s, which is no public address and none that the configuration allows "
                "(private)",
                t->forbidden);
    } else if (t->is_head_too_large || t->is_body_too_large) {
        o->code = "too_large";
        o->may_try_again = false;
        if (t->is_body_too_large)
            buf_fmt(story, "the body of the answer is longer than %zu bytes (max_answer)",
                    t->config->answer_max);
        else
            buf_fmt(story, "the headers of the answer are longer than %d KiB, or more than %d",
                    HEAD_MAX >> 10, HEAD_LINES_MAX);
    } else if (watchdog_bit()) {
        o->code = o->was_sent ? "bad_answer" : "unreachable";
        buf_str(story, "it sent without end what is no answer, and its connections were broken");
    } else if (is_of_tls(code)) {
        o->code = "tls";
        buf_str(story, "no secure connection: ");
        answer_quote(story, slice_of(t->why[0] ? t->why : curl_easy_strerror(code)), 200);
    } else if (code == CURLE_OPERATION_TIMEDOUT) {
        tell_timeout(t, o, story);
    } else if (code == CURLE_COULDNT_CONNECT || code == CURLE_COULDNT_RESOLVE_HOST
               || code == CURLE_COULDNT_RESOLVE_PROXY || code == CURLE_PROXY) {
        o->code = "unreachable";
        tell_unreachable(t, code, story);
    } else {
        tell_broken(t, code, o, story);
    }
}

void transfer_conclude(struct transfer *t, CURLcode code, struct arena *a,
                       struct transfer_outcome *ret, struct buf *story)
{
    *ret = (struct transfer_outcome){.was_sent = transfer_was_sent(t)};
    if (code != CURLE_OK) {
        tell_fault(t, code, ret, story);
        return;
    }
    /* stays 0 on failure */
    (void)curl_easy_getinfo(t->easy, CURLINFO_RESPONSE_CODE, &ret->answer.status);
    answer_read_head(&ret->answer, buf_view(&t->head), a);
    ret->answer.body = buf_view(&t->body);
    struct slice length = answer_header(&ret->answer, "content-length");
    ret->code = "bad_answer";
    ret->may_try_again = true;
    /* libcurl takes the end of the connection for the end of the head, and uses the last length. */
    if (!t->is_head_whole)
        buf_str(story, "the answer was cut off within its headers");
    else if (length.len > 0 && memchr(length.ptr, ',', length.len))
        buf_str(story, "the answer says more than one Content-Length");
    else if (ret->answer.status < 200 || ret->answer.status > 599)
        buf_fmt(story, "the answer has the status %ld, which is none", ret->answer.status);
    else
        ret->code = NULL;
}
