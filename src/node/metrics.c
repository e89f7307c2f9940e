/*
 * Counts what the node does, for GET /metrics: an addition or two on the event loop, no locks and
 * no memory. api/metrics.c writes the counts as text.
 */

#include "node/metrics.h"

#include "node/node.h"

const uint64_t metrics_duration_bounds[BOUNDS_MAX] = {500,     1000,    2500,     5000,    10000,
                                                      25000,   50000,   100000,   250000,  500000,
                                                      1000000, 2500000, 10000000, 60000000};

const uint64_t metrics_batch_bounds[BOUNDS_MAX] = {0,  1,   2,   4,   8,    16,   32,
                                                   64, 128, 256, 512, 1024, 2048, 4096};

static void observe(struct histogram *h, const uint64_t bounds[BOUNDS_MAX], uint64_t v)
{
    size_t i = 0;

    while (i < BOUNDS_MAX && v > bounds[i])
        i++;
    h->counts[i]++;
    h->sum += v;
}

void metrics_begin(struct metrics *m, int64_t now_ms, void (*label)(struct buf *b, unsigned route))
{
    *m = (struct metrics){.started_at = now_ms, .route_label = label};
}

void metrics_request_begins(struct http_request *r)
{
    if (r->began_ns != 0)
        return; /* its head was routed before its body came */
    r->began_ns = uv_hrtime();
    r->route = ROUTES_MAX - 1;
}

void metrics_request_done(struct metrics *m, const struct http_request *r)
{
    int class = r->status / 100;

    ASSERT(r->route < ROUTES_MAX);
    m->requests[r->route][class >= 0 && class < STATUS_CLASSES ? class : 0]++;
    observe(&m->durations[r->route], metrics_duration_bounds, (uv_hrtime() - r->began_ns) / 1000);
}

void metrics_committed(struct metrics *m, size_t changes, int64_t took_us)
{
    observe(&m->commits, metrics_duration_bounds, (uint64_t)max_i64(took_us, 0));
    observe(&m->batches, metrics_batch_bounds, changes);
}
