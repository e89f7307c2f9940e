/* Reads the configuration of the HTTP agent and reports all mistakes with their places. Touches no
 * other file. Result: http_config.h; reference: docs/http-agent.md. */

#include "agents/http/http_config.h"

#include <curl/curl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "definition/reader/definition_reader.h"
#include "definition/reader/http_step.h"
#include "net/net_settings.h"

enum { ATTEMPTS_MAX = 1000 };

_Static_assert(ANSWER_MAX_MAX == 64 << 20, "read_service() names it");

/* State while the text is read. */
struct draft {
    struct reading reading; /* for the templates; must be first, for reading_of */
    struct http_config *config;
    uint32_t places; /* for services without a setting of their own */
    struct networks networks;
    const struct json *services;
};

static struct draft *draft_of(const struct reader *r)
{
    return CONTAINER_OF(reading_of(r), struct draft, reading);
}

/* ---- values ---- */

static void read_statuses(struct reader *r, const struct json *j, const struct path *path,
                          void *target)
{
    if (!statuses_read(j, target))
        mistake_in(r, path, j, "an array of statuses from 200 to 599, such as [404, 410]");
}

/* ---- secrets ---- */

static const struct secret *secret_find(const struct http_config *c, struct slice name)
{
    for (const struct secret *s = c->secrets; s; s = s->next)
        if (slice_eq(s->name, name))
            return s;
    return NULL;
}

static void read_secrets(struct reader *r, const struct json *j, const struct path *path,
                         void *target)
{
    struct secret **end = &draft_of(r)->config->secrets;
    (void)target;

    if (j->type != JSON_OBJECT) {
        mistake_in(r, path, j, "an object: names, and where each secret is kept");
        return;
    }
    for (const struct json *m = j->child; m; m = m->next) {
        struct path at = {path, m->key, 0};
        struct secret *s = arena_alloc(r->arena, sizeof *s);
        s->name = m->key;
        read_secret_place(r, m, &at, &s->place);
        *end = s;
        end = &s->next;
    }
}

/* ---- headers and queries of services ---- */

bool setting_next(struct slice value, size_t *at, struct slice *ret_plain, struct slice *ret_name)
{
    static const char open[] = "${";
    struct slice rest = {value.ptr + *at, value.len - *at};

    if (*at > value.len)
        return false;
    *ret_name = SLICE_NONE;
    *ret_plain = rest;
    const char *from = rest.len ? memmem(rest.ptr, rest.len, open, 2) : NULL;
    const char *to = from ? memchr(from, '}', rest.len - (size_t)(from - rest.ptr)) : NULL;
    if (!to) {
        *at = value.len + 1;
        return true;
    }
    *ret_plain = (struct slice){rest.ptr, (size_t)(from - rest.ptr)};
    *at += (size_t)(to - rest.ptr) + 1;
    struct slice inner = {from + 2, (size_t)(to - from) - 2};
    while (inner.len > 0 && *inner.ptr == ' ')
        inner = (struct slice){inner.ptr + 1, inner.len - 1};
    while (inner.len > 0 && inner.ptr[inner.len - 1] == ' ')
        inner.len--;
    *ret_name = SLICE("");
    if (inner.len > 7 && memcmp(inner.ptr, "secret.", 7) == 0)
        *ret_name = (struct slice){inner.ptr + 7, inner.len - 7};
    return true;
}

static void check_references(struct reader *r, const struct json *m, const struct path *path)
{
    struct slice plain;
    struct slice name;

    for (size_t at = 0, from = 0; setting_next(m->text, &at, &plain, &name); from = at) {
        size_t place = reader_string_offset(r, m, from + plain.len);
        char found[100];
        if (!name.ptr)
            continue;
        (void)snprintf(found, sizeof found, "secret \"%.*s\"", SLICE_ARG(slice_cut(name, 80)));
        if (name.len == 0)
            mistake_at(r, path, place, "another expression",
                       "${ secret.NAME }: no task is seen here");
        else if (!secret_find(draft_of(r)->config, name))
            mistake_at(r, path, place, found, "the name of one in secrets");
    }
}

static void read_setting(struct reader *r, const struct json *m, const struct path *path,
                         struct setting ***end)
{
    struct slice text = m->type == JSON_STRING || m->type == JSON_NUMBER ? m->text : SLICE_NONE;

    if (!text.ptr || !header_value_is_sound(text)) {
        mistake_in(r, path, m, "a text of one line");
        return;
    }
    if (m->type == JSON_STRING)
        check_references(r, m, path);
    struct setting *s = arena_alloc(r->arena, sizeof *s);
    *s = (struct setting){NULL, m->key, text};
    **end = s;
    *end = &s->next;
}

static void read_settings(struct reader *r, const struct json *j, const struct path *path,
                          void *target)
{
    struct setting **end = target;

    if (j->type != JSON_OBJECT) {
        mistake_in(r, path, j, "an object: names and their values");
        return;
    }
    for (const struct json *m = j->child; m; m = m->next) {
        struct path at = {path, m->key, 0};
        read_setting(r, m, &at, &end);
    }
}

static void read_headers(struct reader *r, const struct json *j, const struct path *path,
                         void *target)
{
    if (j->type == JSON_OBJECT)
        for (const struct json *m = j->child; m; m = m->next) {
            struct path at = {path, m->key, 0};
            const char *fault = header_name_fault(m->key);
            if (fault)
                mistake_at(r, &at, m->key_at, "a name that cannot be set", "%s", fault);
        }
    read_settings(r, j, path, target);
}

/* ---- services ---- */

static bool url_part(CURLU *u, CURLUPart part, unsigned flags, char **ret)
{
    return curl_url_get(u, part, ret, flags) == CURLUE_OK;
}

static bool has_part(CURLU *u, CURLUPart part)
{
    char *text = NULL;
    bool has = url_part(u, part, 0, &text);

    curl_free(text);
    return has;
}

/* Scheme, host and port, equal for all URLs of one server. */
static struct slice origin_of(CURLU *u, struct arena *a)
{
    CLEANUP(buf_fini) struct buf b = {0};
    char *scheme = NULL;
    char *host = NULL;
    char *port = NULL;

    if (url_part(u, CURLUPART_SCHEME, 0, &scheme) && url_part(u, CURLUPART_HOST, 0, &host)
        && url_part(u, CURLUPART_PORT, CURLU_DEFAULT_PORT, &port))
        buf_fmt(&b, "%s://%s:%s", scheme, host, port);
    curl_free(scheme);
    curl_free(host);
    curl_free(port);
    return arena_copy(a, buf_view(&b));
}

static const char *url_fault(CURLU *u, struct slice text)
{
    static const char *const schemes[] = {"http://", "https://"};
    bool is_web = false;

    for (size_t i = 0; i < COUNT_OF(schemes); i++)
        is_web |=
            text.len > strlen(schemes[i]) && memcmp(text.ptr, schemes[i], strlen(schemes[i])) == 0;
    if (!is_web || !u || curl_url_set(u, CURLUPART_URL, text.ptr, CURLU_PATH_AS_IS) != CURLUE_OK)
        return "a URL such as https://api.example.org/v1";
    if (has_part(u, CURLUPART_USER) || has_part(u, CURLUPART_PASSWORD))
        return "a URL without a user and a password: set a header with a secret";
    if (has_part(u, CURLUPART_QUERY) || has_part(u, CURLUPART_FRAGMENT))
        return "a URL without ? and #: set query beside it";
    return NULL;
}

static void read_url(struct reader *r, const struct json *j, const struct path *path, void *target)
{
    struct service_config *s = target;
    CURLU *u = curl_url();
    struct slice text = j->type == JSON_STRING ? j->text : SLICE("");
    const char *slashes = strstr(text.ptr, "://");
    const char *slash = slashes ? strchr(slashes + 3, '/') : NULL;
    const char *fault = url_fault(u, text);

    if (!fault && slash && !path_is_plain((struct slice){slash, strlen(slash)}))
        fault = "a path without spaces, \".\" and \"..\"";
    if (fault) {
        mistake_in(r, path, j, "%s", fault);
    } else {
        s->origin = origin_of(u, r->arena);
        while (text.len > 0 && text.ptr[text.len - 1] == '/')
            text.len--;
        s->url = arena_copy(r->arena, text);
        s->net.is_https = memcmp(s->url.ptr, "https", 5) == 0;
    }
    curl_url_cleanup(u);
}

static void read_proxy(struct reader *r, const struct json *j, const struct path *path,
                       void *target)
{
    static const char *const schemes[] = {"http://", "https://", "socks5h://"};
    bool ok = false;

    for (size_t i = 0; i < COUNT_OF(schemes); i++)
        ok |= j->type == JSON_STRING && j->text.len > strlen(schemes[i])
              && memcmp(j->text.ptr, schemes[i], strlen(schemes[i])) == 0;
    if (!ok || memchr(j->text.ptr, '@', j->text.len))
        mistake_in(r, path, j, "a URL such as http://proxy.example.org:3128, without a password");
    else
        read_plain_text(r, j, path, target);
}

static void read_factor(struct reader *r, const struct json *j, const struct path *path,
                        void *target)
{
    char text[32] = "";

    if (j->type == JSON_NUMBER && j->text.len < sizeof text)
        memcpy(text, j->text.ptr, j->text.len);
    double factor = strtod(text, NULL);
    if (!(factor >= 1 && factor <= 100))
        mistake_in(r, path, j, "a number from 1 to 100");
    else
        *(uint32_t *)target = (uint32_t)lround(factor * 1000);
}

static void read_retry_times(struct reader *r, const struct json *j, const struct path *path,
                             void *target)
{
    static const struct field fields[] = {
        NUMBER_FIELD("attempts", struct retry_times, attempts, 1, ATTEMPTS_MAX),
        FIELD("wait", read_length, offsetof(struct retry_times, wait_ms)),
        FIELD("factor", read_factor, offsetof(struct retry_times, factor_milli)),
        FIELD("max_wait", read_length, offsetof(struct retry_times, max_wait_ms)),
    };
    struct retry_times *t = target;

    read_object(r, j, path, fields, COUNT_OF(fields), t);
    if (t->max_wait_ms < t->wait_ms)
        t->max_wait_ms = t->wait_ms;
}

static void read_actions(struct reader *r, const struct json *j, const struct path *path,
                         void *target)
{
    struct action_config **end = target;

    if (j->type != JSON_OBJECT) {
        mistake_in(r, path, j, "an object: names of actions, and their requests");
        return;
    }
    for (const struct json *m = j->child; m; m = m->next) {
        struct path at = {path, m->key, 0};
        struct action_config *action = arena_alloc(r->arena, sizeof *action);
        struct json name = {.type = JSON_STRING, .text = m->key, .raw = m->key, .at = m->key_at};
        read_action(r, &name, &at, &action->name);
        read_http_step(r, m, &at, &action->form);
        *end = action;
        end = &action->next;
    }
}

static void read_service_networks(struct reader *r, const struct json *j, const struct path *path,
                                  void *target)
{
    read_networks(r, j, path, target);
}

/* A status in two lists would have two meanings. */
static void check_lists(struct reader *r, const struct json *j, const struct path *path,
                        const struct service_config *s)
{
    for (size_t i = 1; i < STATUS_LISTS; i++)
        for (size_t k = 0; k < i; k++)
            for (size_t w = 0; w < 10; w++)
                if (s->lists[i].bits[w] & s->lists[k].bits[w]) {
                    struct path at = {path, slice_of(status_list_names[i]), 0};
                    const struct json *list = json_get(j, status_list_names[i]);
                    mistake_in(r, &at, list ? list : j, "no status that is also in %s",
                               status_list_names[k]);
                    break;
                }
}

static void check_address(struct reader *r, const struct json *j, const struct path *path,
                          const struct service_config *s)
{
    struct path at = {path, SLICE("url"), 0};
    CURLU *u = curl_url();
    char *host = NULL;

    if (u && s->url.ptr && curl_url_set(u, CURLUPART_URL, s->url.ptr, 0) == CURLUE_OK
        && url_part(u, CURLUPART_HOST, 0, &host) && !s->net.proxy
        && !host_is_allowed(host, &s->net.networks))
        mistake_in(r, &at, json_get(j, "url"),
                   "a public address, or this one allowed: private: [%s]",
                   strcmp(host, "localhost") == 0 ? "127.0.0.1, \"::1\"" : "127.0.0.1, 10.0.0.0/8");
    curl_free(host);
    curl_url_cleanup(u);
}

static void read_service(struct reader *r, const struct json *j, const struct path *path,
                         struct service_config *s)
{
    static const struct field fields[] = {
        REQUIRED("url", read_url, 0),
        FIELD("headers", read_headers, offsetof(struct service_config, headers)),
        FIELD("query", read_settings, offsetof(struct service_config, query)),
        FIELD("tls", read_tls, offsetof(struct service_config, net)),
        FIELD("proxy", read_proxy, offsetof(struct service_config, net.proxy)),
        FIELD("http2", read_bool, offsetof(struct service_config, net.http2)),
        NUMBER_FIELD("places", struct service_config, places, 1, PLACES_MAX),
        NUMBER_FIELD("connections", struct service_config, connections, 1, CONNECTIONS_MAX),
        NUMBER_FIELD("redirects", struct service_config, redirects, 0, REDIRECTS_MAX),
        FIELD("connect_timeout", read_length,
              offsetof(struct service_config, net.connect_timeout_ms)),
        FIELD("timeout", read_length, offsetof(struct service_config, timeout_ms)),
        FIELD("retry", read_retry_times, offsetof(struct service_config, retry)),
        SIZE_FIELD("max_answer", struct service_config, net.answer_max, ANSWER_MAX_MAX,
                   "a size such as 64KiB or 1MiB, at most 64MiB"),
        FIELD("completed", read_statuses,
              offsetof(struct service_config, lists) + STATUS_COMPLETED * sizeof(struct statuses)),
        FIELD("permanent", read_statuses,
              offsetof(struct service_config, lists) + STATUS_PERMANENT * sizeof(struct statuses)),
        FIELD("retryable", read_statuses,
              offsetof(struct service_config, lists) + STATUS_RETRYABLE * sizeof(struct statuses)),
        FIELD("elsewhere", read_statuses,
              offsetof(struct service_config, lists) + STATUS_ELSEWHERE * sizeof(struct statuses)),
        FIELD("private", read_service_networks, offsetof(struct service_config, net.networks)),
        FIELD("actions", read_actions, offsetof(struct service_config, actions)),
    };

    read_object(r, j, path, fields, COUNT_OF(fields), s);
    if (j->type != JSON_OBJECT)
        return;
    check_lists(r, j, path, s);
    check_address(r, j, path, s);
}

static void read_services(struct reader *r, const struct json *j)
{
    const struct draft *d = draft_of(r);
    struct path services = {NULL, SLICE("services"), 0};
    struct service_config **end = &d->config->services;

    if (j->type != JSON_OBJECT || j->count == 0 || j->count > SERVICES_MAX) {
        mistake_in(r, &services, j, "an object: names of agents, and their services (1 to %d)",
                   SERVICES_MAX);
        return;
    }
    for (const struct json *m = j->child; m; m = m->next) {
        struct path at = {&services, m->key, 0};
        struct json name = {.type = JSON_STRING, .text = m->key, .raw = m->key, .at = m->key_at};
        struct service_config *s = arena_alloc(r->arena, sizeof *s);
        *s = (struct service_config){.net = {.user_agent = "intact-http/" INTACT_VERSION,
                                             .http2 = true,
                                             .connect_timeout_ms = 5000,
                                             .answer_max = ANSWER_MAX_DEFAULT,
                                             .networks = d->networks},
                                     .places = d->places,
                                     .connections = CONNECTIONS_DEFAULT,
                                     .retry = {3, 2000, 200, 5000}};
        read_name(r, &name, &at, &s->name);
        s->name = arena_copy(r->arena, s->name); /* keys are not NUL-terminated */
        read_service(r, m, &at, s);
        *end = s;
        end = &s->next;
        d->config->service_count++;
    }
}

/* ---- the whole text ---- */

static void read_all(struct reader *r, const struct json *root)
{
    static const struct field fields[] = {
        REQUIRED("intact_http", read_version, 0),
        NUMBER_FIELD("places", struct draft, places, 1, PLACES_MAX),
        FIELD("private", read_networks, offsetof(struct draft, networks)),
        FIELD("secrets", read_secrets, 0),
        REQUIRED("services", read_node, offsetof(struct draft, services)),
    };
    struct path at_root = {0};
    struct draft *d = draft_of(r);

    read_object(r, root, &at_root, fields, COUNT_OF(fields), d);
    if (d->services) /* last, because services refer to secrets */
        read_services(r, d->services);
}

enum err http_config_parse(struct slice text, enum source_format format, struct http_config **ret,
                           struct mistakes *m)
{
    struct http_config *c = calloc(1, sizeof *c);
    struct json *root = NULL;

    ASSERT(c);
    m->count = 0;
    struct draft d = {.config = c, .places = PLACES_DEFAULT};
    struct reader r = {.arena = &c->arena, .mistakes = m, .subject = &d.reading};
    enum err err =
        read_source(&r, arena_copy(&c->arena, text.ptr ? text : SLICE("")), format, &root);
    if (err == ERR_OK)
        read_all(&r, root);
    if (err == ERR_OK && m->count > 0)
        err = ERR_INVALID;
    if (err == ERR_OK) {
        *ret = c;
        return ERR_OK;
    }
    mistakes_sort(m);
    http_config_free(c);
    return err;
}

void http_config_free(struct http_config *c)
{
    if (!c)
        return;
    arena_fini(&c->arena);
    free(c);
}
