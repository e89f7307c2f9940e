/* Reads the options, decides when each task is due, and runs the loop. Connections are in net.c,
 * the detection of ends in ends.c, the output in report.c; flow.h explains open and closed loop. */

#include "flow/flow.h"

#include <errno.h>
#include <getopt.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

enum { EVENTS = 256, TURN_MS = 50 };

static const char usage[] =
    "usage: bench-flow --tasks N (--rate TASKS_A_SECOND [--poisson] | --in-flight N) [OPTIONS]\n"
    "  --workflow NAME     bench\n"
    "  --payload BYTES     of each task's input, from 20; 300\n"
    "  --ends HOW          events | wait | count | answer: how ends are learned; events\n"
    "  --lines N           tasks of one request, at most; 1\n"
    "  --connections N     closed loop: as many as are in flight, at most 1000; open loop: 500\n"
    "  --priorities        0 to 9 in turn\n"
    "  --not-before TIME   of all tasks, such as 2099-01-01T00:00:00.000Z\n"
    "  --prefix TEXT       of ids; t\n"
    "  --path PATH         where to submit to something else that answers 200 or 201\n"
    "  --patience S        without any end; 120\n"
    "  --seed N            of random moments; 1\n"
    "The servers are $INTACT_SERVER (http://ADDRESS:PORT, with commas between), the token "
    "$INTACT_TOKEN.\n";

void flow_fail(const char *fmt, ...)
{
    va_list args;

    (void)fputs("bench-flow: ", stderr);
    va_start(args, fmt);
    (void)vfprintf(stderr, fmt, args);
    va_end(args);
    (void)fputc('\n', stderr);
    exit(1);
}

/* ---- options ---- */

static void read_servers(struct flow_options *o)
{
    const char *at = getenv("INTACT_SERVER");

    for (; at && *at; at += strcspn(at, ","), at += *at == ',') {
        int n = o->server_count;
        if (n == SERVERS_MAX)
            flow_fail("INTACT_SERVER has more than %d servers", SERVERS_MAX);
        if (sscanf(at, "http://%63[0-9.]:%d", o->servers[n].host, &o->servers[n].port) != 2)
            flow_fail("INTACT_SERVER is not http://ADDRESS:PORT: %s", at);
        o->server_count++;
    }
    if (o->server_count == 0)
        flow_fail("INTACT_SERVER is not set; set it to http://ADDRESS:PORT");
}

static long number(const char *name, const char *text, long least)
{
    char *end = NULL;
    long n = strtol(text, &end, 10);

    if (*text == 0 || *end || n < least || n > 100000000)
        flow_fail("--%s %s: a number from %ld is expected", name, text, least);
    return n;
}

static enum ends ends_of(const char *text)
{
    static const char *const names[] = {"events", "wait", "count", "answer"};

    for (size_t i = 0; i < COUNT_OF(names); i++)
        if (strcmp(text, names[i]) == 0)
            return (enum ends)i;
    flow_fail("--ends %s: events, wait, count or answer is expected", text);
}

static const struct option names[] = {
    {"tasks", required_argument, NULL, 't'},       {"rate", required_argument, NULL, 'r'},
    {"in-flight", required_argument, NULL, 'n'},   {"poisson", no_argument, NULL, 'P'},
    {"workflow", required_argument, NULL, 'w'},    {"payload", required_argument, NULL, 'b'},
    {"ends", required_argument, NULL, 'e'},        {"lines", required_argument, NULL, 'l'},
    {"connections", required_argument, NULL, 'c'}, {"priorities", no_argument, NULL, 'p'},
    {"not-before", required_argument, NULL, 'B'},  {"prefix", required_argument, NULL, 'x'},
    {"path", required_argument, NULL, 'u'},        {"patience", required_argument, NULL, 's'},
    {"seed", required_argument, NULL, 'S'},        {NULL, 0, NULL, 0},
};

static void take_option(struct flow_options *o, int letter, const char *name)
{
    /* clang-format off */
    switch (letter) {
    case 't': o->tasks = number(name, optarg, 1); break;
    case 'r': o->rate = (double)number(name, optarg, 1); break;
    case 'n': o->in_flight = number(name, optarg, 1); break;
    case 'P': o->poisson = true; break;
    case 'w': o->workflow = optarg; break;
    case 'b': o->payload = number(name, optarg, 20); break;
    case 'e': o->ends = ends_of(optarg); break;
    case 'l': o->lines = number(name, optarg, 1); break;
    case 'c': o->connections = number(name, optarg, 1); break;
    case 'p': o->priorities = true; break;
    case 'B': o->not_before = optarg; break;
    case 'x': o->prefix = optarg; break;
    case 'u': o->path = optarg; o->bare = true; break;
    case 's': o->patience_s = number(name, optarg, 1); break;
    case 'S': o->seed = (uint64_t)number(name, optarg, 0); break;
    default: (void)fputs(usage, stderr); exit(2);
    }
    /* clang-format on */
}

static void read_options(struct flow_options *o, int argc, char **argv)
{
    int letter = 0;
    int which = 0;

    *o = (struct flow_options){.workflow = "bench",
                               .prefix = "t",
                               .path = "/v1/tasks",
                               .payload = 300,
                               .lines = 1,
                               .patience_s = 120,
                               .seed = 1};
    while ((letter = getopt_long(argc, argv, "", names, &which)) >= 0)
        take_option(o, letter, letter == '?' ? "" : names[which].name);
    if (o->tasks == 0 || (o->rate > 0) == (o->in_flight > 0) || optind != argc) {
        (void)fputs(usage, stderr);
        exit(2);
    }
    if (o->connections == 0)
        o->connections = o->rate > 0 ? 500 : o->in_flight < 1000 ? o->in_flight : 1000;
    if (o->ends == ENDS_WAIT) {
        o->lines = 1; /* an answer for several lines is no latency of one task */
        o->path = "/v1/tasks?wait=5m";
    }
    read_servers(o);
    o->token = getenv("INTACT_TOKEN");
    if (o->token && !*o->token)
        o->token = NULL;
}

/* ---- the load ---- */

static uint64_t clock_ns(void)
{
    struct timespec ts;

    (void)clock_gettime(CLOCK_MONOTONIC, &ts);
    return (uint64_t)ts.tv_sec * UINT64_C(1000000000) + (uint64_t)ts.tv_nsec;
}

double flow_now(const struct flow *f)
{
    return (double)(clock_ns() - f->begun_ns) / 1e3;
}

static void make_due(struct flow *f, double at)
{
    f->due_at[f->due++] = at;
}

void flow_ended(struct flow *f, long n, int outcome)
{
    if (n >= f->due || f->ended_at[n] >= 0)
        return; /* reported twice, or a task of an earlier run */
    f->ended_at[n] = f->progress_at = flow_now(f);
    f->outcomes[outcome]++;
    f->ended++;
    if (f->o.rate == 0 && f->due < f->o.tasks)
        make_due(f, f->ended_at[n]);
}

static double gap_us(struct flow *f)
{
    double mean = 1e6 / f->o.rate;
    /* In (0, 1], so that its logarithm is finite. */
    double chance = ((double)(prng_next(&f->prng) >> 11) + 1) / 9007199254740992.0;

    return f->o.poisson ? -log(chance) * mean : mean;
}

/* For the open loop: a task's due time does not depend on when this function runs. */
static void make_all_due(struct flow *f)
{
    double now = flow_now(f);

    while (f->due < f->o.tasks && f->next_at <= now) {
        make_due(f, f->next_at);
        f->next_at += gap_us(f);
    }
}

static void put_task(struct flow *f, struct buf *b, long n)
{
    buf_fmt(b, "{\"workflow\":\"%s\",\"id\":\"%s-%ld\",", f->o.workflow, f->o.prefix, n);
    if (f->o.priorities)
        buf_fmt(b, "\"priority\":%ld,", n % 10);
    if (f->o.not_before)
        buf_fmt(b, "\"not_before\":\"%s\",", f->o.not_before);
    buf_str(b, "\"input\":");
    buf_slice(b, buf_view(&f->input));
    buf_byte(b, '}');
}

/* Sends due tasks while connections are free. */
static void send_due(struct flow *f)
{
    static struct buf body;

    while (f->sent < f->due && f->idle_count > 0) {
        struct conn *c = f->idle[--f->idle_count];
        long count = f->due - f->sent;
        double now = flow_now(f);
        c->first = f->sent;
        c->count = count < f->o.lines ? count : f->o.lines;
        buf_clear(&body);
        for (long i = 0; i < c->count; i++, f->sent++) {
            f->sent_at[f->sent] = now;
            put_task(f, &body, f->sent);
            if (c->count > 1)
                buf_byte(&body, '\n');
        }
        f->requests++;
        f->body_bytes += (double)body.len;
        net_ask(f, c, "POST", f->o.path, c->count > 1 ? "application/x-ndjson" : "application/json",
                buf_view(&body));
    }
}

/* The timer of the open loop expires when the next task is due, so that waiting costs no CPU
 * time. */
static void set_timer(struct flow *f)
{
    struct itimerspec at = {0};

    if (f->o.rate == 0 || f->due == f->o.tasks)
        return;
    uint64_t ns = f->begun_ns + (uint64_t)(f->next_at * 1e3) + 1;
    at.it_value.tv_sec = (time_t)(ns / UINT64_C(1000000000));
    at.it_value.tv_nsec = (long)(ns % UINT64_C(1000000000));
    if (timerfd_settime(f->timer, TFD_TIMER_ABSTIME, &at, NULL) != 0)
        flow_fail("timer: %s", strerror(errno));
}

static void turn(struct flow *f)
{
    struct epoll_event events[EVENTS];
    uint64_t times = 0;
    int n = epoll_wait(f->epoll, events, EVENTS, TURN_MS);

    for (int i = 0; i < n; i++) {
        if (events[i].data.ptr == f)
            (void)!read(f->timer, &times, sizeof times);
        else
            net_ready(f, events[i].data.ptr, events[i].events);
    }
}

static void watch_progress(const struct flow *f)
{
    if (flow_now(f) - f->progress_at > (double)f->o.patience_s * 1e6)
        flow_fail("nothing ended for %ld s; %ld of %ld tasks have ended, %ld were submitted",
                  f->o.patience_s, f->ended, f->o.tasks, f->sent);
}

static void run(struct flow *f)
{
    double counted_at = 0;

    f->begun_ns = clock_ns();
    f->progress_at = 0;
    f->next_at = 0;
    while (f->o.rate == 0 && f->due < f->o.in_flight && f->due < f->o.tasks)
        make_due(f, flow_now(f));
    while (f->ended < f->o.tasks || f->answered < f->o.tasks) {
        if (f->o.rate > 0)
            make_all_due(f);
        ends_look(f);
        send_due(f);
        set_timer(f);
        turn(f);
        if (f->o.ends == ENDS_COUNT && flow_now(f) - counted_at > TURN_MS * 1e3) {
            counted_at = flow_now(f);
            ends_begin(f);
        }
        watch_progress(f);
    }
}

static void begin(struct flow *f)
{
    struct epoll_event e = {.events = EPOLLIN, .data.ptr = f};
    size_t tasks = (size_t)f->o.tasks;

    f->epoll = epoll_create1(EPOLL_CLOEXEC);
    f->timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
    if (f->epoll < 0 || f->timer < 0 || epoll_ctl(f->epoll, EPOLL_CTL_ADD, f->timer, &e) != 0)
        flow_fail("epoll: %s", strerror(errno));
    f->due_at = calloc(tasks, sizeof(double));
    f->sent_at = calloc(tasks, sizeof(double));
    f->ended_at = calloc(tasks, sizeof(double));
    if (!f->due_at || !f->sent_at || !f->ended_at)
        flow_fail("no memory");
    for (size_t i = 0; i < tasks; i++)
        f->ended_at[i] = -1;
    buf_str(&f->input, "{\"text\":\"");
    while (f->input.len + 2 < (size_t)f->o.payload)
        buf_byte(&f->input, "an order, its customer, a card, an address "[f->input.len % 43]);
    buf_str(&f->input, "\"}");
    f->prng.state = f->o.seed;
    f->counted_before = -1;
    f->begun_ns = clock_ns();
    net_open(f);
    ends_begin(f);
    while (!ends_ready(f)) {
        turn(f);
        watch_progress(f);
    }
}

int main(int argc, char **argv)
{
    static struct flow f;
    struct rlimit files;

    if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
        files.rlim_cur = files.rlim_max;
        (void)setrlimit(RLIMIT_NOFILE, &files); /* connect reports an insufficient limit */
    }
    read_options(&f.o, argc, argv);
    begin(&f);
    run(&f);
    report_print(&f, f.progress_at / 1e6);
    net_close(&f);
    buf_fini(&f.input);
    free(f.due_at);
    free(f.sent_at);
    free(f.ended_at);
    return 0;
}
