#ifndef SIM_SCHEDULES_H
#define SIM_SCHEDULES_H

/*
 * Schedules, in one run of seven: people who store, change, pause, run, backfill and delete them,
 * by the nodes and while they fire; and the nodes' ticker (schedule/ticker.h). Their runs are tasks
 * like all others. Draws from its own random source. check_schedules.c has the rules.
 */

#include "sim/flow.h"
#include "sim/node.h"
#include "sim/subject.h"

enum { PLANS_MAX = 3, PLAN_MOMENTS_MAX = 12, PLAN_QUEUE_MAX = 1000 };

enum plan_overlap { PLAN_SKIP, PLAN_ALLOW, PLAN_WAIT, PLAN_UNDO };

/* A version of a schedule, as a person wrote it. */
struct plan_text {
    int64_t every_ms; /* 0: it has a list of moments */
    int64_t at[PLAN_MOMENTS_MAX];
    uint32_t at_count;
    bool as_cron; /* `every` is written as an expression */
    enum plan_overlap overlap;
    int64_t catch_up_ms, spread_ms;
    bool missed_all;
    uint32_t fails; /* its input fails at moments of tens of seconds that this divides; 0: never */
    const struct flow *flow;
    int priority;
    struct slice text;
};

/* A verb of an operator, on its way through a node. */
struct plan_call {
    enum plan_verb {
        PLAN_VERB_PUT,
        PLAN_VERB_PAUSE,
        PLAN_VERB_RESUME,
        PLAN_VERB_RUN,
        PLAN_VERB_BACKFILL,
        PLAN_VERB_DELETE
    } verb;
    int64_t now; /* by the node's clock */
    const struct plan_text *text;
    struct slice run; /* RUN: the id of the task */
    int64_t from, to;
};

bool schedules_are_on(void); /* in this run; known before anything is drawn */
void schedules_begin(struct flow *flows, uint32_t flow_count, int64_t first_act_ms);
bool schedules_are_over(void); /* all are paused or deleted: nothing will fire any more */

struct ticker *schedules_ticker(struct node *n); /* NULL: none in this run */
bool schedules_are_busy(const struct node *n);   /* something of them is at its store */
bool schedules_asked(const struct ask *a);
void schedules_answered(struct node *n, struct ask *a);
/* Is that entry of the audit of a task about its undo for the next moment? */
bool schedules_did(const struct subject *t, const struct audit *a);

/* Between the reading and the writing of a node's ticker: somebody else may change a schedule. */
void schedules_come_between(const struct node *n);

/* To the store itself, and the rules are checked. With a fence, it is the ticker of that node. */
enum err schedules_write(const struct node *n, struct schedule_change *list, size_t count,
                         const struct fence *fence, struct error *e);
enum err schedules_remove(struct slice name, const struct audit *audit, struct error *e);

/* ---- check_schedules.c ---- */

void check_schedules_begin(void);
/* The ticker of that node has just read these. */
void check_schedules_looked(const struct node *n, const struct schedule_look *l);
/* It has a reason to look for what is due. */
void check_schedules_hint(const struct node *n);
/* It is stored. */
void check_schedule_written(const struct node *n, const struct plan_call *call,
                            const struct schedule_change *c);
/* The rows of its runs are recorded, too. */
void check_schedule_submitted(struct slice run);
void check_schedule_removed(uint32_t plan);
void check_schedule_undo(const struct node *n, struct slice run);
void check_schedules_idle(void); /* periodic: what is due is decided soon */

/* What a person can read of it. */
bool plan_exists(uint32_t plan);
bool plan_is_paused(uint32_t plan);
uint32_t plan_queued(uint32_t plan); /* moments of its backlog */
const struct plan_text *plan_text(uint32_t plan);

/* The plan of a schedule, or of a run's id. */
uint32_t plan_of(struct slice name);

#endif
