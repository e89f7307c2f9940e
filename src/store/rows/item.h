#ifndef STORE_ROWS_ITEM_H
#define STORE_ROWS_ITEM_H

/* Items of steps with for_each that are at rest (core/items.h), one row each, and how they are
 * read. The items at work lie in the document of the task. Claims and listings of tasks read no
 * row of this table. */

#include "base/err.h"
#include "core/task.h"

struct payload;

/* A row of the table `item`. Written by a change of its task, and written again when the item comes
 * to rest again. */
struct item_row {
    struct slice step;   /* the name of the step */
    uint32_t generation; /* of the step: one that starts anew has a new list */
    uint32_t number;     /* of the item in its list, from 0 */
    enum step_state state;
    bool in_doubt;    /* it is unknown whether it took effect */
    bool needs_undo;  /* it took effect, or is in doubt, and would have to be undone */
    struct slice doc; /* JSON: the item as a step of a task's document (codec/codec.h) */
    /* The input of the task, if that is an input of the item and too long for `doc`, which has all
     * its other values. A read finds it; a change does not name it. */
    const struct payload *payloads;
    size_t payload_count;
};

enum item_order {
    ITEMS_UP,      /* by their numbers */
    ITEMS_DOWN,    /* the greatest first */
    ITEMS_TO_UNDO, /* the same, but only those that need it */
    ITEMS_FAILED,  /* by their numbers, those that failed going forward */
};

/* A page of the items at rest of one list. */
struct item_read {
    struct slice task, step;
    uint32_t generation;
    enum item_order order;
    int64_t from; /* UP, FAILED: this number or greater; else: less than this number */
    size_t limit;
    bool is_all;           /* there are no more than `limit`: nothing is looked for behind them */
    size_t bytes_max;      /* of documents and payloads; one is read whatever it has. 0: any */
    struct item_row *rows; /* out */
    size_t count;          /* out */
    bool more;             /* out */
};

/* The outputs of all items of a list, as a JSON array: null for an item that has none. */
struct item_outputs {
    struct slice task, step;
    uint32_t generation;
    uint32_t item_count; /* of the list. Those without a row have no output */
    size_t bytes_max;    /* of a longer one nothing is read: ERR_TOO_BIG */
    struct slice json;   /* out */
};

#endif
