/* Runs scenarios: the loop, waiting, requests to the agent, its process, and verdicts. See
 * stage.h. */
#include "agents/check/stage.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>
#include <sys/wait.h>

#include "base/clock.h"
#include "base/when.h"

enum {
    TICK_MS = 10,
    PARK_MS = 400,          /* short, so that there is a next call to judge by */
    MISSED_ENOUGH = 3,      /* calls without a request until it counts as lost */
    MEMORY_MAX = 256 << 20, /* limit of an agent's data in one scenario */
    CALLS_MAX = 50000,
    WORDS_MAX = 300, /* of the end of an agent's output that is shown */
};

/* ---- verdicts ---- */

PRINTF(3, 4)
static void decide(struct stage *s, enum check_end end, const char *fmt, ...)
{
    va_list args;

    va_start(args, fmt);
    text_format(s->verdict.seen, sizeof s->verdict.seen, fmt, args);
    va_end(args);
    s->verdict.end = end;
    s->is_decided = true;
}

void stage_wrong(struct stage *s, const char *expected, const char *seen, ...)
{
    va_list args;

    if (s->is_decided)
        return;
    va_start(args, seen);
    text_format(s->verdict.seen, sizeof s->verdict.seen, seen, args);
    va_end(args);
    (void)snprintf(s->verdict.expected, sizeof s->verdict.expected, "%s", expected);
    s->verdict.end = CHECK_WRONG;
    s->is_decided = true;
}

void stage_skip(struct stage *s, const char *why, ...)
{
    va_list args;

    if (s->is_decided)
        return;
    va_start(args, why);
    text_format(s->verdict.seen, sizeof s->verdict.seen, why, args);
    va_end(args);
    s->verdict.end = CHECK_SKIPPED;
    s->is_decided = true;
}

void stage_breach(struct stage *s, const char *rule, const char *expected, const char *seen, ...)
{
    const struct check_scenario *of = check_scenario_find(rule);
    va_list args;

    ASSERT(of);
    ASSERT(of->is_rule);
    for (unsigned i = 0; i < s->breach_count; i++)
        if (s->breaches[i].rule == of)
            return;
    ASSERT(s->breach_count < COUNT_OF(s->breaches));
    s->breaches[s->breach_count].rule = of;
    (void)snprintf(s->breaches[s->breach_count].expected, CHECK_EXPECTED_MAX, "%s", expected);
    va_start(args, seen);
    text_format(s->breaches[s->breach_count].seen, CHECK_SEEN_MAX, seen, args);
    va_end(args);
    s->breach_count++;
}

/* ---- waiting ---- */

static void describe_last_call(const struct stage *s, struct buf *b)
{
    const struct call *last =
        list_empty(&s->calls) ? NULL : CONTAINER_OF(s->calls.prev, struct call, link);

    if (!last && s->breach_count)
        buf_fmt(b, "; %s", s->breaches[0].seen);
    else if (!last && s->refused_count)
        buf_fmt(b, "; it sent what is no request in HTTP: %s", s->refused);
    else if (!last)
        buf_str(b, "; it has made no call");
    else if (last->body)
        buf_fmt(b, "; its last call was %.*s",
                SLICE_ARG(slice_cut(last->body->raw, CHECK_SEEN_MAX / 3)));
}

static void describe_output(const struct stage *s, struct buf *b)
{
    const struct child *c = &s->child;
    size_t len = c->tail_len < WORDS_MAX ? c->tail_len : WORDS_MAX;

    if (len > 0)
        buf_fmt(b, "; its last words: %.*s", (int)len, c->tail + c->tail_len - len);
}

static void decide_ended(struct stage *s, const char *expected)
{
    CLEANUP(buf_fini) struct buf b = {0};
    char end[80];

    child_describe_end(&s->child, end, sizeof end);
    buf_fmt(&b, "%s before that", end);
    describe_last_call(s, &b);
    describe_output(s, &b);
    stage_wrong(s, expected, "%s", b.ptr);
}

static void decide_late(struct stage *s, const char *expected)
{
    CLEANUP(buf_fini) struct buf b = {0};

    duration_tell(&b, s->settings->patience_ms);
    buf_str(&b, " long there was nothing of the kind");
    describe_last_call(s, &b);
    describe_output(s, &b);
    stage_wrong(s, expected, "%s", b.ptr);
}

static void look_around(struct stage *s, int64_t end, const char *expected)
{
    int64_t now = clock_boot_ms();

    child_look(&s->child);
    if (s->is_interrupted)
        decide(s, CHECK_SKIPPED, "broken off by a signal");
    else if (s->arena.total > MEMORY_MAX)
        stage_wrong(s, "calls of a size that a server takes", "the agent sent more than %d MiB",
                    MEMORY_MAX >> 20);
    else if (s->settings->command && s->child.has_ended && !s->may_end)
        decide_ended(s, expected);
    else if (now > s->ends_at)
        decide(s, CHECK_SKIPPED, "the time limit of all of it is over (--limit)");
    else if (now > end)
        decide_late(s, expected);
}

bool stage_until(struct stage *s, stage_condition *is, const void *arg, const char *expected)
{
    int64_t end = clock_boot_ms() + s->settings->patience_ms;

    while (!s->is_decided) {
        if (is(s, arg))
            return true;
        look_around(s, end, expected);
        if (!s->is_decided)
            (void)uv_run(&s->loop, UV_RUN_ONCE);
    }
    return false;
}

static void on_tick(uv_timer_t *timer)
{
    struct stage *s = timer->data;

    node_tend(s, false);
    if (s->call_serial - s->serial_before > CALLS_MAX)
        stage_wrong(s, "a pause between calls that bring nothing", "more than %d calls", CALLS_MAX);
}

static void on_signal(uv_signal_t *signal, int number)
{
    struct stage *s = signal->data;

    (void)number;
    s->is_interrupted = true;
}

/* ---- requests ---- */

static struct asked *prepare(struct stage *s, const struct ask *how)
{
    struct asked *a = arena_alloc(&s->arena, sizeof *a);
    const struct check_settings *set = s->settings;
    const struct asked *same = how->again ? how->again : how->undo;
    bool is_undo = how->undo || how->undo_of_nothing || (how->again && how->again->of)
                   || (how->again && strcmp(how->again->direction, "undo") == 0);

    s->serial++;
    (void)snprintf(a->token, sizeof a->token, "%s-token-%u", s->run, s->serial);
    if (same)
        memcpy(a->task, same->task, sizeof a->task);
    else
        (void)snprintf(a->task, sizeof a->task, "check-%s-%u", s->run, s->serial);
    (void)snprintf(a->step, sizeof a->step, "step");
    (void)snprintf(a->key, sizeof a->key, "%.70s/step%s", a->task, is_undo ? "/undo" : "");
    a->direction = is_undo ? "undo" : "forward";
    a->action = how->action   ? how->action
                : is_undo     ? (set->action ? set->undo : "count")
                : set->action ? set->action
                              : "count";
    if (how->again && !how->action)
        a->action = how->again->action;
    a->input = how->input                   ? how->input
               : same                       ? same->input
               : how->action || !set->input ? "{}"
                                            : set->input;
    a->more = how->more;
    a->of = how->undo ? how->undo : how->again ? how->again->of : NULL;
    a->attempt = how->again ? how->again->attempt + 1 : 1;
    a->node = how->node;
    a->left_ms = how->has_left ? how->left_ms : HOUR_MS;
    a->outcome = "accepted";
    a->done = a->first_done = -1;
    list_push(&s->asked, &a->link);
    return a;
}

struct asked *stage_ask(struct stage *s, const struct ask *how)
{
    struct asked *a = prepare(s, how);

    a->to_give = 1;
    return a;
}

struct asked *stage_ask_forward_of(struct stage *s, const struct asked *undo)
{
    struct asked *a = stage_ask(s, &(struct ask){0});

    memcpy(a->task, undo->task, sizeof a->task);
    (void)snprintf(a->key, sizeof a->key, "%.70s/step", a->task);
    return a;
}

struct asked *stage_asked(struct stage *s, struct slice token)
{
    LIST_FOREACH (l, after, &s->asked) {
        struct asked *a = CONTAINER_OF(l, struct asked, link);
        if (slice_is(token, a->token))
            return a;
    }
    return NULL;
}

void stage_fault(struct stage *s, enum fault_on on, enum fault_kind kind, int status,
                 int retry_after_s, unsigned count)
{
    ASSERT(s->fault_count < FAULTS_MAX);
    s->faults[s->fault_count++] = (struct fault){on, kind, status, retry_after_s, count};
}

void stage_wake(struct stage *s)
{
    node_tend(s, true);
}

void stage_stop(struct stage *s, const struct asked *a)
{
    ASSERT(s->stop_count < COUNT_OF(s->stops));
    memcpy(s->stops[s->stop_count++], a->token, TOKEN_SIZE);
    if (!s->stops_in_beats)
        stage_wake(s);
}

/* ---- common waits ---- */

static bool is_given(struct stage *s, const void *arg)
{
    const struct asked *a = arg;

    (void)s;
    return a->to_give == 0;
}

bool stage_given(struct stage *s, struct asked *a)
{
    return stage_until(s, is_given, a, "a call for work with \"max\" above 0");
}

/* A real server would send it again. Here it shows that the agent has lost it. */
static bool is_forgotten(const struct asked *a)
{
    return a->missed >= MISSED_ENOUGH && a->left_ms > 0;
}

static bool is_settled(struct stage *s, const void *arg)
{
    const struct asked *a = arg;

    if (!a->is_settled && !a->must_be_silent && is_forgotten(a))
        stage_wrong(s,
                    a->results ? "the result handed in until an answer has an outcome for it"
                               : "a result for each request",
                    "the agent's calls neither hold \"%s\" any more nor hand in a result for it%s",
                    a->token, a->results ? ", though no answer had an outcome" : "");
    return a->is_settled;
}

bool stage_result(struct stage *s, struct asked *a)
{
    return stage_until(s, is_settled, a, "a result of the request");
}

struct slice asked_output(const struct asked *a)
{
    return a->result ? json_get_raw(a->result, "output") : SLICE_NONE;
}

const struct json *asked_error(const struct asked *a)
{
    return a->result ? json_get(a->result, "error") : NULL;
}

bool stage_output(struct stage *s, struct asked *a)
{
    if (!stage_result(s, a))
        return false;
    if (!asked_output(a).ptr)
        stage_wrong(s, "a result with an output", "%.*s",
                    SLICE_ARG(slice_cut(a->result->raw, CHECK_SEEN_MAX / 2)));
    return !s->is_decided;
}

bool stage_error(struct stage *s, struct asked *a)
{
    if (!stage_result(s, a))
        return false;
    if (!asked_error(a))
        stage_wrong(s, "a result with an error", "%.*s",
                    SLICE_ARG(slice_cut(a->result->raw, CHECK_SEEN_MAX / 2)));
    return !s->is_decided;
}

bool stage_undone(struct stage *s, struct asked *a)
{
    if (!stage_error(s, a))
        return false;
    const struct json *e = asked_error(a);
    const struct json *retryable = json_get(e, "retryable");
    bool is_right = slice_is(json_get_text(e, "code"), "undone") && retryable
                    && retryable->type == JSON_FALSE
                    && (!json_get(e, "effect") || slice_is(json_get_text(e, "effect"), "none"));
    if (!is_right)
        stage_wrong(s, "the error \"undone\", with retryable false and effect none", "%.*s",
                    SLICE_ARG(slice_cut(e->raw, CHECK_SEEN_MAX / 2)));
    return is_right;
}

static bool has_passed(struct stage *s, const void *arg)
{
    const int64_t *until = arg;

    (void)s;
    return clock_boot_ms() >= *until;
}

bool stage_passes(struct stage *s, int64_t ms)
{
    int64_t until = clock_boot_ms() + ms;

    return stage_until(s, has_passed, &until, "an agent that goes on");
}

void stage_expected(struct stage *s, const char *expected)
{
    if (s->is_decided && s->verdict.end == CHECK_WRONG)
        (void)snprintf(s->verdict.expected, sizeof s->verdict.expected, "%s", expected);
}

void stage_dismiss(struct stage *s, struct asked *a)
{
    if (s->is_decided)
        return;
    s->stops_in_beats = false;
    stage_stop(s, a);
    if (!stage_result(s, a))
        stage_expected(s, "a result of a request that is to be stopped");
}

static bool is_dropped(struct stage *s, const void *arg)
{
    const struct asked *a = arg;

    (void)s;
    return a->missed >= MISSED_ENOUGH || a->freed >= MISSED_ENOUGH;
}

bool stage_dropped(struct stage *s, struct asked *a)
{
    return stage_until(s, is_dropped, a,
                       "later calls for work that are no longer holding the request, or have its "
                       "place free");
}

static bool has_ended(struct stage *s, const void *arg)
{
    (void)arg;
    return s->child.has_ended;
}

bool stage_ended(struct stage *s, const char *expected)
{
    s->may_end = true;
    return stage_until(s, has_ended, NULL, expected);
}

/* ---- the process ---- */

static bool start(struct stage *s)
{
    char server[96];
    char token[96];
    char proxy[] = "no_proxy=*"; /* we are on this machine */
    char upper[] = "NO_PROXY=*";
    char installation[] = "INTACT_INSTALLATION="; /* it is not the simulated one */
    char *const variables[] = {server, token, proxy, upper, installation, NULL};
    struct error e = {0};

    if (!s->settings->command)
        return true;
    (void)snprintf(server, sizeof server, "INTACT_SERVER=%s", s->nodes[0].url);
    (void)snprintf(token, sizeof token, "INTACT_TOKEN=%s", s->bearer);
    if (child_start(&s->child, s->settings->command, variables, &e) == ERR_OK)
        return true;
    stage_wrong(s, "a command that can be started", "%s", e.text);
    return false;
}

/* The old process's calls must be gone, including unread ones: their contents must not be
 * attributed to the next process, and nothing may be given to them. So the node is closed and
 * reopened. */
bool stage_again(struct stage *s)
{
    if (s->is_decided)
        return false;
    child_kill(&s->child);
    LIST_FOREACH (l, after, &s->calls) {
        struct call *c = CONTAINER_OF(l, struct call, link);
        if (c->http && !c->ended_at)
            http_break(c->http);
    }
    LIST_FOREACH (l, after, &s->asked) {
        struct asked *a = CONTAINER_OF(l, struct asked, link);
        a->missed = 0;
        a->missed_by = NULL;
        a->is_held = false;
        a->shown_at = 0;
        a->confirmed = a->denied = 0;
        a->denied_by = NULL;
    }
    s->may_end = false;
    return stage_replace(s, s->installation) && start(s);
}

bool stage_replace(struct stage *s, const char *installation)
{
    struct error e = {0};

    node_close(&s->nodes[0]);
    s->installation = installation;
    if (node_open(&s->nodes[0], &e) == ERR_OK)
        return true;
    stage_skip(s, "the port was taken meanwhile: %s", e.text);
    return false;
}

/* ---- before and after ---- */

static void name_run(struct stage *s)
{
    unsigned char dice[20];

    if (getrandom(dice, sizeof dice, 0) != (ssize_t)sizeof dice)
        memset(dice, (int)getpid() & 0xff, sizeof dice);
    for (size_t i = 0; i < 8; i++)
        (void)snprintf(s->run + 2 * i, 3, "%02x", dice[i]);
    (void)snprintf(s->bearer, sizeof s->bearer, "intact_check_");
    for (size_t i = 8, at = strlen(s->bearer); i < sizeof dice; i++, at += 2)
        (void)snprintf(s->bearer + at, 3, "%02x", dice[i]);
}

static void watch_signals(struct stage *s)
{
    static const int numbers[] = {SIGINT, SIGTERM};

    for (size_t i = 0; i < COUNT_OF(numbers); i++) {
        int err = uv_signal_init(&s->loop, &s->signals[i]);
        ASSERT(err == 0);
        s->signals[i].data = s;
        (void)uv_signal_start(&s->signals[i], on_signal, numbers[i]);
    }
}

enum err stage_init(struct stage *s, const struct check_settings *settings, struct error *e)
{
    *s = (struct stage){.settings = settings, .node_count = 1, .installation = INSTALLATION_OWN};
    name_run(s);
    list_init(&s->calls);
    list_init(&s->asked);
    if (settings->agent)
        (void)snprintf(s->agent, sizeof s->agent, "%s", settings->agent);
    if (uv_loop_init(&s->loop) != 0)
        return error_set(e, ERR_IO, "no event loop");
    (void)uv_timer_init(&s->loop, &s->tick); /* cannot fail */
    s->tick.data = s;
    (void)uv_timer_start(&s->tick, on_tick, TICK_MS, TICK_MS);
    watch_signals(s);
    child_adopt();
    s->child.out = -1;
    s->child.verbose = settings->verbose;
    s->ends_at = clock_boot_ms() + settings->limit_ms;
    for (unsigned i = 0; i < NODES_MAX; i++) {
        s->nodes[i].stage = s;
        (void)snprintf(s->nodes[i].name, sizeof s->nodes[i].name, "check-%u", i + 1);
    }
    return settings->command ? ERR_OK : node_open(&s->nodes[0], e);
}

void stage_fini(struct stage *s)
{
    child_kill(&s->child);
    for (unsigned i = 0; i < NODES_MAX; i++)
        node_close(&s->nodes[i]);
    uv_close((uv_handle_t *)&s->tick, NULL);
    for (size_t i = 0; i < COUNT_OF(s->signals); i++)
        uv_close((uv_handle_t *)&s->signals[i], NULL);
    while (uv_run(&s->loop, UV_RUN_DEFAULT) != 0)
        continue;
    int err = uv_loop_close(&s->loop);
    ASSERT(err == 0);
    arena_fini(&s->arena);
}

static void reset(struct stage *s, const struct check_scenario *scenario)
{
    s->scenario = scenario;
    s->verdict = (struct check_verdict){.scenario = scenario};
    s->is_decided = s->may_end = s->knows_nodes = s->in_pieces = s->is_ornate = false;
    s->is_old_clock = s->tells_delay = s->stops_in_beats = s->refuses_bearer = false;
    s->fault_count = s->stop_count = 0;
    s->park_ms = PARK_MS;
    s->delay_ms = s->places = s->probes = 0;
    s->node_count = 1;
    s->installation = INSTALLATION_OWN;
    s->misdirected = 0;
    s->serial_before = s->call_serial;
    s->instance[0] = 0; /* a rule examines it within a scenario */
}

bool stage_begin(struct stage *s, const struct check_scenario *scenario)
{
    struct error e = {0};

    reset(s, scenario);
    if (s->settings->command && node_open(&s->nodes[0], &e) != ERR_OK) {
        stage_wrong(s, "a port to listen at", "%s", e.text);
        return false;
    }
    return start(s);
}

/* An agent that calls by itself continues; its old requests are dropped, and any results for them
 * accepted. */
static void leave_it(struct stage *s)
{
    LIST_FOREACH (l, after, &s->asked) {
        CONTAINER_OF(l, struct asked, link)->is_old = true;
        CONTAINER_OF(l, struct asked, link)->to_give = 0;
    }
    LIST_FOREACH (l, after, &s->calls) {
        struct call *c = CONTAINER_OF(l, struct call, link);
        if (!c->http || c->ended_at)
            continue;
        c->ended_at = clock_boot_ms();
        http_problem(c->http, 503, "busy", "the next scenario begins");
    }
}

static bool is_quiet(const struct stage *s)
{
    LIST_FOREACH (l, after, &s->calls) {
        if (CONTAINER_OF(l, struct call, link)->http)
            return false;
    }
    return true;
}

void stage_end(struct stage *s)
{
    node_close(&s->nodes[1]);
    if (s->settings->command) {
        child_kill(&s->child);
        node_close(&s->nodes[0]);
    } else {
        leave_it(s);
    }
    while (!is_quiet(s))
        (void)uv_run(&s->loop, UV_RUN_ONCE);
    list_init(&s->calls);
    if (!s->settings->command)
        return; /* its tokens must remain known */
    list_init(&s->asked);
    arena_fini(&s->arena);
}
