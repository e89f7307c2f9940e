/* The result of a client's call: its status, body and headers, and an error text that says what
 * is wrong and what to do about it (reply.h). Makes no call. client.c and client_start.c fill it
 * in; intact_reply_* of <intact/client.h> read it. */

#include "libintact/reply.h"

#include "json/json.h"

void reply_clear(struct intact_reply *r)
{
    buf_clear(&r->body);
    buf_clear(&r->error);
    r->body.overflow = false;
    r->why[0] = 0;
    r->status = 0;
}

void reply_fini(struct intact_reply *r)
{
    curl_easy_cleanup(r->easy);
    r->easy = NULL;
    buf_fini(&r->body);
    buf_fini(&r->error);
}

/* One line for each mistake in a definition or an input. */
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
        return "\nSet INTACT_TOKEN or use --token-file; `intact token create` creates a token.";
    case 429:
    case 503:
        return "\nThe server is overloaded or shutting down; retry later.";
    default:
        return "";
    }
}

static void explain_refusal(struct intact_reply *r, const char *server)
{
    CLEANUP(arena_fini) struct arena a = {0};
    struct buf *e = &r->error;
    struct json *problem = NULL;
    enum err err = json_parse(&a, buf_view(&r->body), &problem, NULL);
    struct slice title = err == ERR_OK ? json_get_text(problem, "title") : SLICE_NONE;
    struct slice detail = err == ERR_OK ? json_get_text(problem, "detail") : SLICE_NONE;

    if (r->status == 401)
        title = SLICE("the server requires a token");
    else if (detail.len)
        title = SLICE_NONE; /* it is only the status in words */
    if (!title.len && !detail.len)
        buf_fmt(e, "%s answered with status %ld", server, r->status);
    else
        buf_fmt(e, "%.*s%s%.*s", SLICE_ARG(title), title.len && detail.len ? ": " : "",
                SLICE_ARG(detail));
    if (err == ERR_OK)
        explain_mistakes(e, json_get(problem, "errors"));
    buf_str(e, advice(r->status));
}

/* The remedy for a call without an answer. */
static const char *remedy(CURLcode code)
{
    switch ((int)code) { /* the codes that need a specific one */
    case CURLE_PEER_FAILED_VERIFICATION:
        return "The server answers, but its certificate is not trusted, or is for another name. "
               "--ca or INTACT_CA names a file of trusted certificates; the address must use a "
               "name of the certificate.";
    case CURLE_SSL_CACERT_BADFILE:
        return "--ca or INTACT_CA must name a readable file of certificates (PEM).";
    case CURLE_SSL_CONNECT_ERROR:
        return "The server answers, but the TLS handshake fails. If it uses plain HTTP, its "
               "address must begin with http://.";
    default:
        return "Is the server running? `intact serve` starts one; --server or INTACT_SERVER names "
               "another.";
    }
}

static enum intact_status conclude(struct intact_reply *r, const char *server, CURLcode code)
{
    if (code != CURLE_OK) {
        r->status = 0;
        buf_clear(&r->body);
        buf_fmt(&r->error, "cannot reach %s: %s.\n%s", server,
                r->why[0] ? r->why : curl_easy_strerror(code), remedy(code));
        return INTACT_UNREACHABLE;
    }
    if (r->status >= 200 && r->status < 300)
        return INTACT_OK;
    explain_refusal(r, server);
    return r->status == 429 || r->status >= 500 ? INTACT_BUSY : INTACT_REFUSED;
}

enum intact_status reply_conclude(struct intact_reply *r, const char *server, CURLcode code)
{
    r->result = conclude(r, server, code);
    return r->result;
}

enum intact_status intact_reply_status(const struct intact_reply *r)
{
    return r->result;
}

const char *intact_reply_body(const struct intact_reply *r)
{
    return buf_view(&r->body).ptr;
}

size_t intact_reply_body_size(const struct intact_reply *r)
{
    return r->body.len;
}

int intact_reply_http_status(const struct intact_reply *r)
{
    return (int)r->status;
}

const char *intact_reply_error(const struct intact_reply *r)
{
    return buf_view(&r->error).ptr;
}

const char *intact_reply_header(const struct intact_reply *r, const char *name)
{
    struct curl_header *h = NULL;

    if (r->status == 0 || curl_easy_header(r->easy, name, 0, CURLH_HEADER, -1, &h) != CURLHE_OK)
        return NULL;
    return h->value;
}
