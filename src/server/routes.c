#include "server/internal.h"
#include "json/json.h"

struct route {
    const char *method;
    const char *path; /* "*" stands for one segment */
    void (*serve)(struct server *sv, struct http_request *r);
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

static const struct route routes[] = {
    {"POST", "v1/agents/*/work", work_post},
    {"POST", "v1/tasks", tasks_post},
    {"GET", "v1/tasks/*", task_get},
    {"GET", "v1/tasks", tasks_list},
    {"POST", "v1/tasks/*/retry", task_retry},
    {"POST", "v1/tasks/*/skip", task_skip},
    {"POST", "v1/tasks/*/undo", task_undo},
    {"PUT", "v1/workflows/*", workflow_put},
    {"GET", "v1/workflows/*/versions/*", workflow_get},
    {"GET", "v1/workflows/*", workflow_get},
    {"GET", "v1/workflows", workflows_list},
    {"POST", "v1/validate", validate_post},
    {"GET", "v1/agents", agents_get},
    {"GET", "v1/nodes", nodes_get},
    {"GET", "metrics", metrics_get},
    {"GET", "healthz", healthz_get},
    {"GET", "readyz", readyz_get},
};

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
    CLEANUP(buf_fini) struct buf detail = {0};
    buf_fmt(&detail, "%.*s is not possible on %.*s", SLICE_ARG(r->method), SLICE_ARG(r->path));
    CLEANUP(buf_fini) struct buf b = {0};
    json_open(&b, '{');
    json_key(&b, "type");
    json_string(&b, SLICE("urn:intact:problem:method"));
    json_key(&b, "title");
    json_string(&b, SLICE("Method Not Allowed"));
    json_key(&b, "status");
    json_number(&b, 405);
    json_key(&b, "detail");
    json_string(&b, buf_view(&detail));
    json_close(&b, '}');
    http_answer(r, 405, "application/problem+json", buf_view(&b), allow.ptr);
}

void route(void *arg, struct http_request *r)
{
    struct server *sv = arg;
    bool known = false;

    sv->requests++;
    /* A page in a browser may not use this server as its own, by whatever name it reaches it. */
    if (door_is_foreign(sv, r)) {
        http_problem(r, 403, "foreign",
                     "requests from web pages of others, or to a Host that is neither loopback nor "
                     "named by --host, are refused");
        return;
    }
    for (size_t i = 0; i < COUNT_OF(routes); i++) {
        if (!path_matches(routes[i].path, r->path))
            continue;
        known = true;
        if (method_matches(&routes[i], r->method)) {
            routes[i].serve(sv, r);
            return;
        }
    }
    if (known)
        answer_wrong_method(r);
    else
        http_problem(r, 404, "no-route", "there is nothing at %.*s", SLICE_ARG(r->path));
}
