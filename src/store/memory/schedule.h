#ifndef STORE_MEMORY_SCHEDULE_H
#define STORE_MEMORY_SCHEDULE_H

/* Schedules in memory. No faults are injected in here. */

#include "store/store.h"

struct mem_schedule {
    struct arena arena;
    struct schedule_row row;
};

struct mem_schedules {
    struct mem_schedule *list; /* by name */
    size_t count;
    struct mem_schedule_version {
        struct arena arena;
        struct schedule_version_row row;
    } * versions;
    size_t version_count;
    int64_t last_seq;
};

void mem_schedules_fini(struct mem_schedules *m);
/* Its row and its version. False: it has another revision, or its name exists. */
bool mem_schedule_write(struct mem_schedules *m, const struct schedule_change *c);
bool mem_schedule_remove(struct mem_schedules *m, struct slice name);

/* `is_open`: whether the run of that id is. */
typedef bool mem_run_is_open(void *arg, struct slice run);
void mem_schedules_look(const struct mem_schedules *m, struct schedule_look *l,
                        mem_run_is_open *is_open, void *arg, struct arena *a);
void mem_schedules_list(const struct mem_schedules *m, const struct schedule_query *q,
                        mem_run_is_open *is_open, void *arg, struct arena *a,
                        struct schedule_page *ret);
bool mem_schedule_version(const struct mem_schedules *m, struct slice name, int64_t version,
                          struct arena *a, struct schedule_version_row *ret);

#endif
