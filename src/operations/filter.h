#ifndef OPERATIONS_FILTER_H
#define OPERATIONS_FILTER_H

/*
 * Which tasks are meant: a person's filter (JSON, or the parameters of a listing) as a query of the
 * store. A task must match all of it.
 */

#include "definition/registry.h"
#include "store/store.h"
#include "json/json.h"

enum {
    FILTER_TAGS_MAX = 32,
    FILTER_TAG_VALUE_MAX = 256,
    FILTER_IDS_MAX = 1000,
};

struct task_filter {
    struct list_query query;  /* filter_places sets its places and agent */
    struct slice step, agent; /* where the tasks are; NONE: anywhere */
    bool has_conditions;      /* the filter has a condition */
    bool all;                 /* {"all": true} */
    bool says_children;       /* it says whether children are meant */
};

/* Reads a filter; it lies in `a` and points into `j`. ERR_INVALID: *e has the error. */
enum err filter_read(struct arena *a, const struct json *j, struct task_filter *ret,
                     struct error *e) MUST_USE;

/* Leaves out children, unless the filter says something of them, or names states, places, an error
 * or tasks. For callers that fill in a filter themselves; before filter_default_states. */
void filter_default_children(struct task_filter *f);

/* Leaves out ended tasks, which are at no step, unless states are named. For callers that fill in a
 * filter themselves. */
void filter_default_states(struct task_filter *f);

/* Finds the steps of the requested agent in the workflows known now. The places lie in `a`. Must be
 * called before each use of the query. */
void filter_places(struct task_filter *f, const struct registry *workflows, struct arena *a);

#endif
