#ifndef OPERATIONS_FILTER_H
#define OPERATIONS_FILTER_H

/*
 * Which tasks are meant: what a person says (JSON, or the parameters of a listing), made into a
 * query of the store. All that is said must hold of a task.
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
    struct list_query query;  /* its places and agent are set by filter_places */
    struct slice step, agent; /* where the tasks stand; NONE: anywhere */
    bool says;                /* something is asked for */
    bool all;                 /* {"all": true} */
};

/* Reads a filter; it lies in `a`, and points into `j`. ERR_INVALID: *e says what is wrong. */
enum err filter_read(struct arena *a, const struct json *j, struct task_filter *ret,
                     struct error *e) MUST_USE;

/* What is over stands nowhere and is left out, unless states were named. For who fills in a filter
 * by himself. */
void filter_stand(struct task_filter *f);

/* Finds the steps of the agent that is asked for, as workflows are known now. The places lie in
 * `a`. To be called before each use of the query. */
void filter_places(struct task_filter *f, const struct registry *workflows, struct arena *a);

#endif
