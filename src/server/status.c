#include "server/internal.h"

#include "json/json.h"

void healthz_get(struct server *sv, struct http_request *r)
{
    (void)sv;
    http_answer(r, 200, "application/json", SLICE("{\"status\":\"ok\"}"), NULL);
}

void readyz_get(struct server *sv, struct http_request *r)
{
    if (sv->draining)
        http_problem(r, 503, "draining", "the server is ending");
    else if (sv->trouble_err != ERR_OK)
        http_problem(r, 503, "store", "%s", sv->trouble);
    else
        http_answer(r, 200, "application/json", SLICE("{\"status\":\"ready\"}"), NULL);
}

static void render_instances(struct buf *b, const struct agent *a)
{
    const struct instance *in = NULL;

    json_open(b, '[');
    for (size_t i = 0; (in = map_next(&a->instances, &i));) {
        size_t open = 0;
        for (const struct link *l = in->sent.next; l != &in->sent; l = l->next)
            open++;
        json_open(b, '{');
        json_key(b, "instance");
        json_string(b, in->name);
        json_key(b, "places");
        json_number(b, in->places);
        json_key(b, "open_attempts");
        json_number(b, (int64_t)open);
        json_key(b, "seen_at");
        json_time(b, in->seen_at);
        json_close(b, '}');
    }
    json_close(b, ']');
}

void agents_get(struct server *sv, struct http_request *r)
{
    const struct dispatch *d = scheduler_dispatch(sv->scheduler);
    const struct agent *a = NULL;
    CLEANUP(buf_fini) struct buf b = {0};

    json_open(&b, '{');
    json_key(&b, "agents");
    json_open(&b, '[');
    for (size_t i = 0; (a = map_next(&d->agents, &i));) {
        json_open(&b, '{');
        json_key(&b, "agent");
        json_string(&b, a->name);
        json_key(&b, "connected");
        json_bool(&b, dispatch_is_connected(a, server_now(sv)));
        json_key(&b, "parked_calls");
        json_number(&b, a->parked);
        json_key(&b, "waiting_steps");
        json_number(&b, (int64_t)a->queue.len);
        json_key(&b, "instances");
        render_instances(&b, a);
        json_close(&b, '}');
    }
    json_close(&b, ']');
    json_close(&b, '}');
    answer_json(r, 200, &b, NULL);
}

void nodes_get(struct server *sv, struct http_request *r)
{
    CLEANUP(buf_fini) struct buf b = {0};

    json_open(&b, '{');
    json_key(&b, "nodes");
    json_open(&b, '[');
    json_open(&b, '{');
    json_key(&b, "node");
    json_string(&b, slice_of(sv->config.node));
    json_key(&b, "boot");
    json_number(&b, (int64_t)sv->config.store->ops->boot(sv->config.store));
    json_key(&b, "version");
    json_string(&b, SLICE(INTACT_VERSION));
    json_close(&b, '}');
    json_close(&b, ']');
    json_close(&b, '}');
    answer_json(r, 200, &b, NULL);
}

static void metric(struct buf *b, const char *name, const char *type, const char *help, uint64_t v)
{
    buf_fmt(b, "# HELP intact_%s %s\n# TYPE intact_%s %s\nintact_%s %" PRIu64 "\n", name, help,
            name, type, name, v);
}

void metrics_get(struct server *sv, struct http_request *r)
{
    struct scheduler_stats st;
    struct supervisor_stats su;
    CLEANUP(buf_fini) struct buf b = {0};

    scheduler_stats(sv->scheduler, &st);
    supervisor_stats(sv->supervisor, &su);
    metric(&b, "tasks_submitted_total", "counter", "Tasks taken in by this node.", st.submitted);
    metric(&b, "tasks_ended_total", "counter",
           "Tasks that this node brought to processed, compensated or error.", st.ended);
    metric(&b, "state_changes_total", "counter", "Rows of tasks written.", st.changes);
    metric(&b, "batches_total", "counter", "Transactions handed to the store.", st.batches);
    metric(&b, "conflicts_total", "counter", "Changes that met another revision.", st.conflicts);
    metric(&b, "claims_total", "counter", "Tasks claimed.", st.claims);
    metric(&b, "tasks_in_memory", "gauge", "Tasks in work.", st.live);
    metric(&b, "open_attempts", "gauge", "Attempts that agents have not answered.",
           st.open_attempts);
    metric(&b, "waiting_steps", "gauge", "Steps that wait for a place.", st.waiting);
    metric(&b, "parked_calls", "gauge", "Work calls without work.", st.parked);
    metric(&b, "supervisor_scans_total", "counter", "Scans for what is overdue.", su.scans);
    metric(&b, "supervisor_requests_total", "counter", "Requests written by the supervisor.",
           su.requests);
    metric(&b, "http_requests_total", "counter", "Requests taken.", sv->requests);
    http_answer(r, 200, "text/plain; version=0.0.4", buf_view(&b), NULL);
}
