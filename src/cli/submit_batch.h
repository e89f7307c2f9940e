#ifndef CLI_SUBMIT_BATCH_H
#define CLI_SUBMIT_BATCH_H

/*
 * Some lines of a file of tasks: what was read, what is sent for them, what became of each.
 *
 * Every line has an id when it is sent: its own, or one that its number in the file and the id of
 * the run give. So it may be sent as often as it takes.
 */

#include <intact/client.h>

#include "base/arena.h"
#include "base/buf.h"
#include "cli/cli.h"

enum {
    BATCH_LINES = 500,
    BATCH_SIZE = 1 << 20, /* bytes; well below what a server takes. One line may be longer */
};

/* What holds for all lines. */
struct line_rules {
    const char *run_id;
    struct slice head; /* with a workflow named: the members beside id and input; else NONE */
    const char
        *id_from;    /* with a workflow named: the member of the input that is the id, or NULL */
    int64_t wait_ms; /* for the ends of the tasks; -1: no */
    int64_t patience_ms; /* how long a server that is busy or gone is asked again */
    /* Whether there is no time left to wait: somebody interrupted. Called by all threads. */
    bool (*in_haste)(void);
};

struct line_outcome {
    int status;          /* HTTP; 0: not known */
    struct slice state;  /* of the task, if its end was waited for */
    struct slice reason; /* why it was refused */
    struct slice answer; /* as the server told it */
};

struct bulk_line {
    size_t number;  /* in the file */
    size_t at;      /* in `text`, where it ends at the next one's `at` */
    size_t body_at; /* in `body`; the same */
    struct line_outcome outcome;
};

struct batch {
    size_t seq;
    struct buf text, body;
    struct arena arena;                      /* of the outcomes */
    struct bulk_line lines[BATCH_LINES + 1]; /* the last one is the end of the one before */
    size_t count;
    bool made_ids;
    int end;         /* CLI_OK, or why it could not be sent */
    char error[300]; /* then */
};

void batch_clear(struct batch *b);
void batch_fini(struct batch *b);
/* A line of the file, without its end. */
void batch_add(struct batch *b, struct slice line, size_t number);
bool batch_is_full(const struct batch *b, size_t more);
struct slice batch_line(const struct batch *b, size_t i);

/* Sends it, again and again if need be; fills in the outcomes, and `end`. */
void batch_send(struct batch *b, struct intact_client *c, const struct line_rules *rules);

#endif
