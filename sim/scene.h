#ifndef SIM_SCENE_H
#define SIM_SCENE_H

/*
 * Scenes: the cases that are most likely to go wrong, each by its name. Nothing is drawn in a scene
 * but small delays: what agents do is in its script, and what befalls nodes and messages happens
 * beat by beat, each as soon as what it waits for has come about. All checkers are at work as ever;
 * besides, the scene says what must have come of it. One of which not every beat was reached has
 * not met its case, and fails.
 */

#include "sim/agents.h"
#include "sim/coverage.h"
#include "sim/people.h"

enum { PARTS_MAX = 8, BEATS_MAX = 8 };

/* What agents do with a request. The first part that fits is played; what fits none is done at
 * once. */
struct part {
    uint32_t step, attempt; /* attempt 0: any */
    uint32_t worker;        /* 1 is the first; 0: any */
    uint32_t task;          /* the same */
    enum direction direction;
    bool meanwhile; /* only as long as a beat is left */
    struct act act; /* the first without one ends the list */
};

struct beat {
    const char *what;    /* has come about; NULL ends the list */
    bool (*until)(void); /* NULL: at once */
    int64_t after_ms;    /* since the beat before it; then `until` is looked at */
    void (*then)(void);  /* may be NULL */
};

/* What must have become of a step in each task. */
struct fate {
    enum step_state state;
    /* Outcomes of its attempts by their first letters, forward and after a slash the undo's:
     * "TF/C". After a letter, '*' means any number of it, and '?' one or none. */
    const char *attempts;
    enum { NOTHING, STANDS, UNDONE, BARRED } world; /* BARRED: undone before it could happen */
};

struct scene {
    const char *name, *sentence;
    uint32_t nodes;  /* 0 and 1: one that has the store for itself */
    uint32_t tasks;  /* 0 means 1 */
    uint32_t places; /* of each worker; 0 means 4 */
    uint32_t absent; /* bits: services without a worker at first */
    bool narrow;     /* one task fits in a node's memory */
    bool scattered;  /* results go to all nodes alike, not to who asked for them */
    bool twins;      /* all workers are of the first service */
    bool unknown;    /* a beat stores the workflow, not the beginning */
    bool operations; /* nodes work on operations, which beats begin */
    bool sql;        /* nodes take submissions in SQL, which beats put in */
    bool unasked;    /* tasks are submitted by a beat, not at the beginning */
    struct flow flow;
    struct part parts[PARTS_MAX];
    struct beat beats[BEATS_MAX];
    struct beat always; /* holds after every occurrence; without `what` nothing has to */
    enum task_state end;
    struct fate fates[FLOW_STEPS_MAX]; /* without `attempts`: whatever it likes */
    void (*expect)(void);              /* what else must be; may be NULL */
};

/* The lists, each ended by a scene without a name. */
extern const struct scene scenes_of_doubt[], scenes_of_agents[], scenes_of_nodes[],
    scenes_of_long[], scenes_of_breakers[], scenes_of_routing[], scenes_of_hands[], scenes_of_sql[],
    scenes_of_operations[], scenes_of_groups[], scenes_of_causes[], scenes_of_undo[];

/* For beats and expectations. */
void store_workflow(void);
struct subject *the_task(void);                  /* the first */
const struct seen_step *the_step(uint32_t step); /* of the first task */
struct node *the_owner(void);                    /* of the first task; NULL: nobody */
struct node *the_leader(void);                   /* NULL: nobody leads */
const struct seen_attempt *the_attempt(uint32_t step, enum direction d, uint32_t number); /* NULL */
bool is_open(uint32_t step, enum direction d, uint32_t number);
bool begun(uint32_t step, enum direction d, uint32_t number); /* an agent is at work on it */
uint32_t count_tasks(bool (*is)(const struct seen *s));       /* of those that are in the store */
bool met(enum cover c);                                       /* how the coverage calls it */
void submit_all(void);
void scene_must(bool ok, const char *what);

/* Runs the scene of that name ("all": each) over that many seeds. Returns the exit status: 2 if
 * there is none. A scene that fails ends the process. */
int scene_play(const char *name, uint64_t seed, uint64_t runs, bool loud);
int scenes_print(void);

#endif
