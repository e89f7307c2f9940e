#ifndef STORE_MEMORY_BODY_H
#define STORE_MEMORY_BODY_H

/* What the files of the body in memory share. */

#include "base/fault.h"
#include "base/map.h"
#include "store/memory.h"
#include "store/memory_access.h"
#include "store/memory_agent.h"
#include "store/memory_alert.h"
#include "store/memory_node.h"
#include "store/memory_operation.h"
#include "store/memory_outbox.h"
#include "store/memory_retire.h"
#include "store/memory_submission.h"
#include "store/memory_workflow.h"

struct memory_store {
    struct store base;
    struct map by_id;
    struct mem_task **tasks; /* by seq */
    size_t task_count, task_cap;
    int64_t last_seq;
    struct mem_workflows workflows;
    struct mem_access access;
    struct mem_nodes nodes;
    struct mem_agents agents;
    struct mem_operations operations;
    struct mem_outbox outbox;
    struct mem_alerts alerts;
    struct mem_reserved reserved;
    struct mem_submissions submissions;
    uint64_t boot;
    unsigned char secret[32];
};

static inline struct memory_store *memory_store_of(struct store *s)
{
    return CONTAINER_OF(s, struct memory_store, base);
}

/* A fault was injected: nothing was done. */
static inline enum err mem_fails(struct error *e)
{
    return error_set(e, ERR_IO, "state store in memory: a fault was injected");
}

/* It was done, but the answer may be lost. */
static inline enum err mem_committed(struct error *e)
{
    return fault() ? error_set(e, ERR_UNKNOWN, "state store in memory: a commit's answer was lost")
                   : ERR_OK;
}

/* memory_inbox.c: operations on submissions, and what is known of definitions for them */
enum err memory_workflow_describe(struct store *s, const struct workflow_inputs *list, size_t count,
                                  struct error *e);
enum err memory_submissions_take(struct store *s, struct submission_take *t, struct arena *a,
                                 struct error *e);
enum err memory_submissions_settle(struct store *s, const struct submission_verdict *list,
                                   size_t count, struct error *e);
enum err memory_submissions_put(struct store *s, const struct submission_row *rows, size_t count,
                                struct error *e);
enum err memory_submissions_list(struct store *s, const struct submission_query *q, struct arena *a,
                                 struct submission_page *ret, struct error *e);
enum err memory_submissions_verb(struct store *s, struct submission_verb *v, struct error *e);

#endif
