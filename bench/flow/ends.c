/* Detects the ends of tasks in one of the ways of enum ends: event streams, waiting answers,
 * counters in /metrics, or the answers to submissions. The JSON is searched as text, which costs
 * less than parsing. */

#include "flow/flow.h"

#include <stdio.h>
#include <stdlib.h>

static const char *const states[OUTCOMES] = {"processed", "compensated", "error"};

/* The number of the task, which follows our prefix; -1: not one of our tasks. */
static long number_of(const struct flow *f, struct slice id)
{
    size_t prefix = strlen(f->o.prefix);
    long n = 0;

    if (id.len < prefix + 2 || memcmp(id.ptr, f->o.prefix, prefix) != 0 || id.ptr[prefix] != '-')
        return -1;
    for (size_t i = prefix + 1; i < id.len; i++) {
        if (id.ptr[i] < '0' || id.ptr[i] > '9' || n > INT32_MAX)
            return -1;
        n = n * 10 + (id.ptr[i] - '0');
    }
    return n < f->o.tasks ? n : -1;
}

/* The text of the first member with this name in the raw JSON; members before it never contain the
 * same name. */
static struct slice member(struct slice json, const char *name)
{
    char key[32];
    int len = snprintf(key, sizeof key, "\"%s\":\"", name);
    const char *at = memmem(json.ptr, json.len, key, (size_t)len);

    if (!at)
        return SLICE_NONE;
    at += len;
    const char *end = memchr(at, '"', json.len - (size_t)(at - json.ptr));
    return end ? (struct slice){at, (size_t)(end - at)} : SLICE_NONE;
}

static int outcome_of(struct slice json)
{
    struct slice state = member(json, "state");

    for (int i = 0; i < OUTCOMES; i++)
        if (slice_is(state, states[i]))
            return i;
    return -1;
}

/* ---- events ---- */

static void take_line(struct flow *f, struct slice line)
{
    static const struct slice data = {"data: {", 7};

    if (slice_is(line, "event: gap")) { /* tasks that end from now on are in the stream again */
        f->gaps++;
        f->look_at = 0;
        f->look_end = f->sent;
        return;
    }
    if (line.len < data.len || memcmp(line.ptr, data.ptr, data.len) != 0)
        return;
    int outcome = outcome_of(line);
    long n = number_of(f, member(line, "id"));
    if (n >= 0 && outcome >= 0)
        flow_ended(f, n, outcome);
}

void ends_heard(struct flow *f, struct conn *c)
{
    const char *end = NULL;

    while ((end = memchr(c->in.ptr + c->scanned, '\n', c->in.len - c->scanned))) {
        const char *line = c->in.ptr + c->scanned;
        take_line(f, (struct slice){line, (size_t)(end - line)});
        c->scanned = (size_t)(end - c->in.ptr) + 1;
    }
    memmove(c->in.ptr, c->in.ptr + c->scanned, c->in.len - c->scanned + 1);
    c->in.len -= c->scanned;
    c->scanned = 0;
}

/* Tasks that have not ended yet will be in the stream. */
void ends_look(struct flow *f)
{
    char path[200];

    for (; f->look_at < f->look_end && f->idle_count > 0; f->look_at++) {
        if (f->ended_at[f->look_at] >= 0)
            continue;
        struct conn *c = f->idle[--f->idle_count];
        c->looks = true;
        c->first = f->look_at;
        (void)snprintf(path, sizeof path, "/v1/tasks/%s-%ld", f->o.prefix, c->first);
        net_ask(f, c, "GET", path, NULL, SLICE(""));
    }
}

static void take_look(struct flow *f, struct conn *c, int status, struct slice body)
{
    int outcome = outcome_of(body);

    if (status != 200 && status != 404) /* 404: its submission is still on its way */
        flow_fail("a task was answered %d: %.*s", status, SLICE_ARG(body));
    c->looks = false;
    f->idle[f->idle_count++] = c;
    if (status == 200 && outcome >= 0)
        flow_ended(f, c->first, outcome);
}

/* ---- counts ---- */

/* The total number of ended tasks, in any state; which tasks they are is unknown. */
static void take_count(struct flow *f, struct conn *c, struct slice text)
{
    static const char name[] = "\nintact_tasks_ended_total{";
    static double totals[SERVERS_MAX];
    const char *at = text.ptr;
    long total = 0;

    totals[c->server] = 0;
    while ((at = strstr(at, name))) { /* the text ends with a NUL */
        at += strcspn(at, " ");
        totals[c->server] += strtod(at, NULL);
    }
    for (int i = 0; i < f->o.server_count; i++)
        total += (long)totals[i];
    if (f->counted_before < 0) {
        f->streams_begun++;
        if (f->streams_begun == f->o.server_count)
            f->counted_before = total;
        return;
    }
    for (long n = f->ended; n < total - f->counted_before && n < f->due; n++)
        flow_ended(f, n, 0);
}

/* ---- answers ---- */

static void must_be_taken(const struct flow *f, const struct conn *c, int status, struct slice body)
{
    if (status != 200 && status != 201)
        flow_fail("a submission was answered %d: %.*s", status, SLICE_ARG(body));
    if (c->count == 1 || f->o.bare)
        return;
    /* One line for each task, which begins: {"line":1,"status":201,... */
    const char *at = body.ptr;
    for (long i = 0; i < c->count; i++) {
        const char *end = at ? memchr(at, '\n', body.len - (size_t)(at - body.ptr)) : NULL;
        const char *good = at ? memmem(at, 40, "\"status\":20", 11) : NULL;
        if (!end || !good || good > end)
            flow_fail("a line was answered: %.200s", at ? at : "nothing");
        at = end + 1;
    }
}

void ends_answered(struct flow *f, struct conn *c, int status, struct slice body)
{
    if (c->counts) {
        if (status != 200)
            flow_fail("/metrics was answered %d", status);
        take_count(f, c, body);
        return;
    }
    if (c->looks) {
        take_look(f, c, status, body);
        return;
    }
    must_be_taken(f, c, status, body);
    f->answered += c->count;
    f->idle[f->idle_count++] = c;
    if (f->o.ends == ENDS_WAIT) {
        int outcome = outcome_of(body);
        if (outcome < 0)
            flow_fail("a task did not end in time: %.*s", SLICE_ARG(body));
        flow_ended(f, c->first, outcome);
    }
    for (long i = 0; i < c->count && f->o.ends == ENDS_ANSWER; i++)
        flow_ended(f, c->first + i, 0);
}

/* ---- the beginning ---- */

void ends_begin(struct flow *f)
{
    char path[200];

    (void)snprintf(path, sizeof path, "/v1/events?workflow=%s&state=processed,compensated,error",
                   f->o.workflow);
    for (long i = f->o.connections; i < f->conn_count; i++)
        if (!f->conns[i].busy)
            net_ask(f, &f->conns[i], "GET", f->conns[i].stream ? path : "/metrics", NULL,
                    SLICE(""));
}

bool ends_ready(const struct flow *f)
{
    return f->o.connections + f->streams_begun == f->conn_count
           && (f->o.ends != ENDS_COUNT || f->counted_before >= 0);
}
