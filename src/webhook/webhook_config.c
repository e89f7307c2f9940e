/* Reads the section `webhooks` of the configuration, and finds the target for a URL: see
 * webhook_config.h. */
#include "webhook/webhook_config.h"

#include <strings.h>

#include "net/net_settings.h"

enum { ANSWER_READ_MAX = 16 << 10, NAMED_MAX = 5 };

/* ---- values ---- */

static void read_pattern(struct reader *r, const struct json *j, const struct path *path,
                         void *target)
{
    struct webhook_target *t = target;
    struct slice text = j->type == JSON_STRING ? arena_copy(r->arena, j->text) : SLICE_NONE;
    const char *fault = url_parse(text, true, &t->pattern);

    if (fault) {
        mistake_in(r, path, j, "%s", fault);
        return;
    }
    t->url = text;
    t->net.is_https = t->pattern.is_https;
}

static void read_signers(struct reader *r, const struct json *j, const struct path *path,
                         void *target)
{
    struct webhook_target *t = target;
    struct path at = {path, SLICE_NONE, 0};

    if (j->type != JSON_ARRAY) {
        read_secret_place(r, j, path, &t->secrets[0]);
        t->secret_count = 1;
        return;
    }
    if (j->count == 0 || j->count > WEBHOOK_SECRETS_MAX) {
        mistake_in(r, path, j, "where the secret is kept, or an array of 1 to %d such places",
                   WEBHOOK_SECRETS_MAX);
        return;
    }
    for (const struct json *m = j->child; m; m = m->next, at.index++)
        read_secret_place(r, m, &at, &t->secrets[t->secret_count++]);
}

/* ---- headers ---- */

static const char *name_fault(struct slice name)
{
    static const char *const taken[] = {"host",       "content-length", "transfer-encoding",
                                        "connection", "keep-alive",     "upgrade",
                                        "te",         "trailer",        "expect",
                                        "user-agent", "content-type",   "accept-encoding"};

    if (name.len == 0 || name.len > 128)
        return "a name of 1 to 128 characters";
    for (size_t i = 0; i < name.len; i++) {
        char c = name.ptr[i];
        bool is_letter = (c | 0x20) >= 'a' && (c | 0x20) <= 'z';
        if (!is_letter && !(c >= '0' && c <= '9') && c != '-' && c != '_')
            return "a name of letters, digits, - and _";
    }
    if (name.len >= 8 && strncasecmp(name.ptr, "webhook-", 8) == 0)
        return "a header that is not set already";
    for (size_t i = 0; i < COUNT_OF(taken); i++)
        if (name.len == strlen(taken[i]) && strncasecmp(name.ptr, taken[i], name.len) == 0)
            return "a header that is not set already";
    return NULL;
}

static void read_header(struct reader *r, const struct json *m, const struct path *path,
                        struct webhook_header *h)
{
    const char *fault = name_fault(m->key);

    h->name = arena_copy(r->arena, m->key);
    if (fault)
        mistake_at(r, path, m->key_at, "a name that cannot be set", "%s", fault);
    if (m->type == JSON_OBJECT)
        read_secret_place(r, m, path, &h->kept);
    else if (m->type == JSON_STRING && m->text.len > 0 && header_value_is_sound(m->text))
        h->value = arena_copy(r->arena, m->text);
    else
        mistake_in(r, path, m, "a text of one line, or {file: PATH}, {env: NAME}");
}

static void read_headers(struct reader *r, const struct json *j, const struct path *path,
                         void *target)
{
    struct webhook_header **end = target;

    if (j->type != JSON_OBJECT || j->count > WEBHOOK_HEADERS_MAX) {
        mistake_in(r, path, j, "an object: names and their values, at most %d",
                   WEBHOOK_HEADERS_MAX);
        return;
    }
    for (const struct json *m = j->child; m; m = m->next) {
        struct path at = {path, m->key, 0};
        struct webhook_header *h = arena_alloc(r->arena, sizeof *h);
        read_header(r, m, &at, h);
        *end = h;
        end = &h->next;
    }
}

/* ---- targets ---- */

static void check_address(struct reader *r, const struct json *j, const struct path *path,
                          const struct webhook_target *t)
{
    CLEANUP(buf_fini) struct buf host = {0};
    struct path at = {path, SLICE("url"), 0};

    buf_slice(&host, t->pattern.host);
    if (host.len > 0 && !host_is_allowed(host.ptr, &t->net.networks))
        mistake_in(r, &at, json_get(j, "url"),
                   "a public address, or this one allowed: private: [127.0.0.1, 10.0.0.0/8]");
}

static void read_target(struct reader *r, const struct json *j, const struct path *path,
                        struct webhook_target *t)
{
    static const struct field fields[] = {
        REQUIRED("url", read_pattern, 0),
        REQUIRED("secret", read_signers, 0),
        FIELD("headers", read_headers, offsetof(struct webhook_target, headers)),
        FIELD("tls", read_tls, offsetof(struct webhook_target, net)),
        FIELD("http2", read_bool, offsetof(struct webhook_target, net.http2)),
        FIELD("private", read_networks, offsetof(struct webhook_target, net.networks)),
        NUMBER_FIELD("batch", struct webhook_target, batch, 1, WEBHOOK_BATCH_MAX),
        NUMBER_FIELD("connections", struct webhook_target, connections, 1, WEBHOOK_CONNECTIONS_MAX),
        FIELD("connect_timeout", read_length,
              offsetof(struct webhook_target, net.connect_timeout_ms)),
        FIELD("timeout", read_length, offsetof(struct webhook_target, timeout_ms)),
    };

    *t = (struct webhook_target){.net = {.user_agent = "intact-webhook/" INTACT_VERSION,
                                         .http2 = true,
                                         .connect_timeout_ms = 5000,
                                         .answer_max = ANSWER_READ_MAX},
                                 .batch = 1,
                                 .connections = 8,
                                 .timeout_ms = 10000};
    read_object(r, j, path, fields, COUNT_OF(fields), t);
    if (j->type == JSON_OBJECT)
        check_address(r, j, path, t);
}

void read_webhooks(struct reader *r, const struct json *j, const struct path *path, void *target)
{
    struct webhook_config *c = target;
    struct webhook_target **end = &c->targets;
    struct path at = {path, SLICE_NONE, 0};

    if (j->type != JSON_ARRAY || j->count > WEBHOOK_TARGETS_MAX) {
        mistake_in(r, path, j, "an array of targets such as {url: ..., secret: ...}, at most %d",
                   WEBHOOK_TARGETS_MAX);
        return;
    }
    for (const struct json *m = j->child; m; m = m->next, at.index++) {
        struct webhook_target *t = arena_alloc(r->arena, sizeof *t);
        read_target(r, m, &at, t);
        *end = t;
        end = &t->next;
        c->count++;
    }
}

/* ---- finding a target ---- */

static void list_targets(const struct webhook_config *c, struct buf *b)
{
    size_t told = 0;

    for (const struct webhook_target *t = c->targets; t && told < NAMED_MAX; t = t->next, told++)
        buf_fmt(b, "%s%.*s", told ? ", " : "", SLICE_ARG(slice_cut(t->url, 60)));
    if (c->count > told)
        buf_fmt(b, " and %zu more", c->count - told);
}

const struct webhook_target *webhook_target_find(const struct webhook_config *c, struct slice url,
                                                 struct error *e)
{
    CLEANUP(buf_fini) struct buf told = {0};
    CLEANUP(buf_fini) struct buf host = {0};
    struct url u;
    const char *fault = url_parse(url, false, &u);

    if (fault) {
        (void)error_set(e, ERR_INVALID, "expected %s", fault);
        return NULL;
    }
    buf_slice(&host, u.host);
    for (const struct webhook_target *t = c->targets; t; t = t->next) {
        if (!url_is_below(&u, &t->pattern))
            continue;
        if (host_is_allowed(host.ptr, &t->net.networks))
            return t;
        (void)error_set(e, ERR_INVALID,
                        "leads to an address that is not public, and that `private` of its target "
                        "does not name (docs/webhooks.md)");
        return NULL;
    }
    list_targets(c, &told);
    (void)error_set(e, ERR_INVALID, "%s%s%s (docs/webhooks.md)",
                    c->count ? "is below none of the URLs of `webhooks` in the server's "
                               "configuration: "
                             : "no URL may be called",
                    c->count ? buf_view(&told).ptr : "",
                    c->count ? "" : ": name it in `webhooks` of the server's configuration");
    return NULL;
}
