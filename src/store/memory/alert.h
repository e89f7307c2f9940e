#ifndef STORE_MEMORY_ALERT_H
#define STORE_MEMORY_ALERT_H

/* Alerts in the state store in memory. No faults are injected here. */

#include "store/memory/task.h"

struct mem_alert {
    struct arena arena;
    struct alert_row row;
};

struct mem_alerts {
    struct mem_alert *alerts; /* by seq */
    size_t count;
    int64_t last_seq;
};

void mem_alerts_fini(struct mem_alerts *m);
bool mem_alert_fits(const struct mem_alerts *m, const struct alert_row *row);
void mem_alert_put(struct mem_alerts *m, const struct alert_row *row);
void mem_alert_list(const struct mem_alerts *m, const struct alert_query *q, struct arena *a,
                    struct alert_page *ret);
enum err mem_alert_acknowledge(struct mem_alerts *m, struct slice id, const struct audit *audit,
                               bool *ret_news);

/* Those of the tasks that are in error. */
void mem_stopped(struct mem_task *const *tasks, size_t count, int64_t after_ended_at,
                 int64_t after_seq, size_t limit, struct arena *a, struct stopped_page *ret);

#endif
