#ifndef SIM_ITEMS_H
#define SIM_ITEMS_H

/*
 * Steps with for_each, in some runs: drawn for some workflows, and what the world knows of each
 * item. The checkers of items are in check_items.c.
 *
 * Wherever agents, ledgers and operators name a step by its number, an item has a number, too: its
 * unit, which is greater than that of any step.
 */

#include "base/buf.h"
#include "sim/subject.h"

enum {
    UNITS_OF_ITEM = 100,        /* at least FLOW_STEPS_MAX */
    UNITS_OF_LIST = 20000 * 100 /* more than the items of a list have */
};

/* The unit of that item in the first list of the step. Also a constant, for scenes. */
#define UNIT_OF(step, item) ((step) + UNITS_OF_ITEM * ((item) + 1))

static inline bool unit_is_item(uint32_t unit)
{
    return unit >= UNITS_OF_ITEM;
}

/* The step itself, of what is no item. */
static inline uint32_t step_of_unit(uint32_t unit)
{
    return unit % UNITS_OF_ITEM;
}

static inline uint32_t item_of_unit(uint32_t unit)
{
    return unit % UNITS_OF_LIST / UNITS_OF_ITEM - 1;
}

/* The number of its list, from 0: a step that starts anew has a new one. */
static inline uint32_t list_of_unit(uint32_t unit)
{
    return unit / UNITS_OF_LIST;
}

static inline uint32_t unit_of(uint32_t step, uint32_t list, uint32_t item)
{
    return UNITS_OF_LIST * list + UNIT_OF(step, item);
}

const char *unit_name(uint32_t unit); /* "s1", "s1.3"; good for a few calls */

/* What the world knows of one item. */
struct item_life {
    struct item_life *next;
    uint32_t unit;
    struct ledger ledger;
    struct seen_step seen; /* as it was stored last, in the document or in its row */
    bool left_open;        /* it was open in a list that a restart of the step left */
    bool at_work;          /* it is in the document ... */
    bool back;             /* ... to be undone */
    uint64_t row;          /* hash of its row; 0: it has none */
    enum step_state row_state;
    bool row_doubt, row_effect, row_to_undo;
    bool skipped;             /* an operator wanted it skipped */
    int64_t answers_at;       /* its agent is late, and answers then (rests.c); 0: nobody is */
    bool rash;                /* an operator said without a look that it took no effect */
    bool too_late;            /* ... and all others were undone when a result contradicted that */
    uint64_t contradicted_in; /* ... the revision of the task in which it did; 0: none */
    uint32_t sent[2];         /* the latest sent attempt, by direction */
    uint64_t keyed[KEYS_MAX]; /* hash of the request under each key; 0: none */
    uint64_t undone_as;       /* hash of its undo's input; 0: none */
    struct seen_child told;   /* what its child was told (check_families.c) */
};

/* It took effect, but the record does not say so, or was told too late: nobody undoes it. */
static inline bool life_is_excused(const struct item_life *l)
{
    return l->rash && (!seen_happened(&l->seen) || l->too_late);
}

/* How many of them may fail. */
static inline uint32_t items_tolerated(const struct flow_step *f, uint32_t count)
{
    return f->items_go_on ? count : count * f->tolerated / 10000;
}

/* NULL: nobody has heard of it. */
struct item_life *life_find(const struct subject *t, uint32_t unit);
struct item_life *life_of(struct subject *t, uint32_t unit);

/* Calls it for each item of the step, of all its lists, in no order. */
void lives_walk(const struct subject *t, uint32_t step,
                void (*see)(const struct item_life *l, void *arg), void *arg);

/* Those of a step, or of an item. */
struct ledger *ledger_of(struct subject *t, uint32_t unit);
const struct seen_step *seen_unit(const struct subject *t, uint32_t unit);
void unit_is_skipped(struct subject *t, uint32_t unit); /* an operator wants it */
/* Or its step, or the item of that number of an earlier list. */
bool unit_was_skipped(const struct subject *t, uint32_t unit);
uint32_t unit_named(const struct subject *t, struct slice name); /* in the present lists */

uint32_t items_open(const struct subject *t, uint32_t step); /* how many of its items run */

bool items_elsewhere(const struct subject *t, uint32_t step); /* any of them */

/* What took effect and is not undone: of a step, or of any of its items. */
bool step_stands(const struct subject *t, uint32_t step);
bool step_ever_happened(const struct subject *t, uint32_t step);

/* Does this run have steps with for_each? */
bool flows_items(void);
bool flow_has_items(const struct flow *f);
void lists_begin(void);
void flow_draw_items(struct flow *f, uint32_t number);
void items_put(struct buf *b, const struct flow_step *s);
void items_put_input(struct buf *b, const struct flow_step *s);

/* The task's input, with a list in such a run; without its closing brace it may be continued. */
struct slice items_input(struct slice input);

/* Which unit an operator means who names that step: perhaps an item of it. */
int items_repair(const struct subject *t); /* what an operator does to one of them; -1: nothing */
int items_anew(const struct subject *t);   /* a list that an operator makes anew; -1: none */
int items_meant(const struct subject *t, int step, bool doubtful);

#endif
