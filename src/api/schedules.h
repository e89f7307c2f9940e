#ifndef API_SCHEDULES_H
#define API_SCHEDULES_H

/* What the files of /v1/schedules share. */

#include "base/arena.h"
#include "node/exchange.h"
#include "schedule/row.h"
#include "store/job.h"
#include "store/store.h"

struct server;

/* One request: reads or changes schedules on a thread of the store. What is answered is written
 * there, too, since reading a schedule takes some time. */
struct schedule_call {
    struct exchange x;
    struct store_job job;
    struct arena arena; /* it lies in it */
    struct slice name;
    /* For a change: makes the next row from the current one (NULL: there is none). ERR_OK without
     * `writes`: nothing is to be done. */
    enum err (*change)(struct schedule_call *c, const struct schedule_row *row);
    void (*read)(struct schedule_call *c, struct store *st); /* of all else */
    struct schedule_change next;
    bool writes;
    struct buf doc; /* of the row */
    /* of a read */
    struct schedule_query query;
    int64_t version; /* 0: the newest */
    int64_t count;   /* of moments */
    /* of a change */
    struct schedule *schedule; /* PUT */
    struct mistakes *warnings;
    struct slice reason;
    struct submission_row submission;
    int64_t from, to;
    bool removes;
    struct audit audit;
    struct slice person; /* whose token it is that calls; NONE: nobody knows */
    int64_t now;
    char older[80]; /* a living node that does not know schedules; "": none */
    /* the answer */
    struct buf body;
    int status;
    enum err err;
    struct error error;
};

/* A call of this request, in an arena of its own. */
struct schedule_call *schedule_call_new(struct server *sv, struct http_request *r);
void schedule_call_begin(struct schedule_call *c, struct server *sv, struct http_request *r);

/* A schedule as the API shows it, with its text if `text`. */
enum err schedule_render(struct schedule_call *c, const struct schedule_row *row, bool text);

/* On the store's thread: changes it. */
void schedule_change_run(struct store_job *j, struct store *st);

#endif
