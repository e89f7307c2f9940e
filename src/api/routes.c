/*
 * The table of routes, and the way of a request to its handler: headers, token, quota, role, and
 * its turn. Handlers may rely on server.caller and api.bearer until they return.
 */

#include "api/routes.h"

#include "api/approvals.h"
#include "api/body.h"
#include "api/caller.h"
#include "api/handlers.h"
#include "api/pages.h"
#include "api/room.h"
#include "api/sessions.h"
#include "api/signals.h"
#include "api/tasks.h"
#include "api/work.h"
#include "background/unknown_tokens.h"
#include "dispatch/token.h"
#include "node/access.h"
#include "node/door.h"
#include "node/fair.h"
#include "node/installation.h"
#include "node/node.h"
#include "node/quota.h"
#include "node/strict.h"

struct route {
    const char *method;
    const char *path; /* "*" matches one segment */
    void (*serve)(struct server *sv, struct http_request *r);
    unsigned may; /* enum role: any of these may use it; an admin may use all */
    unsigned how; /* of the next */
};

enum {
    QUERY = 1,     /* its handler checks the query, or takes any; others have no parameters */
    SCHEDULER = 2, /* only a node with that role can do it */
    BODY = 4,      /* its handler parses a large body itself */
    DEFINITION = BODY | 8, /* the body is one, and is compiled on a thread ... */
    LATER = 16,            /* ... when it has nothing else to do */
    ENTRIES = 32,          /* each entry of its body is judged alone: body_json_of_list() */
};

/* The roles for one task (which a grant may still hide: grant_sees), for lists of tasks, for
 * definitions, and for all else. */
enum {
    OWN = ROLE_SUBMIT | ROLE_SUBMIT_TO,
    SEE = OWN | ROLE_READ | ROLE_READ_SOME,
    LIST = ROLE_READ | ROLE_READ_SOME,
    KNOW = SEE | ROLE_DEFINE,
    LIMIT = ROLE_DEFINE | ROLE_REPAIR,
};

static void task_retry(struct server *sv, struct http_request *r)
{
    task_operate(sv, r, ASK_RETRY);
}

static void task_skip(struct server *sv, struct http_request *r)
{
    task_operate(sv, r, ASK_SKIP);
}

static void task_undo(struct server *sv, struct http_request *r)
{
    task_operate(sv, r, ASK_UNDO);
}

static void task_cancel(struct server *sv, struct http_request *r)
{
    task_operate(sv, r, ASK_CANCEL);
}

static void task_pause(struct server *sv, struct http_request *r)
{
    task_operate(sv, r, ASK_PAUSE);
}

static void task_resume(struct server *sv, struct http_request *r)
{
    task_operate(sv, r, ASK_RESUME);
}

static void task_correct(struct server *sv, struct http_request *r)
{
    task_operate(sv, r, ASK_CORRECT);
}

static void task_supply(struct server *sv, struct http_request *r)
{
    task_operate(sv, r, ASK_SUPPLY);
}

static void task_resolve(struct server *sv, struct http_request *r)
{
    task_operate(sv, r, ASK_RESOLVE);
}

static void task_close(struct server *sv, struct http_request *r)
{
    task_operate(sv, r, ASK_CLOSE);
}

static void task_reopen(struct server *sv, struct http_request *r)
{
    task_operate(sv, r, ASK_REOPEN);
}

static const struct route routes[] = {
    {"POST", "v1/agents/*/work", work_post, ROLE_AGENT, SCHEDULER | ENTRIES},
    {"POST", "v1/agents/*/heartbeats", heartbeats_post, ROLE_AGENT, SCHEDULER | ENTRIES},
    /* The token of the attempt is the permission. */
    {"POST", "v1/attempts/*", attempt_post, ROLE_ANYBODY, SCHEDULER},
    {"POST", "v1/tasks", tasks_post, OWN, QUERY | SCHEDULER | BODY},
    {"GET", "v1/tasks/*", task_get, SEE, QUERY},
    {"GET", "v1/tasks/*/events", task_events_get, SEE, 0},
    {"GET", "v1/tasks/*/why", task_why_get, SEE, 0},
    {"GET", "v1/events", events_get, LIST, QUERY},
    {"GET", "v1/tasks", tasks_list, LIST, QUERY},
    {"POST", "v1/tasks/*/retry", task_retry, ROLE_REPAIR, SCHEDULER},
    {"POST", "v1/tasks/*/skip", task_skip, ROLE_REPAIR, SCHEDULER},
    {"POST", "v1/tasks/*/undo", task_undo, ROLE_REPAIR, SCHEDULER},
    {"POST", "v1/tasks/*/pause", task_pause, ROLE_REPAIR, SCHEDULER},
    {"POST", "v1/tasks/*/resume", task_resume, ROLE_REPAIR, SCHEDULER},
    {"POST", "v1/tasks/*/correct", task_correct, ROLE_REPAIR, SCHEDULER},
    {"POST", "v1/tasks/*/supply", task_supply, ROLE_REPAIR, SCHEDULER},
    {"POST", "v1/tasks/*/resolve", task_resolve, ROLE_REPAIR, SCHEDULER},
    {"POST", "v1/tasks/*/close", task_close, ROLE_REPAIR, SCHEDULER},
    {"POST", "v1/tasks/*/reopen", task_reopen, ROLE_REPAIR, SCHEDULER},
    {"POST", "v1/tasks/*/cancel", task_cancel, OWN | ROLE_REPAIR, SCHEDULER},
    {"GET", "v1/tasks/*/items", task_items_get, SEE, QUERY},
    {"GET", "v1/tasks/*/signals", task_signals_get, SEE, 0},
    {"POST", "v1/tasks/*/signals/*", task_signal_post, OWN | ROLE_REPAIR, SCHEDULER | BODY},
    {"POST", "v1/tasks/*/signals/*/drop", task_signal_drop, ROLE_REPAIR, SCHEDULER},
    {"POST", "v1/signals", signals_post, ROLE_REPAIR | ROLE_SIGNAL, SCHEDULER},
    /* The token in the path says who may. */
    {"POST", "v1/signals/*", signal_url_post, ROLE_ANYBODY, SCHEDULER | BODY},
    {"GET", "v1/approvals", approvals_list, ROLE_APPROVE | ROLE_LINK | ROLE_READ, QUERY},
    {"POST", "v1/approvals/*/*/approve", approval_approve, ROLE_APPROVE, SCHEDULER},
    {"POST", "v1/approvals/*/*/reject", approval_reject, ROLE_APPROVE, SCHEDULER},
    {"POST", "v1/approvals/*/*/link", approval_link_make, ROLE_APPROVE | ROLE_LINK, 0},
    /* The link says who may. Programs that pass links on add parameters of their own. */
    {"GET", "v1/approvals/*", approval_link_get, ROLE_ANYBODY, QUERY},
    {"POST", "v1/approvals/*", approval_link_post, ROLE_ANYBODY, QUERY | SCHEDULER | BODY},
    {"GET", "v1/submissions", submissions_get, ROLE_READ, QUERY},
    {"POST", "v1/submissions/retry", submissions_retry, ROLE_REPAIR, 0},
    {"POST", "v1/submissions/drop", submissions_drop, ROLE_REPAIR, 0},
    {"POST", "v1/operations", operations_post, ROLE_REPAIR, 0},
    {"GET", "v1/operations", operations_list, ROLE_READ, QUERY},
    {"GET", "v1/operations/*", operation_get, ROLE_READ, 0},
    {"POST", "v1/operations/*/stop", operation_stop, ROLE_REPAIR, 0},
    {"POST", "v1/operations/*/continue", operation_continue, ROLE_REPAIR, 0},
    {"PUT", "v1/schedules/*", schedule_put, ROLE_DEFINE, BODY},
    {"GET", "v1/schedules", schedules_list, ROLE_READ | ROLE_DEFINE, QUERY},
    {"GET", "v1/schedules/*", schedule_get, ROLE_READ | ROLE_DEFINE, 0},
    {"GET", "v1/schedules/*/versions/*", schedule_get, ROLE_READ | ROLE_DEFINE, 0},
    {"GET", "v1/schedules/*/next", schedule_next_get, ROLE_READ | ROLE_DEFINE, QUERY},
    {"DELETE", "v1/schedules/*", schedule_delete, ROLE_DEFINE, 0},
    {"POST", "v1/schedules/*/pause", schedule_pause, ROLE_REPAIR, 0},
    {"POST", "v1/schedules/*/resume", schedule_resume, ROLE_REPAIR, 0},
    {"POST", "v1/schedules/*/run", schedule_run, ROLE_REPAIR, 0},
    {"POST", "v1/schedules/*/backfill", schedule_backfill, ROLE_REPAIR, 0},
    {"POST", "v1/submissions/refused", submissions_put_refused, ROLE_SUBMIT, 0},
    {"PUT", "v1/workflows/*", workflow_put, ROLE_DEFINE, DEFINITION},
    {"POST", "v1/workflows", workflow_put, ROLE_DEFINE, DEFINITION},
    {"GET", "v1/workflows/*/versions/*", workflow_get, KNOW, 0},
    {"GET", "v1/workflows/*", workflow_get, KNOW, 0},
    {"GET", "v1/workflows", workflows_list, KNOW, 0},
    {"POST", "v1/validate", validate_post, KNOW, DEFINITION | LATER},
    {"GET", "v1/agents", agents_get, ROLE_READ, 0},
    {"GET", "v1/agents/*", agent_get, ROLE_READ, 0},
    {"PUT", "v1/agents/*", agent_put, LIMIT, 0},
    {"DELETE", "v1/agents/*", agent_delete, LIMIT, 0},
    {"POST", "v1/agents/*/breaker", breaker_post, ROLE_REPAIR, 0},
    {"GET", "v1/nodes", nodes_get, ROLE_BEARER, 0},
    {"GET", "v1/stats", stats_get, ROLE_READ, 0},
    {"GET", "v1/overview", overview_get, ROLE_READ, 0},
    {"GET", "v1/clock", clock_get, ROLE_ADMIN, 0},
    {"POST", "v1/clock/advance", clock_advance, ROLE_ADMIN, 0},
    {"GET", "v1/alerts", alerts_list, ROLE_READ, QUERY},
    {"GET", "v1/locks", locks_list, ROLE_READ, QUERY},
    {"POST", "v1/alerts/*/acknowledge", alert_acknowledge, ROLE_REPAIR, 0},
    {"POST", "v1/alerts/test", alert_test, ROLE_REPAIR, 0},
    {"GET", "v1/audit", audit_get, ROLE_REPAIR, QUERY},
    {"GET", "v1/outbox", outbox_get, ROLE_READ, QUERY},
    {"GET", "v1/targets", targets_get, ROLE_READ, 0},
    {"POST", "v1/outbox/retry", outbox_retry_post, ROLE_REPAIR, 0},
    {"POST", "v1/outbox/drop", outbox_drop_post, ROLE_REPAIR, 0},
    {"POST", "v1/backup", backup_post, ROLE_ADMIN, 0},
    {"POST", "v1/retire", retire_post, ROLE_ADMIN, 0},
    {"GET", "v1/tokens", tokens_list, ROLE_ADMIN, 0},
    {"POST", "v1/tokens", token_post, ROLE_ADMIN, 0},
    {"POST", "v1/tokens/*/rotate", token_rotate, ROLE_ADMIN, 0},
    {"PUT", "v1/tokens/*", token_put, ROLE_ADMIN, 0},
    {"DELETE", "v1/tokens/*", token_delete, ROLE_ADMIN, 0},
    /* With a token, or with a code that stands for one. */
    {"POST", "v1/session", session_post, ROLE_ANYBODY, 0},
    {"GET", "v1/session", session_get, ROLE_BEARER, 0},
    {"DELETE", "v1/session", session_end, ROLE_BEARER, 0},
    {"POST", "v1/session/codes", session_code_post, ROLE_BEARER, 0},
    {"GET", "v1/sessions", sessions_list_get, ROLE_BEARER, 0},
    {"DELETE", "v1/sessions/*", session_delete, ROLE_BEARER, 0},
    {"GET", "metrics", metrics_get, ROLE_READ, 0},
    {"GET", "healthz", healthz_get, ROLE_ANYBODY, QUERY},
    {"GET", "readyz", readyz_get, ROLE_ANYBODY, QUERY},
};

_Static_assert(COUNT_OF(routes) <= ROUTE_PAGES, "the last numbers are of what is not in the table");

void route_label(struct buf *b, unsigned number)
{
    if (number < COUNT_OF(routes))
        buf_fmt(b, "method=\"%s\",route=\"/%s\"", routes[number].method, routes[number].path);
    else if (number == ROUTE_PAGES)
        buf_str(b, "method=\"GET\",route=\"console\"");
    else
        buf_str(b, "method=\"any\",route=\"none\"");
}

static bool path_matches(const char *pattern, struct slice path)
{
    const char *p = path.ptr;
    const char *end = p + path.len;

    if (p < end && *p == '/')
        p++;
    while (*pattern) {
        if (*pattern == '*') {
            const char *from = p;
            while (p < end && *p != '/')
                p++;
            if (p == from)
                return false;
            pattern++;
        } else if (p < end && *p == *pattern) {
            p++;
            pattern++;
        } else {
            return false;
        }
    }
    return p == end;
}

static bool method_matches(const struct route *rt, struct slice method)
{
    return slice_is(method, rt->method)
           || (slice_is(method, "HEAD") && strcmp(rt->method, "GET") == 0);
}

/* RFC 9110, 15.5.6: lists what is possible. */
static void answer_wrong_method(struct http_request *r)
{
    CLEANUP(buf_fini) struct buf allow = {0};

    buf_str(&allow, "Allow: ");
    size_t start = allow.len;
    for (size_t i = 0; i < COUNT_OF(routes); i++)
        if (path_matches(routes[i].path, r->path))
            buf_fmt(&allow, "%s%s%s", allow.len > start ? ", " : "", routes[i].method,
                    strcmp(routes[i].method, "GET") == 0 ? ", HEAD" : "");
    buf_str(&allow, "\r\n");
    http_problem_with(r, 405, "method", allow.ptr, "%.*s is not possible on %.*s",
                      SLICE_ARG(r->method), SLICE_ARG(r->path));
}

static void answer_forbidden(struct server *sv, struct http_request *r, const struct bearer *b,
                             const struct route *rt)
{
    CLEANUP(buf_fini) struct buf wanted = {0};
    CLEANUP(buf_fini) struct buf why = {0};

    role_write(&wanted, rt->may, http_segment(r, 2));
    buf_fmt(&why, "it requires the role %s", wanted.ptr);
    caller_log_forbidden(sv, r, b->name, why.ptr);
    http_problem(r, 403, "forbidden", "the token \"%.*s\" may not do this: it requires the role %s",
                 SLICE_ARG(b->name), wanted.ptr);
}

/* A request's route and its token (NULL: the route needs none). */
struct passage {
    const struct route *route;
    const struct bearer *bearer;
    bool path_is_known;
};

static bool is_within_quota(struct server *sv, struct http_request *r, const struct passage *p)
{
    const struct bearer *b = p->bearer;

    if (b->inner)
        return true;
    ASSERT(!r->account);
    r->account =
        quota_enter(sv->quotas, b, r, server_now(sv), p->route && p->route->serve == work_post);
    return r->account != NULL;
}

static const struct route *route_of(struct http_request *r, bool *ret_path_is_known)
{
    const struct route *rt = NULL;

    for (size_t i = 0; !rt && i < COUNT_OF(routes); i++) {
        ASSERT(routes[i].may != 0);
        if (!path_matches(routes[i].path, r->path))
            continue;
        *ret_path_is_known = true;
        if (method_matches(&routes[i], r->method)) {
            rt = &routes[i];
            r->route = (unsigned)i;
        }
    }
    return rt;
}

static void route_again(struct server *sv, struct http_request *r);

static bool method_reads(const struct http_request *r)
{
    return slice_is(r->method, "GET") || slice_is(r->method, "HEAD");
}

/* A browser adds the cookie to whatever a page of this site sends, but only a page of the console
 * adds a field of its own (a page of another site would have to ask first, and is refused). */
static bool is_by_page(const struct http_request *r)
{
    return !r->is_by_cookie || method_reads(r) || slice_is(http_header(r, "intact-console"), "1");
}

/* Clients without a token learn nothing of what exists: only a good token gets a 404 or 405. */
static bool is_let_in(struct server *sv, struct http_request *r, const struct passage *p,
                      const char *why)
{
    const struct route *rt = p->route;
    bool anybody = rt && rt->may == ROLE_ANYBODY;

    if (!p->bearer && !anybody)
        answer_unauthenticated(sv, r, why);
    else if (p->bearer && !is_within_quota(sv, r, p))
        return false; /* answered. NOLINT(bugprone-branch-clone): asked in this order */
    else if (!p->path_is_known)
        http_problem(r, 404, "no-route", "there is nothing at %.*s", SLICE_ARG(r->path));
    else if (!rt)
        answer_wrong_method(r);
    else if (p->bearer && !is_by_page(r))
        http_problem(
            r, 403, "no-console-header",
            "a change with the cookie of a session needs the header \"Intact-Console: 1\", "
            "which pages of other sites cannot send");
    else if (p->bearer && !access_may(p->bearer, rt->may, http_segment(r, 2)))
        answer_forbidden(sv, r, p->bearer, rt);
    else if (!(rt->how & QUERY) && !parameters_ok(r, NAMES(NULL)))
        return false; /* answered */
    else if (rt->how & SCHEDULER && !(sv->config.roles & NODE_SCHEDULER))
        nodes_refuse(sv, r);
    else
        return true;
    return false;
}

static const char *passage_find(struct server *sv, struct http_request *r, struct passage *ret)
{
    const char *why = "";

    *ret = (struct passage){0};
    ret->route = route_of(r, &ret->path_is_known);
    if (!ret->route || ret->route->may != ROLE_ANYBODY)
        ret->bearer = caller_of(sv, r, &why);
    return why;
}

static bool is_unauthenticated(const struct passage *p)
{
    return !p->bearer && !(p->route && p->route->may == ROLE_ANYBODY);
}

/* Whose turns a large body is parsed in: those of its token, or of the task whose attempt it
 * ends. */
static struct slice line_of(struct server *sv, struct http_request *r, const struct passage *p,
                            struct buf *text)
{
    struct token token;

    if (p->bearer)
        return p->bearer->name;
    if (token_judge(sv->key, http_segment(r, 2), &token) == TOKEN_FORGED)
        return SLICE_NONE; /* it is answered without its body */
    buf_fmt(text, "/%.*s", SLICE_ARG(token.task));
    return buf_view(text);
}

/* A large body that would be refused for want of a place among those of its token is refused before
 * it comes. */
static bool body_finds_place(struct server *sv, struct http_request *r, const struct passage *p)
{
    CLEANUP(buf_fini) struct buf text = {0};

    if (!p->route)
        return true;
    if ((p->route->how & DEFINITION) == DEFINITION)
        return body_may_come(r, sv->definitions, p->bearer->name,
                             p->route->how & LATER ? OFFLOAD_LATER : OFFLOAD_SOON);
    if (!content_type_is(r, "application/json"))
        return true;
    struct slice line = line_of(sv, r, p, &text);
    return !line.ptr || body_may_come(r, sv->bodies, line, OFFLOAD_SOON);
}

/* True: it will be served when its body is parsed, or was answered. */
static bool waits_for_its_body(struct server *sv, struct http_request *r, const struct passage *p)
{
    CLEANUP(buf_fini) struct buf text = {0};

    if (r->large || r->body.len <= BODY_SMALL || p->route->how & BODY)
        return false;
    struct slice line = line_of(sv, r, p, &text);
    unsigned depth = body_depth(sv, p->route->how & ENTRIES);
    return line.ptr && body_is_parsed_first(sv, r, line, depth, route_held);
}

static void serve(struct server *sv, struct http_request *r, const struct passage *p)
{
    struct quota *account = r->account; /* it outlives the request */
    uint64_t began_ns = p->bearer ? uv_hrtime() : 0;

    body_came(r);
    if (waits_for_its_body(sv, r, p))
        return;
    sv->caller = p->bearer ? p->bearer->name : SLICE_NONE;
    sv->api->bearer = p->bearer;
    p->route->serve(sv, r);
    body_is_used(sv, r);
    sv->caller = SLICE_NONE;
    sv->api->bearer = NULL;
    if (p->bearer) {
        uint64_t now_ns = uv_hrtime();
        account_worked(sv, account, now_ns, now_ns - began_ns);
    }
}

/* Its token is known now, or will not be. */
static void route_again(struct server *sv, struct http_request *r)
{
    struct passage p;
    const char *why = passage_find(sv, r, &p);

    if (!is_let_in(sv, r, &p, why))
        return;
    if (http_is_without_body(r))
        http_problem(r, 503, "busy",
                     "the token was not yet known to this node: send the request again");
    else
        serve(sv, r, &p);
}

/* Such a link is in a mail that another page shows: opening it may come from there. */
static bool opens_link(const struct http_request *r)
{
    return method_reads(r) && path_matches("v1/approvals/*", r->path);
}

static bool is_of_api(struct http_request *r)
{
    static const char versioned[] = "/v1/";
    bool path_is_known = false;

    if (r->path.len >= sizeof versioned - 1
        && memcmp(r->path.ptr, versioned, sizeof versioned - 1) == 0)
        return true; /* nearly all are */
    (void)route_of(r, &path_is_known);
    return path_is_known || slice_is(http_segment(r, 0), "v1");
}

/* What needs no token to be answered, or to be refused. */
static bool is_answered_at_once(struct server *sv, struct http_request *r)
{
    if (door_has_token(sv, r)) {
        http_problem(r, 400, "token-in-address",
                     "a token does not belong into an address, where it is kept and shown: replace "
                     "it (intact token rotate), and send it in the header Authorization");
        return true;
    }
    if (!is_of_api(r) && pages_answer(sv, r))
        return true;
    /* A page in a browser may not use this server as its own, by whatever name it reaches it. */
    if (opens_link(r) ? door_host_is_foreign(sv, r) : door_is_foreign(sv, r)) {
        http_problem(r, 403, "foreign",
                     "requests from web pages of other origins, and to a Host that is neither "
                     "loopback nor given by --host, are refused");
        return true;
    }
    return installation_is_another(sv, r);
}

void route(void *arg, struct http_request *r)
{
    struct server *sv = arg;
    struct passage p;

    metrics_request_begins(r);
    if (is_answered_at_once(sv, r))
        return;
    const char *why = passage_find(sv, r, &p);
    if (is_unauthenticated(&p) && caller_may_be_new(sv, r)
        && unknown_tokens_hold(sv, r, route_again))
        return;
    if (is_let_in(sv, r, &p, why) && !fair_holds(sv->fair, quota_share(r->account), r))
        serve(sv, r, &p);
}

void route_held(struct server *sv, struct http_request *r)
{
    struct passage p;
    const char *why = passage_find(sv, r, &p);

    ASSERT(p.route);
    if (is_unauthenticated(&p))
        answer_unauthenticated(sv, r, why);
    else if (p.bearer && !access_may(p.bearer, p.route->may, http_segment(r, 2)))
        answer_forbidden(sv, r, p.bearer, p.route);
    else
        serve(sv, r, &p);
    body_is_used(sv, r);
}

bool route_head(void *arg, struct http_request *r)
{
    struct server *sv = arg;
    struct passage p;

    metrics_request_begins(r);
    if (is_answered_at_once(sv, r))
        return false;
    const char *why = passage_find(sv, r, &p);
    if (is_unauthenticated(&p) && caller_may_be_new(sv, r) && unknown_tokens_may_hold(sv)) {
        if (http_limit_body(r, UNKNOWN_TOKEN_BODY_MAX, false))
            return true; /* it is held when it is whole */
        if (unknown_tokens_hold(sv, r, route_again))
            return false;
    }
    if (is_unauthenticated(&p)) {
        answer_unauthenticated(sv, r, why);
        return false;
    }
    if (p.route && p.route->serve == attempt_post)
        return attempt_head(sv, r) && body_finds_place(sv, r, &p);
    if (p.route && p.route->serve == signal_url_post)
        return signal_url_head(sv, r);
    if (p.route && p.route->serve == approval_link_post)
        return approval_link_head(sv, r);
    if (p.route && p.route->serve == session_post)
        return session_head(r);
    if (p.route && p.route->may == ROLE_ANYBODY) {
        /* It reads no body, and a client without a token gets no room for one. */
        if (is_let_in(sv, r, &p, why))
            serve(sv, r, &p);
        return false;
    }
    /* Other refusals wait for the body: the connection stays usable then. */
    return body_finds_place(sv, r, &p);
}
