#include "server/helper.h"
#include "server/internal.h"

struct route {
    const char *method;
    const char *path; /* "*" stands for one segment */
    void (*serve)(struct server *sv, struct http_request *r);
    unsigned may; /* enum role: who may use it; the admin may all */
};

/* Who may look at one thing, and who at all of them. */
enum { SEE = ROLE_SUBMIT | ROLE_READ | ROLE_OPERATE, LIST = ROLE_READ | ROLE_OPERATE };

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
    {"POST", "v1/agents/*/work", work_post, ROLE_AGENT},
    {"POST", "v1/agents/*/heartbeats", heartbeats_post, ROLE_AGENT},
    {"POST", "v1/attempts/*", attempt_post, ROLE_ANYBODY}, /* its token says that they may */
    {"POST", "v1/tasks", tasks_post, ROLE_SUBMIT | ROLE_OPERATE},
    {"GET", "v1/tasks/*", task_get, SEE},
    {"GET", "v1/tasks/*/events", task_events_get, SEE},
    {"GET", "v1/tasks/*/why", task_why_get, SEE},
    {"GET", "v1/events", events_get, LIST},
    {"GET", "v1/tasks", tasks_list, LIST},
    {"POST", "v1/tasks/*/retry", task_retry, ROLE_OPERATE},
    {"POST", "v1/tasks/*/skip", task_skip, ROLE_OPERATE},
    {"POST", "v1/tasks/*/undo", task_undo, ROLE_OPERATE},
    {"POST", "v1/tasks/*/pause", task_pause, ROLE_OPERATE},
    {"POST", "v1/tasks/*/resume", task_resume, ROLE_OPERATE},
    {"POST", "v1/tasks/*/correct", task_correct, ROLE_OPERATE},
    {"POST", "v1/tasks/*/supply", task_supply, ROLE_OPERATE},
    {"POST", "v1/tasks/*/resolve", task_resolve, ROLE_OPERATE},
    {"POST", "v1/tasks/*/close", task_close, ROLE_OPERATE},
    {"POST", "v1/tasks/*/reopen", task_reopen, ROLE_OPERATE},
    {"POST", "v1/tasks/*/cancel", task_cancel, ROLE_SUBMIT | ROLE_OPERATE},
    {"GET", "v1/submissions", submissions_get, LIST},
    {"POST", "v1/submissions/retry", submissions_retry, ROLE_OPERATE},
    {"POST", "v1/submissions/drop", submissions_drop, ROLE_OPERATE},
    {"POST", "v1/operations", operations_post, ROLE_OPERATE},
    {"GET", "v1/operations", operations_list, LIST},
    {"GET", "v1/operations/*", operation_get, LIST},
    {"POST", "v1/operations/*/stop", operation_stop, ROLE_OPERATE},
    {"POST", "v1/operations/*/continue", operation_continue, ROLE_OPERATE},
    {"POST", "v1/submissions/refused", submissions_put_refused, ROLE_SUBMIT | ROLE_OPERATE},
    {"PUT", "v1/workflows/*", workflow_put, ROLE_OPERATE},
    {"POST", "v1/workflows", workflow_put, ROLE_OPERATE},
    {"GET", "v1/workflows/*/versions/*", workflow_get, SEE},
    {"GET", "v1/workflows/*", workflow_get, SEE},
    {"GET", "v1/workflows", workflows_list, SEE},
    {"POST", "v1/validate", validate_post, SEE},
    {"GET", "v1/agents", agents_get, LIST},
    {"GET", "v1/agents/*", agent_get, LIST},
    {"PUT", "v1/agents/*", agent_put, ROLE_OPERATE},
    {"DELETE", "v1/agents/*", agent_delete, ROLE_OPERATE},
    {"POST", "v1/agents/*/breaker", breaker_post, ROLE_OPERATE},
    {"GET", "v1/nodes", nodes_get, ROLE_BEARER},
    {"GET", "v1/stats", stats_get, LIST},
    {"GET", "v1/alerts", alerts_list, LIST},
    {"POST", "v1/alerts/*/acknowledge", alert_acknowledge, ROLE_OPERATE},
    {"POST", "v1/alerts/test", alert_test, ROLE_OPERATE},
    {"GET", "v1/audit", audit_get, ROLE_OPERATE},
    {"GET", "v1/outbox", outbox_get, LIST},
    {"GET", "v1/targets", targets_get, LIST},
    {"POST", "v1/outbox/retry", outbox_retry_post, ROLE_OPERATE},
    {"POST", "v1/outbox/drop", outbox_drop_post, ROLE_OPERATE},
    {"POST", "v1/backup", backup_post, ROLE_ADMIN},
    {"POST", "v1/retire", retire_post, ROLE_ADMIN},
    {"GET", "v1/tokens", tokens_list, ROLE_ADMIN},
    {"POST", "v1/tokens", token_post, ROLE_ADMIN},
    {"DELETE", "v1/tokens/*", token_delete, ROLE_ADMIN},
    {"GET", "metrics", metrics_get, LIST},
    {"GET", "healthz", healthz_get, ROLE_ANYBODY},
    {"GET", "readyz", readyz_get, ROLE_ANYBODY},
};

_Static_assert(COUNT_OF(routes) < ROUTES_MAX, "the last number is of what matches none");

void route_label(struct buf *b, unsigned number)
{
    if (number < COUNT_OF(routes))
        buf_fmt(b, "method=\"%s\",route=\"/%s\"", routes[number].method, routes[number].path);
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

/* Those that read the query by themselves, and those that whoever looks after the server may ask as
 * they like; to all others no parameter means anything. */
static bool reads_query(const struct route *rt)
{
    return rt->serve == tasks_post || rt->serve == tasks_list || rt->serve == task_get
           || rt->serve == audit_get || rt->serve == alerts_list || rt->serve == events_get
           || rt->serve == outbox_get || rt->serve == submissions_get
           || rt->serve == operations_list
           || (rt->may == ROLE_ANYBODY && rt->serve != attempt_post);
}

/* What only a scheduler does. */
static bool takes_scheduler(const struct route *rt)
{
    return rt->serve == work_post || rt->serve == heartbeats_post || rt->serve == attempt_post
           || rt->serve == tasks_post || rt->serve == task_retry || rt->serve == task_skip
           || rt->serve == task_undo || rt->serve == task_cancel;
}

/* RFC 9110, 15.5.6: says what is possible. */
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

/* Whoever sits at the same machine is told where a token lies; it lies there for its owner alone.
 * What a proxy passes on comes from somebody else. */
static void say_where(const struct server *sv, struct http_request *r, struct buf *headers)
{
    const char *file = access_file(sv->access);

    if (sv->config.behind_proxy || !http_peer_is_loopback(r) || http_header(r, "forwarded").ptr
        || http_header(r, "x-forwarded-for").ptr || http_header(r, "via").ptr)
        return;
    for (const char *c = file; *c; c++)
        if (*c < ' ' || *c > '~')
            return; /* no header can say it */
    buf_fmt(headers, "Intact-Token-File: %s\r\n", file);
}

static void answer_stranger(const struct server *sv, struct http_request *r, const char *why)
{
    CLEANUP(buf_fini) struct buf headers = {0};

    buf_str(&headers, "WWW-Authenticate: Bearer realm=\"intact\"\r\n");
    say_where(sv, r, &headers);
    http_problem_with(r, 401, "unauthenticated", headers.ptr, "%s", why);
}

static void answer_forbidden(struct http_request *r, const struct bearer *b, const struct route *rt)
{
    CLEANUP(buf_fini) struct buf wanted = {0};

    role_write(&wanted, rt->may, http_segment(r, 2));
    http_problem(r, 403, "forbidden", "the token \"%.*s\" may not do this: it takes the role %s",
                 SLICE_ARG(b->name), wanted.ptr);
}

static const struct bearer *who(struct server *sv, struct http_request *r, const char **ret_why)
{
    if (http_adopted(r) != 0)
        return helper_bearer(http_adopted(r));
    if (http_header_count(r, "authorization") > 1) {
        *ret_why = "there is more than one Authorization";
        return access_is_open(sv->access) ? access_who(sv->access, SLICE_NONE, 0, ret_why) : NULL;
    }
    return access_who(sv->access, http_header(r, "authorization"), server_now(sv), ret_why);
}

bool route_recheck(struct server *sv, struct http_request *r)
{
    const char *why = "";

    if (who(sv, r, &why))
        return true;
    answer_stranger(sv, r, why);
    return false;
}

static void route_again(struct server *sv, struct http_request *r);

/* Strangers learn nothing of what is there: only those who may look at all get a 404 or 405. */
static void serve_known(struct server *sv, struct http_request *r, const struct route *rt,
                        bool path_is_known, bool again)
{
    const char *why = "";
    bool anybody = rt && rt->may == ROLE_ANYBODY;
    const struct bearer *b = anybody ? NULL : who(sv, r, &why);

    if (!b && !anybody) {
        bool news = !again && access_is_news(sv->access, http_header(r, "authorization"));
        if (!news || !strangers_hold(sv, r, route_again))
            answer_stranger(sv, r, why);
    } else if (!path_is_known) {
        http_problem(r, 404, "no-route", "there is nothing at %.*s", SLICE_ARG(r->path));
    } else if (!rt) {
        answer_wrong_method(r);
    } else if (b && !access_may(b, rt->may, http_segment(r, 2))) {
        answer_forbidden(r, b, rt);
    } else if (reads_query(rt) || parameters_ok(r, NAMES(NULL))) {
        sv->caller = b ? b->name : SLICE_NONE;
        if (takes_scheduler(rt) && !(sv->config.roles & NODE_SCHEDULER))
            nodes_refuse(sv, r);
        else
            rt->serve(sv, r);
        sv->caller = SLICE_NONE;
    }
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

static void route_again(struct server *sv, struct http_request *r)
{
    bool known = false;
    const struct route *rt = route_of(r, &known);

    serve_known(sv, r, rt, known, true);
}

void route(void *arg, struct http_request *r)
{
    struct server *sv = arg;
    bool known = false;

    metrics_request_begins(r);
    /* A page in a browser may not use this server as its own, by whatever name it reaches it. */
    if (door_is_foreign(sv, r)) {
        http_problem(r, 403, "foreign",
                     "requests from web pages of others, or to a Host that is neither loopback nor "
                     "named by --host, are refused");
        return;
    }
    if (installation_is_another(sv, r))
        return;
    const struct route *rt = route_of(r, &known);
    serve_known(sv, r, rt, known, false);
}
