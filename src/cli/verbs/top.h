#ifndef CLI_VERBS_TOP_H
#define CLI_VERBS_TOP_H

/*
 * What `intact top` knows of a server, and how it is drawn. Calls no server, reads no clock.
 */

#include "base/arena.h"
#include "cli/terminal/term.h"
#include "json/json.h"

/* One answer of /v1/stats. */
struct top_sample {
    struct buf text;
    struct arena arena;
    const struct json *stats; /* NULL: none yet */
    int64_t now;              /* the server's, ms UTC */
};

/* A task in error; its reason is requested once the task is seen. */
struct top_error {
    struct buf id, workflow, ended_at, reason;
};

enum { TOP_ERRORS = 5 };

enum top_sort { TOP_BY_WAITING, TOP_BY_AGENT, TOP_BY_FAILED, TOP_SORTS };

struct top {
    struct top_sample samples[2];
    int current; /* the other one is the previous one */
    struct top_error errors[TOP_ERRORS];
    size_t error_count;
    enum top_sort sort;
};

void top_fini(struct top *t);
/* False: not an answer of /v1/stats. */
bool top_take_stats(struct top *t, struct slice json);
/* The newest tasks in error, from GET /v1/tasks. Known reasons are kept. */
void top_take_errors(struct top *t, struct slice json);
/* The record of one of them. */
void top_take_reason(struct top *t, struct slice json);
/* A task whose reason is unknown; NULL: none. */
const struct top_error *top_unexplained(const struct top *t);

const char *top_sort_text(enum top_sort s); /* "waiting" */

struct top_view {
    const struct term *term;
    const char *server, *trouble; /* trouble "": none */
    int64_t now;                  /* this machine's, for local times */
    bool keys;                    /* show them */
};
void top_draw(const struct top *t, const struct top_view *v, struct buf *b);

#endif
