/* The barrier without a database: its verdict, output and answer (<intact/barrier.h>). SQLite is in
 * barrier_sqlite.c, PostgreSQL in libintact_pq. */
#include <intact/barrier.h>

#include <stdlib.h>
#include <string.h>

#include "base/buf.h"

struct intact_barrier {
    struct intact_request *request; /* NULL: from another source */
    struct buf key, output, why;
    enum intact_direction direction;
    enum intact_verdict verdict;
    bool unsure; /* a commit failed with unknown outcome */
};

struct intact_barrier *intact_barrier_new(const char *forward_key, enum intact_direction direction)
{
    struct intact_barrier *b = calloc(1, sizeof(*b));

    ASSERT(b);
    buf_str(&b->key, forward_key ? forward_key : "");
    b->direction = direction;
    intact_barrier_set(b, INTACT_BARRIER_FAILED, NULL, "no query was sent to the database");
    return b;
}

struct intact_barrier *intact_barrier_of(struct intact_request *r)
{
    enum intact_direction direction = intact_request_direction(r);
    struct intact_barrier *b =
        intact_barrier_new(direction == INTACT_UNDO ? intact_request_forward_key(r)
                                                    : intact_request_idempotency_key(r),
                           direction);

    b->request = r;
    return b;
}

void intact_barrier_free(struct intact_barrier *b)
{
    if (!b)
        return;
    buf_fini(&b->key);
    buf_fini(&b->output);
    buf_fini(&b->why);
    free(b);
}

enum intact_verdict intact_barrier_verdict(const struct intact_barrier *b)
{
    return b->verdict;
}

const char *intact_barrier_output(const struct intact_barrier *b)
{
    return b->output.len ? b->output.ptr : "null";
}

const char *intact_barrier_why(const struct intact_barrier *b)
{
    return b->why.len ? b->why.ptr : "";
}

const char *intact_barrier_key(const struct intact_barrier *b)
{
    return b->key.len ? b->key.ptr : "";
}

enum intact_direction intact_barrier_direction(const struct intact_barrier *b)
{
    return b->direction;
}

bool intact_barrier_is_late(const struct intact_barrier *b)
{
    return b->request && intact_request_time_left_ms(b->request) == 0;
}

static void set_text(struct buf *to, const char *text)
{
    struct buf new = {0}; /* the text may point into the old one */

    if (text)
        buf_str(&new, text);
    buf_fini(to);
    *to = new;
}

void intact_barrier_set(struct intact_barrier *b, enum intact_verdict verdict, const char *output,
                        const char *why)
{
    b->verdict = verdict;
    b->unsure = false;
    set_text(&b->output, output);
    set_text(&b->why, why);
}

void intact_barrier_set_unsure(struct intact_barrier *b, const char *why)
{
    intact_barrier_set(b, INTACT_BARRIER_AGAIN, NULL, why);
    b->unsure = true;
}

void intact_barrier_answer(struct intact_barrier *b)
{
    ASSERT(b->request);
    switch (b->verdict) {
    case INTACT_BARRIER_DO:
    case INTACT_BARRIER_REPEAT:
        intact_answer(b->request, intact_barrier_output(b));
        break;
    case INTACT_BARRIER_NOTHING:
        intact_answer(b->request, "null");
        break;
    case INTACT_BARRIER_UNDONE:
        intact_answer_error(b->request, "undone", "this step was undone and must not take effect",
                            INTACT_EFFECT_NONE);
        break;
    case INTACT_BARRIER_LATE:
        intact_answer_nothing(b->request);
        break;
    case INTACT_BARRIER_AGAIN:
    case INTACT_BARRIER_FAILED:
    default:
        intact_answer_error(b->request, "barrier", intact_barrier_why(b),
                            INTACT_RETRYABLE
                                | (b->unsure ? (unsigned)INTACT_EFFECT_UNKNOWN
                                             : (unsigned)INTACT_EFFECT_NONE));
    }
}
