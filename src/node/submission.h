#ifndef NODE_SUBMISSION_H
#define NODE_SUBMISSION_H

/*
 * One submission, of a request of its own or a line of many: read, handed to the scheduler, and
 * what became of it.
 */

#include "definition/family.h"
#include "scheduler/scheduler.h"

struct grant; /* node/access.h */
struct http_request;
struct server;

enum { LINES_MAX = 100000 };

struct submission {
    struct ask ask;
    struct arena arena; /* of what the ask refers to */
    void (*answered)(struct submission *s);
    const struct grant *grant; /* by which it is submitted; lives as long as the ask */
    struct slice trace; /* what the request says of all its submissions; lives as long as the ask */
    bool made_here;     /* of a schedule, or of a child: its id has an @ */
    uint32_t line;      /* of the text, from 1: where its first line stands in the body */
    /* What the text says, as far as that is not in the ask: */
    struct named {
        struct slice workflow, reply_target, input; /* input NONE: there is none */
        int64_t version;
        bool names_workflow; /* what was said up to there is good */
    } named;
    int status;               /* 0: not answered yet */
    const char *problem_type; /* NULL: there is none */
    char problem[300];
    char id[40]; /* if we gave it */
};

/* Reads what was said. True: it is to be asked of the scheduler, by server_ask, and `answered` will
 * be called. False: it has its problem already. `text` has to live as long as the ask. */
bool submission_read(struct server *sv, struct submission *s, struct slice text);

/* The same of a text that takes too long for the loop: beside it, in the turns of `token`. `then`
 * is called with what submission_read returns. */
void submission_read_offloaded(struct server *sv, struct submission *s, struct slice text,
                               struct slice token, void (*then)(struct submission *s, bool ok));

/* The request's trace context, copied; NONE if there is none, or more than one: W3C Trace Context
 * has such a request treated as one without. */
struct slice submission_trace(const struct http_request *r, struct arena *a);

/* The scheduler has answered its ask (a->user is the submission): `answered` is called. */
void submission_answered(struct server *sv, struct ask *a);

/* What the problem of a family is that is not whole. */
struct family_problem {
    int status;
    const char *type;
};
struct family_problem family_problem(enum family_wrong what);

/* It has this problem from now on. */
void submission_fails(struct submission *s, int status, const char *type, const char *fmt, ...)
    PRINTF(4, 5);

/* What became of its signals, as the member `key` of an answer; nothing if it carries none. */
void submission_signals(struct buf *b, const char *key, const struct submission *s);

/* The members of a problem document, for an answer to a line. */
void submission_problem(struct buf *b, int status, const char *type, struct slice detail);

#endif
