#include "server/internal.h"

#include "http/answer.h"
#include "json/json.h"

/* The loop turns: that is all that it says. */
void healthz_get(struct server *sv, struct http_request *r)
{
    (void)sv;
    http_answer(r, 200, "application/json", SLICE("{\"status\":\"ok\"}"), NULL);
}

static void not_ready(struct http_request *r, const char *type, const char *why)
{
    CLEANUP(buf_fini) struct buf b = {0};

    http_problem_write(&b, 503, type, slice_of(why));
    http_answer(r, 503, "application/problem+json", buf_view(&b), "Retry-After: 1\r\n");
}

/* Does the store work, as far as we know, and is this node to stay? Nothing is asked of the store
 * for that: who asks is answered even while it hangs. */
void readyz_get(struct server *sv, struct http_request *r)
{
    char story[sizeof sv->trouble];

    if (sv->draining)
        not_ready(r, "draining", "the server is ending");
    else if (server_trouble(sv, story, sizeof story) != ERR_OK)
        not_ready(r, "store", story);
    else
        http_answer(r, 200, "application/json", SLICE("{\"status\":\"ready\"}"), NULL);
}

void render_instances(struct buf *b, const struct agent *a)
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
        json_key(b, "heartbeat_at");
        json_time(b, in->heartbeat_at);
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
        json_key(&b, "breaker");
        breaker_render(&b, &a->breaker);
        json_key(&b, "instances");
        render_instances(&b, a);
        json_close(&b, '}');
    }
    json_close(&b, ']');
    json_close(&b, '}');
    answer_json(r, 200, &b, NULL);
}
