#include <arpa/inet.h>
#include <strings.h>

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

static void task_cancel(struct server *sv, struct http_request *r)
{
    task_operate(sv, r, ASK_CANCEL);
}

static const struct route routes[] = {
    {"POST", "v1/agents/*/work", work_post},  {"POST", "v1/tasks", tasks_post},
    {"GET", "v1/tasks/*", task_get},          {"GET", "v1/tasks", tasks_list},
    {"POST", "v1/tasks/*/retry", task_retry}, {"POST", "v1/tasks/*/skip", task_skip},
    {"POST", "v1/tasks/*/undo", task_undo},   {"POST", "v1/tasks/*/cancel", task_cancel},
    {"PUT", "v1/workflows/*", workflow_put},  {"GET", "v1/workflows/*/versions/*", workflow_get},
    {"GET", "v1/workflows/*", workflow_get},  {"GET", "v1/workflows", workflows_list},
    {"POST", "v1/validate", validate_post},   {"GET", "v1/agents", agents_get},
    {"GET", "v1/nodes", nodes_get},           {"GET", "metrics", metrics_get},
    {"GET", "healthz", healthz_get},          {"GET", "readyz", readyz_get},
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

/* Those that read the query by themselves; to all others no parameter means anything. */
static bool reads_query(const struct route *rt)
{
    return rt->serve == tasks_post || rt->serve == tasks_list || rt->serve == task_get;
}

/* "127.0.0.1" and its like: all of it is an address, so that no name that only begins so (and that
 * somebody else's DNS answers for) passes. */
static bool is_loopback_address(struct slice s)
{
    char text[16] = "";
    struct in_addr address;

    if (s.len == 0 || s.len >= sizeof text)
        return false;
    memcpy(text, s.ptr, s.len);
    return inet_pton(AF_INET, text, &address) == 1 && ntohl(address.s_addr) >> 24 == 127;
}

static bool is_our_host(struct slice host)
{
    size_t len = host.len;

    while (len > 0 && host.ptr[len - 1] >= '0' && host.ptr[len - 1] <= '9')
        len--;
    if (len > 0 && len < host.len && host.ptr[len - 1] == ':')
        host.len = len - 1; /* the port does not matter */
    return slice_is(host, "[::1]") || is_loopback_address(host)
           || (host.len == strlen("localhost")
               && strncasecmp(host.ptr, "localhost", host.len) == 0);
}

/* A page in a browser may not use a server on loopback as its own: what carries an Origin comes
 * from one, and nothing here is made for it. Host has to name us as one can reach us. */
static bool is_foreign(const struct http_request *r)
{
    struct slice host = http_header(r, "host");

    return http_header(r, "origin").ptr || (host.ptr && !is_our_host(host));
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
    if (is_foreign(r)) {
        http_problem(r, 403, "foreign",
                     "requests from web pages, or to a Host that is not loopback, are refused");
        return;
    }
    for (size_t i = 0; i < COUNT_OF(routes); i++) {
        if (!path_matches(routes[i].path, r->path))
            continue;
        known = true;
        if (method_matches(&routes[i], r->method)) {
            if (reads_query(&routes[i]) || parameters_ok(r, NAMES(NULL)))
                routes[i].serve(sv, r);
            return;
        }
    }
    if (known)
        answer_wrong_method(r);
    else
        http_problem(r, 404, "no-route", "there is nothing at %.*s", SLICE_ARG(r->path));
}
