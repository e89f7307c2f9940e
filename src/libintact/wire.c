/* What client and agent share of speaking HTTP with libcurl: options, headers, signals. See
 * wire.h. */
#include "libintact/wire.h"

#include <arpa/inet.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <time.h>

static const char *given_or_env(const char *given, const char *name)
{
    const char *env = given ? NULL : getenv(name);
    const char *found = given ? given : env;

    return found && found[0] ? found : NULL;
}

const char *wire_server(const char *given)
{
    const char *server = given_or_env(given, "INTACT_SERVER");
    return server ? server : "http://127.0.0.1:7420";
}

const char *wire_token(const char *given)
{
    return given_or_env(given, "INTACT_TOKEN");
}

const char *wire_ca(const char *given)
{
    return given_or_env(given, "INTACT_CA");
}

static bool is_loopback_host(const char *host)
{
    struct in_addr address;

    return strcmp(host, "localhost") == 0 || strcmp(host, "[::1]") == 0
           || (inet_pton(AF_INET, host, &address) == 1 && ntohl(address.s_addr) >> 24 == 127);
}

bool wire_is_loopback(const char *url, int *ret_port)
{
    CURLU *u = curl_url();
    char *host = NULL;
    char *port = NULL;

    bool ok = u && curl_url_set(u, CURLUPART_URL, url, 0) == CURLUE_OK
              && curl_url_get(u, CURLUPART_HOST, &host, 0) == CURLUE_OK
              && curl_url_get(u, CURLUPART_PORT, &port, CURLU_DEFAULT_PORT) == CURLUE_OK
              && is_loopback_host(host);
    *ret_port = ok ? (int)strtol(port, NULL, 10) : 0; /* libcurl has checked it */
    curl_free(host);
    curl_free(port);
    curl_url_cleanup(u);
    return ok;
}

bool wire_address(CURL *easy, const char *url, const char *ca)
{
    int port = 0;
    bool ok = curl_easy_setopt(easy, CURLOPT_URL, url) == CURLE_OK;

    /* A name "..", which is no step up. */
    ok &= curl_easy_setopt(easy, CURLOPT_PATH_AS_IS, 1L) == CURLE_OK;
    if (wire_is_loopback(url, &port))
        ok &= curl_easy_setopt(easy, CURLOPT_PROXY, "") == CURLE_OK;
    if (ca)
        ok &= curl_easy_setopt(easy, CURLOPT_CAINFO, ca) == CURLE_OK;
    return ok;
}

struct curl_slist *wire_add_header(struct curl_slist *list, const char *line)
{
    struct curl_slist *longer = curl_slist_append(list, line);

    return longer ? longer : list;
}

static struct curl_slist *with_header(struct curl_slist *list, const char *name, const char *value)
{
    CLEANUP(buf_fini) struct buf line = {0};

    buf_fmt(&line, "%s:%s%s", name, value[0] ? " " : "", value);
    return wire_add_header(list, line.ptr);
}

struct curl_slist *wire_headers(const char *token, const char *type)
{
    CLEANUP(buf_fini) struct buf bearer = {0};
    /* Otherwise curl asks for permission before a long body, and waits up to a second for it. */
    struct curl_slist *list = with_header(NULL, "Expect", "");

    list = with_header(list, "Accept", "application/json");
    if (type)
        list = with_header(list, "Content-Type", type);
    if (token) {
        buf_fmt(&bearer, "Bearer %s", token);
        list = with_header(list, "Authorization", bearer.ptr);
    }
    return list;
}

static size_t gather(char *ptr, size_t size, size_t count, void *arg)
{
    struct buf *answer = arg;

    buf_add(answer, ptr, size * count);
    return answer->overflow ? 0 : size * count; /* 0 ends the transfer with an error */
}

/* Programs started by a handler must not inherit connections: they would keep them open, and the
 * agent would look alive to the server after its death. */
static curl_socket_t open_socket(void *arg, curlsocktype purpose, struct curl_sockaddr *address)
{
    (void)arg;
    (void)purpose;
    return socket(address->family, address->socktype | SOCK_CLOEXEC, address->protocol);
}

bool wire_prepare(CURL *easy, struct buf *answer, char *why)
{
    bool ok = true;

    answer->max = WIRE_ANSWER_MAX;
    ok &= curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L) == CURLE_OK;
    ok &= curl_easy_setopt(easy, CURLOPT_OPENSOCKETFUNCTION, open_socket) == CURLE_OK;
    ok &= curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, why) == CURLE_OK;
    ok &= curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, gather) == CURLE_OK;
    ok &= curl_easy_setopt(easy, CURLOPT_WRITEDATA, answer) == CURLE_OK;
    ok &= curl_easy_setopt(easy, CURLOPT_USERAGENT, "libintact/" INTACT_VERSION) == CURLE_OK;
    ok &= curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https") == CURLE_OK;
    ok &= curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS, 5000L) == CURLE_OK;
#if LIBCURL_VERSION_NUM >= 0x075700
    /* When a name lookup is abandoned, do not wait for its thread, which ends by itself. */
    ok &= curl_easy_setopt(easy, CURLOPT_QUICK_EXIT, 1L) == CURLE_OK;
#endif
    /* Requests are small and the server is near: HTTP/2 would only add cost. */
    ok &= curl_easy_setopt(easy, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1) == CURLE_OK;
    return ok;
}

static sigset_t only(int number)
{
    sigset_t s;

    sigemptyset(&s);
    sigaddset(&s, number);
    return s;
}

void wire_hold(struct wire_held *h, int number)
{
    const sigset_t held = only(number);
    sigset_t pending;

    h->number = number;
    sigemptyset(&pending);
    (void)sigpending(&pending); /* cannot fail with a valid pointer */
    h->was_pending = sigismember(&pending, number) == 1;
    (void)pthread_sigmask(SIG_BLOCK, &held, &h->before); /* the same */
}

void wire_release(struct wire_held *h)
{
    const struct timespec at_once = {0};
    const sigset_t held = only(h->number);

    if (!h->was_pending)
        while (sigtimedwait(&held, NULL, &at_once) > 0)
            continue;
    (void)pthread_sigmask(SIG_SETMASK, &h->before, NULL);
}
