#ifndef CLI_VERBS_SUBMIT_BATCH_H
#define CLI_VERBS_SUBMIT_BATCH_H

/*
 * Some lines of a file of tasks: their text, their requests, their outcomes.
 *
 * Every line is sent with an id: its own, or one made of the run's id and its number in the file.
 * So it can be sent again safely.
 */

#include <intact/client.h>

#include "base/arena.h"
#include "base/buf.h"
#include "cli/cli.h"

enum {
    BATCH_LINES = 500,
    BATCH_SIZE = 1 << 20, /* bytes, well below a server's limit; a single line may be longer */
};

/* The rules for all lines. */
struct line_rules {
    const char *run_id;
    struct slice head;   /* with a workflow given: the members besides id and input; else NONE */
    const char *id_from; /* with a workflow given: the member of the input to use as id, or NULL */
    int64_t wait_ms;     /* for the ends of the tasks; -1: do not wait */
    int64_t patience_ms; /* how long to retry with a server that is busy or unavailable */
    /* True after an interrupt: no more waiting. Called by all threads. */
    bool (*in_haste)(void);
};

struct line_outcome {
    int status;          /* HTTP; 0: unknown */
    struct slice state;  /* of the task, if its end was awaited */
    struct slice reason; /* why it was refused */
    struct slice answer; /* as from the server */
};

struct bulk_line {
    size_t number;  /* in the file */
    size_t at;      /* in `text`; ends at the next line's `at` */
    size_t body_at; /* in `body`; likewise */
    struct line_outcome outcome;
};

struct batch {
    size_t seq;
    struct buf text, body;
    struct arena arena;                      /* of the outcomes */
    struct bulk_line lines[BATCH_LINES + 1]; /* the last one marks the end */
    size_t count;
    bool made_ids;
    int end;         /* CLI_OK, or why it could not be sent */
    char error[300]; /* with `end` */
};

void batch_clear(struct batch *b);
void batch_fini(struct batch *b);
/* Adds a line of the file, without its newline. */
void batch_add(struct batch *b, struct slice line, size_t number);
bool batch_is_full(const struct batch *b, size_t more);
struct slice batch_line(const struct batch *b, size_t i);

/* Sends the batch, repeatedly if needed; sets the outcomes and `end`. */
void batch_send(struct batch *b, struct intact_client *c, const struct line_rules *rules);

#endif
