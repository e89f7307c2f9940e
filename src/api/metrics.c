/*
 * GET /metrics in Prometheus' text format: counts of this node (node/metrics.c) and what the parts
 * know of themselves. Names and labels are bounded; docs/metrics.md lists them.
 */

#include <dirent.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "alerts/alerts.h"
#include "api/events.h"
#include "api/handlers.h"
#include "background/alerts.h"
#include "background/messages.h"
#include "background/operations.h"
#include "background/retention.h"
#include "background/schedules.h"
#include "background/submission_inbox.h"
#include "base/map.h"
#include "node/node.h"
#include "node/offload.h"
#include "node/readings.h"
#include "operations/runner.h"
#include "outbox/courier.h"

enum { AGENTS_NAMED = 100 };

/* ---- Prometheus' text format ---- */

static void head(struct buf *b, const char *name, const char *type, const char *help)
{
    buf_fmt(b, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

static void single(struct buf *b, const char *name, const char *type, const char *help, uint64_t v)
{
    head(b, name, type, help);
    buf_fmt(b, "%s %" PRIu64 "\n", name, v);
}

/* Whatever a label's value is, it ends where it is meant to. */
static void label_value(struct buf *b, struct slice v)
{
    for (size_t i = 0; i < v.len; i++) {
        if (v.ptr[i] == '\n') {
            buf_str(b, "\\n");
            continue;
        }
        if (v.ptr[i] == '\\' || v.ptr[i] == '"')
            buf_byte(b, '\\');
        buf_byte(b, v.ptr[i]);
    }
}

static void seconds(struct buf *b, uint64_t us)
{
    buf_fmt(b, "%" PRIu64 ".%06" PRIu64, us / 1000000, us % 1000000);
}

/* Bounds in microseconds are written in seconds. */
static void histogram(struct buf *b, const char *name, const char *labels,
                      const struct histogram *h, const uint64_t bounds[BOUNDS_MAX], bool time)
{
    const char *comma = *labels ? "," : "";
    const char *open = *labels ? "{" : "";
    const char *close = *labels ? "}" : "";
    uint64_t sum = 0;

    for (size_t i = 0; i < BOUNDS_MAX; i++) {
        sum += h->counts[i];
        buf_fmt(b, "%s_bucket{%s%sle=\"", name, labels, comma);
        if (time)
            seconds(b, bounds[i]);
        else
            buf_fmt(b, "%" PRIu64, bounds[i]);
        buf_fmt(b, "\"} %" PRIu64 "\n", sum);
    }
    sum += h->counts[BOUNDS_MAX];
    buf_fmt(b, "%s_bucket{%s%sle=\"+Inf\"} %" PRIu64 "\n", name, labels, comma, sum);
    buf_fmt(b, "%s_sum%s%s%s ", name, open, labels, close);
    if (time)
        seconds(b, h->sum);
    else
        buf_fmt(b, "%" PRIu64, h->sum);
    buf_fmt(b, "\n%s_count%s%s%s %" PRIu64 "\n", name, open, labels, close, sum);
}

/* ---- what there is ---- */

static void put_scheduler(struct buf *b, const struct metrics *m, const struct scheduler_stats *st)
{
    single(b, "intact_tasks_submitted_total", "counter", "New tasks accepted by this node.",
           st->submitted);
    single(b, "intact_tasks_existed_total", "counter",
           "Submissions of a task that existed with the same content.", m->tasks_existed);
    single(b, "intact_tasks_refused_total", "counter",
           "Submissions that were not valid, or whose id exists with other content.",
           m->tasks_refused);
    single(b, "intact_state_changes_total", "counter", "Task rows written.", st->changes);
    single(b, "intact_batches_total", "counter", "Jobs sent to the store.", st->batches);
    single(b, "intact_conflicts_total", "counter",
           "Changes refused because the row had another revision.", st->conflicts);
    single(b, "intact_claims_total", "counter", "Tasks claimed.", st->claims);
    single(b, "intact_tasks_in_memory", "gauge", "Tasks in memory.", st->live);
    single(b, "intact_open_attempts", "gauge", "Attempts without a result.", st->open_attempts);
    single(b, "intact_waiting_steps", "gauge", "Steps waiting for a place.", st->waiting);
    single(b, "intact_parked_calls", "gauge", "Work calls waiting for work.", st->parked);
}

static void put_submissions(struct buf *b, const struct server *sv)
{
    struct intake_stats st;

    inbox_stats(sv, &st);
    head(b, "intact_submissions_total", "counter",
         "Submissions by SQL that this node processed, by outcome.");
    buf_fmt(b, "intact_submissions_total{outcome=\"accepted\"} %" PRIu64 "\n", st.accepted);
    buf_fmt(b, "intact_submissions_total{outcome=\"existed\"} %" PRIu64 "\n", st.existed);
    buf_fmt(b, "intact_submissions_total{outcome=\"refused\"} %" PRIu64 "\n", st.refused);
    single(b, "intact_submissions_refused", "gauge",
           "Refused submissions that were not dropped, at most 10000.", st.refused_now);
    single(b, "intact_signals_refused", "gauge",
           "Refused signals by SQL that were not dropped, at most 10000.", st.signals_refused_now);
}

static void put_ends(struct buf *b, const struct metrics *m, const struct scheduler_stats *st)
{
    static const enum task_state ends[] = {TASK_PROCESSED, TASK_COMPENSATED, TASK_ERROR};

    head(b, "intact_tasks_ended_total", "counter", "Tasks that ended on this node, by state.");
    for (size_t i = 0; i < COUNT_OF(ends); i++)
        buf_fmt(b, "intact_tasks_ended_total{state=\"%s\"} %" PRIu64 "\n", task_state_text(ends[i]),
                m->tasks_ended[ends[i]]);
    head(b, "intact_attempts_total", "counter",
         "Attempts that ended on this node, by direction and outcome.");
    for (int d = DIRECTION_FORWARD; d <= DIRECTION_UNDO; d++)
        for (int o = OUTCOME_COMPLETED; o < ATTEMPT_ENDS; o++)
            buf_fmt(b, "intact_attempts_total{direction=\"%s\",outcome=\"%s\"} %" PRIu64 "\n",
                    direction_text((enum direction)d), outcome_text((enum outcome)o),
                    st->attempts[d][o]);
    head(b, "intact_heartbeats_total", "counter", "Heartbeats, by outcome.");
    for (int i = 0; i < BEAT_STATUS_COUNT; i++)
        buf_fmt(b, "intact_heartbeats_total{status=\"%s\"} %" PRIu64 "\n",
                beat_status_text((enum beat_status)i), st->beats[i]);
}

static void put_leases(struct buf *b, const struct server *sv, const struct scheduler_stats *st)
{
    struct supervisor_stats su;

    supervisor_stats(sv->supervisor, &su);
    single(b, "intact_tasks_unreadable_total", "counter", "Failed reads of task rows by this node.",
           st->unreadable + su.unreadable);
    single(b, "intact_supervisor_scans_total", "counter", "Scans for overdue work.", su.scans);
    single(b, "intact_supervisor_overdue_total", "counter",
           "Overdue attempts and tasks found by scans.", su.overdue);
    single(b, "intact_supervisor_requests_total", "counter", "Requests written by the supervisor.",
           su.requests);
    single(b, "intact_supervisor_leads", "gauge", "1 while the supervisor of this node leads.",
           su.leads);
    single(b, "intact_node_lease_held", "gauge", "1 while this node holds its lease.", st->leased);
}

static uint64_t held_seconds(const struct store *s)
{
    int64_t since = atomic_load(&s->held_since);

    return since ? (uint64_t)max_i64((int64_t)(uv_hrtime() / 1000000) - since, 0) / 1000 : 0;
}

static void put_store(struct buf *b, const struct server *sv)
{
    const struct server_config *c = &sv->config;
    struct stat st;

    head(b, "intact_commit_duration_seconds", "histogram", "Time that the store took for a batch.");
    histogram(b, "intact_commit_duration_seconds", "", &sv->metrics.commits,
              metrics_duration_bounds, true);
    head(b, "intact_batch_changes", "histogram", "Changes of tasks in a batch.");
    histogram(b, "intact_batch_changes", "", &sv->metrics.batches, metrics_batch_bounds, false);
    if (c->store->ops->syncs)
        single(b, "intact_store_syncs_total", "counter",
               "Syncs of the store to disk by this process.", c->store->ops->syncs(c->store));
    single(b, "intact_store_trouble", "gauge", "1 while the store is unavailable.",
           server_trouble(sv, NULL, 0) != ERR_OK);
    single(b, "intact_store_held_seconds", "gauge",
           "How long a transaction of another program has blocked writes.", held_seconds(c->store));
    single(b, "intact_store_at_risk", "gauge",
           "1 while committed changes may be lost in a crash; the log says why.",
           atomic_load(&c->store->at_risk));
    single(b, "intact_tasks_deleted_total", "counter", "Tasks deleted by this node's retention.",
           sv->metrics.tasks_deleted);
    single(b, "intact_tasks_archived_total", "counter",
           "Tasks archived by this node before their deletion.", sv->metrics.tasks_archived);
    single(b, "intact_retention_trouble", "gauge",
           "1: this node leads, and cannot archive or delete what it should.",
           retention_trouble(sv, NULL, NULL));
    single(b, "intact_store_troubles_total", "counter", "How often the store began to fail.",
           sv->metrics.troubles);
    if (c->store_file_count == 0)
        return; /* it lies elsewhere */
    head(b, "intact_store_file_bytes", "gauge", "Size of the store's files.");
    for (size_t i = 0; i < c->store_file_count; i++)
        if (stat(c->store_files[i].path, &st) == 0)
            buf_fmt(b, "intact_store_file_bytes{file=\"%s\"} %" PRId64 "\n", c->store_files[i].name,
                    (int64_t)st.st_size);
}

static uint64_t requests_of(const struct metrics *m, unsigned route)
{
    uint64_t sum = 0;

    for (size_t c = 0; c < STATUS_CLASSES; c++)
        sum += m->requests[route][c];
    return sum;
}

/* Routes without requests are left out, except for the first: a name is never without a sample. */
static void put_requests(struct buf *b, const struct metrics *m)
{
    static const char *const classes[STATUS_CLASSES] = {"gone", "1xx", "2xx", "3xx", "4xx", "5xx"};

    head(b, "intact_http_requests_total", "counter", "Requests, by route and class of status.");
    for (unsigned r = 0; r < ROUTES_MAX; r++)
        for (size_t c = 0; c < STATUS_CLASSES; c++) {
            if (m->requests[r][c] == 0 && !(r == 0 && c == 2))
                continue;
            buf_str(b, "intact_http_requests_total{");
            m->route_label(b, r);
            buf_fmt(b, ",code=\"%s\"} %" PRIu64 "\n", classes[c], m->requests[r][c]);
        }
    head(b, "intact_http_request_duration_seconds", "histogram",
         "Time from the complete request to the complete answer, including waits.");
    for (unsigned r = 0; r < ROUTES_MAX; r++) {
        CLEANUP(buf_fini) struct buf labels = {0};
        if (requests_of(m, r) == 0 && r != 0)
            continue;
        m->route_label(&labels, r);
        histogram(b, "intact_http_request_duration_seconds", labels.ptr, &m->durations[r],
                  metrics_duration_bounds, true);
    }
}

/* ---- agents ---- */

struct agent_sum {
    uint64_t waiting, parked, instances, limited;
    uint64_t times_limited;
    uint64_t health[HEALTH_STATE_COUNT];
};

static void add_agent(struct agent_sum *s, const struct agent *a)
{
    s->waiting += a->waiting;
    s->parked += a->parked;
    s->instances += a->instances.len;
    s->times_limited += a->times_held;
    const struct lane *l = NULL;
    for (size_t i = 0; a->waiting > 0 && (l = map_next(&a->lanes, &i));)
        s->limited += a->held || l->held ? l->queue.len : 0;
    const struct instance *in = NULL;
    for (size_t i = 0; (in = map_next(&a->instances, &i));)
        s->health[in->health.state]++;
}

static void agent_line(struct buf *b, const char *name, struct slice agent, uint64_t v)
{
    buf_fmt(b, "%s{agent=\"", name);
    label_value(b, agent);
    buf_fmt(b, "\"} %" PRIu64 "\n", v);
}

static void put_agent_family(struct buf *b, const struct agent *const *list, size_t named,
                             const struct agent_sum *other, size_t field)
{
    static const struct {
        const char *name, *help;
    } families[] = {
        {"intact_agent_waiting_steps", "Steps waiting for a place, by agent."},
        {"intact_agent_parked_calls", "Work calls waiting for work, by agent."},
        {"intact_agent_instances", "Instances known to this node, by agent."},
        {"intact_agent_limited", "Steps waiting because of a limit, by agent."},
    };

    head(b, families[field].name, "gauge", families[field].help);
    for (size_t i = 0; i <= named; i++) {
        struct agent_sum s = {0};
        if (i == named)
            s = *other;
        else
            add_agent(&s, list[i]);
        agent_line(b, families[field].name, i == named ? SLICE("other") : list[i]->name,
                   field == 0   ? s.waiting
                   : field == 1 ? s.parked
                   : field == 2 ? s.instances
                                : s.limited);
    }
}

static void put_health(struct buf *b, struct slice agent, const struct agent_sum *s)
{
    for (size_t i = 0; i < HEALTH_STATE_COUNT; i++) {
        buf_str(b, "intact_instance_health{agent=\"");
        label_value(b, agent);
        buf_fmt(b, "\",health=\"%s\"} %" PRIu64 "\n", health_state_text((enum health_state)i),
                s->health[i]);
    }
}

static void put_routing(struct buf *b, const struct agent *const *list, size_t named,
                        const struct agent_sum *other)
{
    head(b, "intact_agent_limited_total", "counter", "How often a limit delayed a step, by agent.");
    for (size_t i = 0; i < named; i++)
        agent_line(b, "intact_agent_limited_total", list[i]->name, list[i]->times_held);
    agent_line(b, "intact_agent_limited_total", SLICE("other"), other->times_limited);
    head(b, "intact_instance_health", "gauge", "Instances, by agent and health.");
    for (size_t i = 0; i < named; i++) {
        struct agent_sum s = {0};
        add_agent(&s, list[i]);
        put_health(b, list[i]->name, &s);
    }
    put_health(b, SLICE("other"), other);
}

/* ---- breakers: for all others, the worst state and the sum of their transitions ---- */

struct breaker_sum {
    enum breaker_state state;
    uint64_t transitions[BREAKER_STATE_COUNT];
};

static void add_breaker(struct breaker_sum *s, const struct agent *a)
{
    if (a->breaker.state > s->state)
        s->state = a->breaker.state;
    for (size_t i = 0; i < BREAKER_STATE_COUNT; i++)
        s->transitions[i] += a->transitions[i];
}

static void put_transitions(struct buf *b, struct slice agent, const struct breaker_sum *s)
{
    for (size_t i = 0; i < BREAKER_STATE_COUNT; i++) {
        buf_str(b, "intact_breaker_transitions_total{agent=\"");
        label_value(b, agent);
        buf_fmt(b, "\",to=\"%s\"} %" PRIu64 "\n", breaker_state_text((enum breaker_state)i),
                s->transitions[i]);
    }
}

static void put_breakers(struct buf *b, const struct agent *const *list, size_t named,
                         const struct breaker_sum *other)
{
    head(b, "intact_breaker_state", "gauge",
         "State of the breaker, by agent: 0 closed, 1 half-open, 2 open.");
    for (size_t i = 0; i < named; i++)
        agent_line(b, "intact_breaker_state", list[i]->name, list[i]->breaker.state);
    agent_line(b, "intact_breaker_state", SLICE("other"), other->state);
    head(b, "intact_breaker_transitions_total", "counter",
         "State changes of breakers, by agent and new state.");
    for (size_t i = 0; i < named; i++) {
        struct breaker_sum s = {0};
        add_breaker(&s, list[i]);
        put_transitions(b, list[i]->name, &s);
    }
    put_transitions(b, SLICE("other"), other);
}

/* An agent that is called "other" is one of the others. */
static void put_agents(struct buf *b, const struct dispatch *d)
{
    struct agent **list = (struct agent **)map_sorted(&d->agents);
    const struct agent *const *all = (const struct agent *const *)list;
    struct agent_sum other = {0};
    struct breaker_sum breakers = {0};
    size_t named = 0;

    for (size_t i = 0; i < d->agents.len; i++) {
        if (named < AGENTS_NAMED && !slice_is(list[i]->name, "other")) {
            list[named++] = list[i];
            continue;
        }
        add_agent(&other, list[i]);
        add_breaker(&breakers, list[i]);
    }
    for (size_t field = 0; field < 4; field++)
        put_agent_family(b, all, named, &other, field);
    put_routing(b, all, named, &other);
    put_breakers(b, all, named, &breakers);
    free((void *)list);
}

/* ---- the process ---- */

static uint64_t open_files(void)
{
    DIR *dir = opendir("/proc/self/fd");
    uint64_t count = 0;

    if (!dir)
        return 0;
    for (const struct dirent *d = NULL; (d = readdir(dir));)
        count += d->d_name[0] != '.';
    (void)closedir(dir);
    return count > 0 ? count - 1 : 0; /* that one is ours */
}

static void memory_pages(uint64_t *ret_virtual, uint64_t *ret_resident)
{
    FILE *f = fopen("/proc/self/statm", "re");

    *ret_virtual = *ret_resident = 0;
    if (!f)
        return;
    /* NOLINTNEXTLINE(cert-err34-c): the kernel wrote it */
    if (fscanf(f, "%" SCNu64 " %" SCNu64, ret_virtual, ret_resident) != 2)
        *ret_virtual = *ret_resident = 0;
    (void)fclose(f); /* it was only read */
}

static uint64_t us_of(struct timeval t)
{
    return (uint64_t)t.tv_sec * 1000000 + (uint64_t)t.tv_usec;
}

static void put_process(struct buf *b, const struct metrics *m)
{
    uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
    uint64_t virtual = 0;
    uint64_t resident = 0;
    struct rusage ru = {0};
    struct rlimit files = {0};

    (void)getrusage(RUSAGE_SELF, &ru); /* these two cannot fail for these arguments */
    (void)getrlimit(RLIMIT_NOFILE, &files);
    memory_pages(&virtual, &resident);
    head(b, "process_cpu_seconds_total", "counter", "User and system CPU time, in seconds.");
    buf_str(b, "process_cpu_seconds_total ");
    seconds(b, us_of(ru.ru_utime) + us_of(ru.ru_stime));
    buf_byte(b, '\n');
    single(b, "process_resident_memory_bytes", "gauge", "Resident memory.", resident * page);
    single(b, "process_virtual_memory_bytes", "gauge", "Virtual memory.", virtual * page);
    single(b, "process_open_fds", "gauge", "Open files and sockets.", open_files());
    single(b, "process_max_fds", "gauge", "Maximum number of open files and sockets.",
           (uint64_t)files.rlim_cur);
    head(b, "process_start_time_seconds", "gauge",
         "Start time of the process, in seconds since 1970.");
    buf_str(b, "process_start_time_seconds ");
    seconds(b, (uint64_t)m->started_at * 1000);
    buf_byte(b, '\n');
    head(b, "intact_build_info", "gauge", "Always 1; the label is the version.");
    buf_str(b, "intact_build_info{version=\"" INTACT_VERSION "\"} 1\n");
}

static void put_messages(struct buf *b, struct server *sv)
{
    struct courier_stats st;
    struct outbox_census c;

    messages_stats(sv, &st, &c);
    head(b, "intact_outbox_messages", "gauge",
         "Undelivered messages in the store, at most 10000 of each state.");
    buf_fmt(b, "intact_outbox_messages{state=\"waiting\"} %" PRIu64 "\n", c.waiting);
    buf_fmt(b, "intact_outbox_messages{state=\"dead\"} %" PRIu64 "\n", c.dead);
    single(b, "intact_outbox_oldest_seconds", "gauge",
           "Age of the oldest waiting message; 0 if there is none.",
           c.oldest_at ? (uint64_t)max_i64(0, server_now(sv) - c.oldest_at) / 1000 : 0);
    single(b, "intact_outbox_targets_paused", "gauge",
           "Failing targets, to which deliveries are paused; on the leader.", st.paused);
    single(b, "intact_messages_delivered_total", "counter", "Delivered messages.", st.delivered);
    single(b, "intact_messages_failed_total", "counter", "Failed deliveries of messages.",
           st.failed);
    single(b, "intact_messages_set_aside_total", "counter",
           "Messages set aside in the store because they could not be sent at once.", st.set_aside);
    single(b, "intact_messages_dead_total", "counter", "Messages that became dead letters.",
           st.dead);
}

static void put_readings(struct buf *b, const struct server *sv)
{
    struct readings_stats st;

    readings_stats(sv->readings, &st);
    single(b, "intact_readings_waiting", "gauge", "Read requests waiting for the store.",
           st.waiting);
    single(b, "intact_readings_refused_total", "counter",
           "Read requests refused because too many of the same token waited.", st.refused);
}

/* What is done on threads, of either kind. */
static void put_offloads(struct buf *b, const struct server *sv)
{
    static const char *const kinds[] = {"bodies", "definitions"};
    struct offload_stats st[2];

    offload_stats(sv->bodies, &st[0]);
    offload_stats(sv->definitions, &st[1]);
    head(b, "intact_aside_waiting", "gauge",
         "Large bodies and definitions being parsed, or waiting for that.");
    for (size_t i = 0; i < COUNT_OF(kinds); i++)
        buf_fmt(b, "intact_aside_waiting{of=\"%s\"} %zu\n", kinds[i], st[i].waiting);
    head(b, "intact_aside_total", "counter", "Pieces of work executed outside the event loop.");
    for (size_t i = 0; i < COUNT_OF(kinds); i++)
        buf_fmt(b, "intact_aside_total{of=\"%s\"} %" PRIu64 "\n", kinds[i], st[i].run);
    head(b, "intact_aside_refused_total", "counter",
         "Large bodies and definitions refused because too many waited.");
    for (size_t i = 0; i < COUNT_OF(kinds); i++)
        buf_fmt(b, "intact_aside_refused_total{of=\"%s\"} %" PRIu64 "\n", kinds[i], st[i].refused);
}

static void put_schedules(struct buf *b, const struct server *sv)
{
    struct ticker_stats st;

    schedules_stats(sv, &st);
    head(b, "intact_schedule_moments_total", "counter",
         "Moments of schedules decided by this node, by outcome.");
    buf_fmt(b,
            "intact_schedule_moments_total{outcome=\"fired\"} %" PRIu64
            "\nintact_schedule_moments_total{outcome=\"missed\"} %" PRIu64
            "\nintact_schedule_moments_total{outcome=\"skipped\"} %" PRIu64
            "\nintact_schedule_moments_total{outcome=\"failed\"} %" PRIu64 "\n",
            st.fired, st.missed, st.skipped, st.failed);
    single(b, "intact_schedules_waiting", "gauge",
           "Schedules that wait until a run has ended, as the leader saw last.", st.wait_count);
}

static void put_operations(struct buf *b, const struct server *sv)
{
    struct runner_stats st;

    operations_stats(sv, &st);
    single(b, "intact_operations_running", "gauge",
           "Operations on many tasks running on this node.", st.running);
    head(b, "intact_operation_tasks_total", "counter", "Tasks handled by operations, by outcome.");
    buf_fmt(b,
            "intact_operation_tasks_total{outcome=\"done\"} %" PRIu64
            "\nintact_operation_tasks_total{outcome=\"refused\"} %" PRIu64
            "\nintact_operation_tasks_total{outcome=\"failed\"} %" PRIu64
            "\nintact_operation_tasks_total{outcome=\"gone\"} %" PRIu64 "\n",
            st.done, st.refused, st.failed, st.gone);
}

static void put_events(struct buf *b, const struct server *sv)
{
    struct events_stats st;

    events_stats(sv, &st);
    head(b, "intact_events_listeners", "gauge", "Open streams of events.");
    buf_fmt(b,
            "intact_events_listeners{of=\"all\"} %zu\nintact_events_listeners{of=\"task\"} %zu\n",
            st.listeners_all, st.listeners_task);
    single(b, "intact_events_sent_total", "counter", "Events written to streams.",
           sv->metrics.events_sent);
    single(b, "intact_events_gaps_total", "counter", "Gap events written to streams.",
           sv->metrics.gaps);
}

/* On a node that does not lead all are 0. */
static void put_alerts(struct buf *b, const struct server *sv)
{
    uint64_t taken = 0;
    uint64_t failed = 0;

    alerts_deliveries(sv, &taken, &failed);
    head(b, "intact_alerts_open", "gauge", "Alerts that are not resolved, by condition.");
    for (int c = 0; c < CONDITION_TEST; c++)
        buf_fmt(b, "intact_alerts_open{condition=\"%s\"} %zu\n",
                condition_text((enum alert_condition)c),
                alerts_open_count(sv, (enum alert_condition)c));
    head(b, "intact_alert_deliveries_total", "counter",
         "Deliveries of alerts to sinks, by outcome.");
    buf_fmt(b,
            "intact_alert_deliveries_total{outcome=\"taken\"} %" PRIu64
            "\nintact_alert_deliveries_total{outcome=\"failed\"} %" PRIu64 "\n",
            taken, failed);
}

void metrics_get(struct server *sv, struct http_request *r)
{
    struct scheduler_stats st;
    CLEANUP(buf_fini) struct buf b = {0};

    scheduler_stats(sv->scheduler, &st);
    put_scheduler(&b, &sv->metrics, &st);
    put_submissions(&b, sv);
    put_ends(&b, &sv->metrics, &st);
    put_leases(&b, sv, &st);
    put_store(&b, sv);
    put_readings(&b, sv);
    put_offloads(&b, sv);
    put_requests(&b, &sv->metrics);
    put_agents(&b, scheduler_dispatch(sv->scheduler));
    put_messages(&b, sv);
    put_operations(&b, sv);
    put_schedules(&b, sv);
    put_events(&b, sv);
    put_alerts(&b, sv);
    put_process(&b, &sv->metrics);
    http_answer(r, 200, "text/plain; version=0.0.4; charset=utf-8", buf_view(&b), NULL);
}
