#ifndef BACKGROUND_RETIRE_ITEMS_H
#define BACKGROUND_RETIRE_ITEMS_H

/*
 * The items at rest of a task that is archived. They are lines of their own before the line of the
 * record, a page each, so memory does not grow with the list. All lists of a step are written: one
 * that started anew has earlier ones. The calls take turns: begin, then read and write for each
 * page.
 */

#include "node/task_json.h"
#include "store/store.h"

struct retire_items {
    const struct workflow *workflow;
    const struct task *task;
    uint16_t step;       /* of the page to be read; step_count: there is none left */
    uint32_t generation; /* ... its list */
    int64_t from;        /* ... and its first item */
    uint32_t part;       /* lines of the task so far */
    struct arena arena;  /* of the page */
    struct item_read page;
};

/* The workflow and the task stay the caller's. False: the task has no step with items. */
bool retire_items_begin(struct retire_items *x, const struct workflow *w, const struct task *t);

/* Store thread: reads the next page. */
enum err retire_items_read(struct retire_items *x, struct store *store, struct error *e) MUST_USE;

/* Any thread: appends the line of the page, if it has items, and frees the page. ERR_CORRUPT: an
 * item cannot be read. */
enum err retire_items_write(struct retire_items *x, struct buf *lines, struct error *e) MUST_USE;

/* Whether there are further pages. */
bool retire_items_more(const struct retire_items *x);

void retire_items_end(struct retire_items *x);

#endif
