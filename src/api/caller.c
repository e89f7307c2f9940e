/*
 * The sender of a request: its token, its address as the audit has it, and the answers to a caller
 * without a valid token or the needed role. Refusals are logged, at a bounded rate.
 */

#include "api/caller.h"

#include "api/room.h"
#include "background/admin_token.h"
#include "background/helper.h"
#include "net/proof.h"
#include "node/access.h"
#include "node/node.h"
#include "node/sessions.h"

enum { PATH_TOLD = 200, FORWARDED_MAX = 200 }; /* of a request that is refused, in the log */

/* A client on the same machine gets the name of the file with a token, which only its owner can
 * read. A client that sends a challenge gets proof that this server knows that token, before it
 * sends the token. Requests that a proxy passes on come from elsewhere. */
static void write_token_hints(struct server *sv, struct http_request *r, struct buf *headers)
{
    const char *file = access_file(sv->access);

    if (sv->config.behind_proxy || !http_peer_is_loopback(r) || http_header(r, "forwarded").ptr
        || http_header(r, "x-forwarded-for").ptr || http_header(r, "via").ptr)
        return;
    for (const char *c = file; *c; c++)
        if (*c < ' ' || *c > '~')
            return; /* it does not fit into a header */
    buf_fmt(headers, "Intact-Token-File: %s\r\n", file);
    struct slice challenge = http_header(r, PROOF_CHALLENGE_HEADER);
    if (!proof_challenge_is_sound(challenge))
        return;
    char proof[PROOF_SIZE + 1];
    if (admin_token_prove(sv, challenge, http_local_port(r), proof))
        buf_fmt(headers, PROOF_HEADER ": %s\r\n", proof);
}

/* How far it goes without a token, that a client may have put into it by mistake. */
static struct slice before_token(struct slice path)
{
    const char *token = memmem(path.ptr, path.len, "intact_", strlen("intact_"));

    return token ? (struct slice){path.ptr, (size_t)(token - path.ptr)} : path;
}

static bool begins_with(struct slice s, const char *prefix)
{
    return s.len > strlen(prefix) && memcmp(s.ptr, prefix, strlen(prefix)) == 0;
}

/* What lets in whoever has it is not written down: the link of an approval, the URL of a signal,
 * the token of an attempt, and any token. */
static struct slice path_told(const struct http_request *r)
{
    if (begins_with(r->path, "/v1/signals/"))
        return SLICE("/v1/signals/...");
    if (begins_with(r->path, "/v1/attempts/"))
        return SLICE("/v1/attempts/...");
    if (begins_with(r->path, "/v1/approvals/") && http_segment_count(r) <= 4)
        return SLICE("/v1/approvals/...");
    return slice_cut(before_token(r->path), PATH_TOLD);
}

/* Refusals may be attempts to break in. Their number is bounded: more lines per minute would add
 * nothing. Behind a proxy the client's address is logged as the proxy reports it. */
static void log_refused(struct server *sv, const struct http_request *r, int status,
                        struct slice token, const char *why)
{
    CLEANUP(buf_fini) struct buf b = {0};
    uint64_t left_out = 0;

    if (!log_burst_has_room(&sv->api->refusals[token.ptr != NULL], server_now(sv), &left_out))
        return;
    buf_fmt(&b, "status=%d address=%s", status, http_peer_of(r).text);
    if (sv->config.behind_proxy && http_header(r, "x-forwarded-for").ptr) {
        buf_str(&b, " forwarded_for=");
        log_word(&b, slice_cut(http_header(r, "x-forwarded-for"), FORWARDED_MAX));
    }
    if (token.ptr)
        buf_fmt(&b, " token=%.*s", SLICE_ARG(token));
    buf_str(&b, " method=");
    log_word(&b, slice_cut(r->method, PATH_TOLD));
    buf_str(&b, " path=");
    log_word(&b, path_told(r));
    buf_str(&b, " reason=");
    log_word(&b, slice_of(why));
    log_line(LOG_WARN, "event=request_refused %s left_out=%" PRIu64, b.ptr, left_out);
}

void caller_log_forbidden(struct server *sv, const struct http_request *r, struct slice token,
                          const char *why)
{
    log_refused(sv, r, 403, token, why);
}

void caller_address_write(const struct server *sv, const struct http_request *r,
                          char ret[ADDRESS_SIZE])
{
    const struct http_peer peer = http_peer_of(r);
    struct slice from = SLICE_NONE;

    if (sv->config.behind_proxy)
        from = slice_cut(http_header(r, "x-forwarded-for"), FORWARDED_MAX);
    (void)snprintf(ret, ADDRESS_SIZE, "%s%s%.*s", peer.text, from.ptr ? ADDRESS_FOR : "",
                   SLICE_ARG(from)); /* always fits */
    for (char *c = ret; *c; c++)
        if (*c < ' ' || *c > '~')
            *c = '?';
}

struct slice caller_address(const struct server *sv, const struct http_request *r, struct arena *a)
{
    char text[ADDRESS_SIZE];

    caller_address_write(sv, r, text);
    return arena_copy(a, slice_of(text));
}

/* The command line sends its first request without a token, to learn where it is, and the console
 * one without a session, to learn whether somebody has signed in: these are no refusals. */
static bool looks_for_token(const struct http_request *r)
{
    if (slice_is(r->path, "/v1/session") && slice_is(r->method, "GET")
        && !http_header(r, "authorization").ptr && !http_header(r, "cookie").ptr)
        return true;
    return http_peer_is_loopback(r) && !http_header(r, "authorization").ptr
           && proof_challenge_is_sound(http_header(r, PROOF_CHALLENGE_HEADER));
}

void answer_unauthenticated(struct server *sv, struct http_request *r, const char *why)
{
    CLEANUP(buf_fini) struct buf headers = {0};

    if (!looks_for_token(r))
        log_refused(sv, r, 401, SLICE_NONE, why);
    buf_str(&headers, "WWW-Authenticate: Bearer realm=\"intact\"\r\n");
    write_token_hints(sv, r, &headers);
    http_problem_with(r, 401, "unauthenticated", headers.ptr, "%s", why);
}

/* ---- sessions ---- */

bool caller_is_secure(const struct server *sv, const struct http_request *r)
{
    static const char secure[] = "https://";
    struct slice origin = http_header(r, "origin");

    if (http_is_secure(sv->http))
        return true;
    if (!sv->config.behind_proxy)
        return false;
    return http_slice_is_like(http_header(r, "x-forwarded-proto"), "https")
           || (origin.len > sizeof secure && memcmp(origin.ptr, secure, sizeof secure - 1) == 0);
}

/* NONE: there is no cookie, or it does not matter. */
static struct slice cookie_of(struct server *sv, struct http_request *r, bool *ret_twice)
{
    enum cookie_kind kind = caller_is_secure(sv, r)   ? COOKIE_SECURE
                            : sv->config.behind_proxy ? COOKIE_EITHER
                                                      : COOKIE_PLAIN;

    *ret_twice = false;
    if (access_is_open(sv->access) || http_adopted(r) != 0 || http_header(r, "authorization").ptr)
        return SLICE_NONE;
    return session_cookie(r, kind, ret_twice);
}

const struct session_row *caller_session(struct server *sv, struct http_request *r,
                                         const char **ret_why)
{
    unsigned char hash[TOKEN_HASH_SIZE];
    bool twice = false;
    struct slice secret = cookie_of(sv, r, &twice);

    if (!secret.ptr)
        return NULL;
    *ret_why = twice ? "there is more than one cookie of a session"
                     : "the session is unknown: it was ended, or has expired; sign in again";
    if (twice || !secret_hash(sv->access, secret, hash))
        return NULL;
    const struct session_row *row = sessions_find(sv->sessions, hash);
    return row && !row->is_code ? row : NULL;
}

static bool has_cookie(struct server *sv, struct http_request *r)
{
    bool twice = false;

    return cookie_of(sv, r, &twice).ptr != NULL;
}

bool caller_may_be_new(struct server *sv, struct http_request *r)
{
    unsigned char hash[TOKEN_HASH_SIZE];
    bool twice = false;
    struct slice secret = cookie_of(sv, r, &twice);

    if (secret.ptr)
        return !twice && secret_hash(sv->access, secret, hash)
               && !sessions_find(sv->sessions, hash);
    return access_may_be_new(sv->access, http_header(r, "authorization"));
}

/* ---- who it is ---- */

const struct bearer *caller_of(struct server *sv, struct http_request *r, const char **ret_why)
{
    struct slice authorization = http_header(r, "authorization");

    r->is_by_cookie = false;
    if (http_adopted(r) != 0)
        return helper_bearer(http_adopted(r));
    if (http_header_count(r, "authorization") > 1) {
        *ret_why = "there is more than one Authorization field";
        return access_is_open(sv->access) ? access_who(sv->access, SLICE_NONE, 0, ret_why) : NULL;
    }
    r->is_by_cookie = !authorization.ptr && has_cookie(sv, r);
    if (r->is_by_cookie) {
        const struct session_row *row = caller_session(sv, r, ret_why);
        return row ? session_bearer(row, sv->access, server_now(sv), ret_why) : NULL;
    }
    return access_who(sv->access, authorization, server_now(sv), ret_why);
}

const struct bearer *caller_recheck(struct server *sv, struct http_request *r)
{
    const char *why = "";
    const struct bearer *b = caller_of(sv, r, &why);

    if (!b)
        answer_unauthenticated(sv, r, why);
    return b;
}
