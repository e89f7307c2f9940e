#ifndef STORE_MEMORY_BODY_H
#define STORE_MEMORY_BODY_H

/* What the files of the body in memory share. */

#include "base/fault.h"
#include "base/map.h"
#include "store/memory/access.h"
#include "store/memory/agent.h"
#include "store/memory/alert.h"
#include "store/memory/lock.h"
#include "store/memory/memory.h"
#include "store/memory/node.h"
#include "store/memory/notice.h"
#include "store/memory/operation.h"
#include "store/memory/outbox.h"
#include "store/memory/overrun.h"
#include "store/memory/retire.h"
#include "store/memory/schedule.h"
#include "store/memory/submission.h"
#include "store/memory/workflow.h"

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
    struct mem_overruns overruns;
    struct mem_locks locks;
    struct mem_outbox outbox;
    struct mem_alerts alerts;
    struct mem_reserved reserved;
    struct mem_submissions submissions;
    struct mem_notices notices;
    struct mem_schedules schedules;
    uint64_t boot;
    unsigned char secret[32];
    char installation[37];
    struct store_ops ops; /* of a store with a clock */
    const atomic_int_fast64_t *clock;
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

/* inbox.c: operations on submissions and notices, and what is known of definitions for them */
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

/* claim.c */
/* *ret_rank is the task's place among those that the claim is about. */
bool memory_claim_wants(const struct memory_store *s, const struct claim *c,
                        const struct mem_task *t, int64_t *ret_rank);
void memory_claim(struct memory_store *s, struct claim *c, struct arena *a);
/* A row for the caller, with what it asks for. */
enum with { WITH_NOTHING, WITH_GROUPS, WITH_PAYLOADS };
struct task_row memory_row_out(const struct mem_task *t, struct arena *a, enum with with);
void memory_task_set(struct mem_task *t, const struct task_row *row);
/* Whether the change may take its lock; otherwise *ret is who has held it for longest. */
bool memory_lock_has_room(const struct memory_store *s, const struct change *c, struct arena *a,
                          struct slice *ret);
void memory_lock_change(struct memory_store *s, const struct change *c, int64_t seq);
enum err memory_lock_list(struct store *base, const struct lock_query *q, struct arena *a,
                          struct lock_page *ret, struct error *e);
enum err memory_lock_held(struct store *base, struct slice lock, struct arena *a,
                          struct lock_held *ret, struct error *e);
enum err memory_notices_read(struct store *s, struct notice_read *n, struct arena *a,
                             struct error *e);
enum err memory_notices_told(struct store *s, const struct slice *ids, size_t count,
                             int64_t *ret_at, struct error *e);
enum err memory_notices_refused(struct store *s, struct notice_read *n, struct arena *a,
                                struct error *e);
enum err memory_notices_settle(struct store *s, const struct notice_verdict *list, size_t count,
                               struct error *e);
enum err memory_notices_put(struct store *s, const struct notice_row *rows, size_t count,
                            struct error *e);

/* memory.c: whether a batch fails as a whole, by its fence or a fault. Nothing is undone here: so
 * it is asked before the first change. */
enum err memory_batch_refused(struct memory_store *s, const struct batch *b, struct error *e);

/* stored.c: operations on workflows, tokens, agents, overruns, items */
enum err memory_workflow_put(struct store *base, struct slice name, struct slice text, int64_t now,
                             const struct audit *audit, int64_t *ret_version, bool *ret_new,
                             struct error *e);
enum err memory_workflow_get(struct store *base, struct slice name, int64_t version,
                             struct arena *a, struct workflow_row *ret, struct error *e);
enum err memory_workflow_list(struct store *base, struct arena *a, struct workflow_row **ret,
                              size_t *ret_count, struct error *e);
enum err memory_workflow_since(struct store *base, uint64_t after, struct arena *a,
                               struct workflow_row **ret, size_t *ret_count,
                               uint64_t *ret_generation, struct error *e);
enum err memory_token_put(struct store *base, const struct token_row *t, bool replace,
                          const struct audit *audit, struct error *e);
enum err memory_token_change(struct store *base, const struct token_row *t,
                             const unsigned char was[TOKEN_HASH_SIZE], const struct audit *audit,
                             struct error *e);
enum err memory_token_delete(struct store *base, struct slice name, int64_t now,
                             const struct audit *audit, struct error *e);
enum err memory_token_list(struct store *base, struct arena *a, struct token_row **ret,
                           size_t *ret_count, struct error *e);
enum err memory_audit_list(struct store *base, const struct audit_query *q, struct arena *a,
                           struct audit_page *ret, struct error *e);
enum err memory_audit_put(struct store *base, const struct audit *audit, struct error *e);
enum err memory_agent_put(struct store *base, const struct agent_change *c,
                          const struct audit *audit, struct error *e);
enum err memory_agent_since(struct store *base, uint64_t after, struct arena *a,
                            struct agent_row **ret, size_t *ret_count, uint64_t *ret_generation,
                            struct error *e);

enum err memory_items_read(struct store *base, struct item_read *r, struct arena *a,
                           struct error *e);
enum err memory_items_outputs(struct store *base, struct item_outputs *o, struct arena *a,
                              struct error *e);
enum err memory_overrun_count(struct store *base, const struct overrun_count *c, struct error *e);
enum err memory_overrun_list(struct store *base, struct arena *a, struct overrun **ret,
                             size_t *ret_count, struct error *e);

/* told.c: operations on messages, alerts, operations, schedules */
enum err memory_outbox_read(struct store *base, struct outbox_read *r, struct arena *a,
                            struct error *e);
enum err memory_outbox_settle(struct store *base, const struct settlement *list, size_t count,
                              const struct fence *fence, struct error *e);
enum err memory_outbox_targets(struct store *base, const struct target_query *q, struct arena *a,
                               struct outbox_target **ret, size_t *ret_count, struct error *e);
enum err memory_outbox_list(struct store *base, const struct outbox_query *q, struct arena *a,
                            struct message_page *ret, struct error *e);
enum err memory_outbox_do(struct store *base, struct outbox_verb *v, struct error *e);
enum err memory_outbox_census(struct store *base, size_t most, struct outbox_census *ret,
                              struct error *e);
enum err memory_operation_put(struct store *base, const struct operation_row *row,
                              const struct audit *audit, struct error *e);
enum err memory_operation_list(struct store *base, const struct operation_query *q, struct arena *a,
                               struct operation_page *ret, struct error *e);
enum err memory_schedule_write(struct store *base, struct schedule_change *list, size_t count,
                               const struct fence *fence, struct error *e);
enum err memory_schedule_look(struct store *base, struct schedule_look *l, struct arena *a,
                              struct error *e);
enum err memory_schedule_list(struct store *base, const struct schedule_query *q, struct arena *a,
                              struct schedule_page *ret, struct error *e);
enum err memory_schedule_version(struct store *base, struct slice name, int64_t version,
                                 struct arena *a, struct schedule_version_row *ret,
                                 struct error *e);
enum err memory_schedule_remove(struct store *base, struct slice name, const struct audit *audit,
                                struct error *e);
enum err memory_alert_put(struct store *base, const struct alert_row *row, struct error *e);
enum err memory_alert_list(struct store *base, const struct alert_query *q, struct arena *a,
                           struct alert_page *ret, struct error *e);
enum err memory_alert_acknowledge(struct store *base, struct slice id, const struct audit *audit,
                                  struct error *e);

#endif
