/*
 * Who sends a request: its token, its address as the audit has it, and the answers to a caller
 * without a good token or without the right. Refusals are logged, at a bounded rate.
 */

#include "api/caller.h"

#include "api/room.h"
#include "background/admin_token.h"
#include "background/helper.h"
#include "net/proof.h"
#include "node/access.h"
#include "node/node.h"

enum { PATH_TOLD = 200, FORWARDED_MAX = 200 }; /* of a request that is refused, in the log */

/* A client on the same machine is told where a token is, in a file for its owner alone. A client
 * that sends a challenge gets proof that this server knows that token, before it sends the token.
 * Requests that a proxy passes on come from elsewhere. */
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

/* A link with which somebody decides is not written down. */
static struct slice path_told(const struct http_request *r)
{
    static const char links[] = "/v1/approvals/";

    if (http_segment_count(r) == 3 && r->path.len > sizeof links
        && memcmp(r->path.ptr, links, sizeof links - 1) == 0)
        return SLICE("/v1/approvals/...");
    return slice_cut(r->path, PATH_TOLD);
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

/* The command line sends its first request without a token, to learn where it is: that is no
 * refusal. */
static bool looks_for_token(const struct http_request *r)
{
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

const struct bearer *caller_of(struct server *sv, struct http_request *r, const char **ret_why)
{
    if (http_adopted(r) != 0)
        return helper_bearer(http_adopted(r));
    if (http_header_count(r, "authorization") > 1) {
        *ret_why = "there is more than one Authorization field";
        return access_is_open(sv->access) ? access_who(sv->access, SLICE_NONE, 0, ret_why) : NULL;
    }
    return access_who(sv->access, http_header(r, "authorization"), server_now(sv), ret_why);
}

const struct bearer *caller_recheck(struct server *sv, struct http_request *r)
{
    const char *why = "";
    const struct bearer *b = caller_of(sv, r, &why);

    if (!b)
        answer_unauthenticated(sv, r, why);
    return b;
}
