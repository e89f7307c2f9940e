#ifndef SIM_SCENE_H
#define SIM_SCENE_H

/*
 * Scenes: the cases that are most likely to fail, each with a name. Only small delays are random in
 * a scene: agents follow its script, and faults of nodes and messages happen beat by beat, each as
 * soon as its condition holds. All checkers are active, and the scene also states the expected
 * result. A scene that does not reach all its beats has missed its case, and fails.
 */

#include "sim/agents.h"
#include "sim/coverage.h"
#include "sim/people.h"

enum { PARTS_MAX = 8, BEATS_MAX = 8 };

/* How agents handle a request. The first matching part is played; a request without one is done at
 * once. */
struct part {
    uint32_t step, attempt; /* step: also all of its items, or one of them, by its unit (items.h);
                               attempt 0: any */
    uint32_t worker;        /* 1 is the first; 0: any */
    uint32_t task;          /* likewise */
    enum direction direction;
    bool meanwhile; /* only as long as a beat is left */
    struct act act; /* a part without one ends the list */
};

struct beat {
    const char *what;    /* the condition; NULL ends the list */
    bool (*until)(void); /* NULL: at once */
    int64_t after_ms;    /* since the previous beat; only then `until` is checked */
    void (*then)(void);  /* may be NULL */
};

/* The expected result of a step in each task. */
struct fate {
    enum step_state state;
    /* Outcomes of its attempts by their first letters, forward, and after a slash the undo's:
     * "TF/C". After a letter, '*' means any number, and '?' one or none. */
    const char *attempts;
    enum { NOTHING, STANDS, UNDONE, BARRED } world; /* BARRED: undone before it could happen */
};

struct scene {
    const char *name, *sentence;
    uint32_t nodes;          /* 0 and 1: one with its own store */
    uint32_t tasks;          /* 0 means 1 */
    uint32_t places;         /* per worker; 0 means 4 */
    uint32_t absent;         /* bits: services without a worker at the start */
    uint32_t rows;           /* of items in one read; 0: each node has its own number */
    bool narrow;             /* one task fits in a node's memory */
    bool roomy;              /* all tasks do; otherwise chance decides. Both: until a node dies */
    bool scattered;          /* results go to any node, not to the one that sent the request */
    bool twins;              /* all workers belong to the first service */
    bool unknown;            /* a beat stores the workflow */
    bool operations;         /* nodes run operations, which beats start */
    bool sql;                /* nodes take submissions by SQL, which beats insert */
    bool unasked;            /* a beat submits the tasks */
    struct flow flow, child; /* child: that steps with is_child start; without steps: none do */
    struct part parts[PARTS_MAX];
    struct beat beats[BEATS_MAX];
    struct beat always; /* must hold after every occurrence; without `what`: nothing */
    enum task_state end;
    struct fate fates[FLOW_STEPS_MAX]; /* without `attempts`: not checked */
    enum task_state child_end;         /* the same of children ... */
    bool children_differ;              /* ... unless each has its own */
    struct fate child_fates[FLOW_STEPS_MAX];
    void (*expect)(void); /* further checks; may be NULL */
};

/* The lists, each ending with a scene without a name. */
extern const struct scene scenes_of_doubt[], scenes_of_agents[], scenes_of_nodes[],
    scenes_of_long[], scenes_of_breakers[], scenes_of_routing[], scenes_of_hands[], scenes_of_sql[],
    scenes_of_operations[], scenes_of_groups[], scenes_of_causes[], scenes_of_undo[],
    scenes_of_families[], scenes_of_items[], scenes_of_item_children[];

/* For beats and expectations. */
void store_workflow(void);
struct subject *the_task(void);                  /* the first one */
const struct seen_step *the_step(uint32_t step); /* of the first task */
struct node *the_owner(void);                    /* of the first task; NULL: none */
struct node *the_leader(void);                   /* NULL: none */
const struct seen_attempt *the_attempt(uint32_t step, enum direction d, uint32_t number); /* NULL */
bool is_open(uint32_t step, enum direction d, uint32_t number);
bool begun(uint32_t step, enum direction d, uint32_t number); /* an agent works on it */
uint32_t count_tasks(bool (*is)(const struct seen *s));       /* among those in the store */
bool met(enum cover c);                                       /* by its coverage */
void submit_all(void);
void scene_must(bool ok, const char *what);

/* Plays the scene of that name ("all": each) with that many seeds. Returns the exit status: 2 if
 * there is no such scene. A failing scene ends the process. */
int scene_play(const char *name, uint64_t seed, uint64_t runs, bool loud);
int scenes_print(void);

#endif
