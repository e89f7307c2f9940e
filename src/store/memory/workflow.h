#ifndef STORE_MEMORY_WORKFLOW_H
#define STORE_MEMORY_WORKFLOW_H

/* Definitions of the state store in memory. No faults are injected in here. */

#include "store/store.h"

struct mem_workflow {
    struct arena arena;
    struct workflow_row row;
    uint64_t generation; /* with which it came */
};

struct mem_workflows {
    struct mem_workflow *list; /* by name and version */
    size_t count;
    uint64_t generation; /* raised with each that is stored */
};

void mem_workflows_fini(struct mem_workflows *m);

/* That version, or the newest for 0; NULL: there is none. */
const struct workflow_row *mem_workflow_find(const struct mem_workflows *m, struct slice name,
                                             int64_t version);
/* The inputs themselves are for SQL, which there is none of here. */
void mem_workflow_describe(struct mem_workflows *m, const struct workflow_inputs *w);
void mem_workflow_add(struct mem_workflows *m, const struct workflow_row *row);
struct workflow_row mem_workflow_copy(struct arena *a, const struct workflow_row *row);

/* Those that came after that generation, by name and version; 0: all of them. */
void mem_workflow_list(const struct mem_workflows *m, uint64_t after, struct arena *a,
                       struct workflow_row **ret, size_t *ret_count);

#endif
