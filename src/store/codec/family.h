#ifndef STORE_CODEC_FAMILY_H
#define STORE_CODEC_FAMILY_H

/*
 * The texts in which tasks of one family reach each other: the bodies of their notices
 * (store/rows/notice.h), and the column `child` of a submission that starts a child.
 */

#include "base/arena.h"
#include "base/buf.h"
#include "core/task.h"

/* What one task tells another. */
struct family_word {
    /* NOTICE_CHILD: the child of that number of the receiver's step: */
    struct slice step;
    uint32_t number;
    enum child_state state;
    struct slice output; /* JSON, of a processed child; NONE: null */
    /* NOTICE_PARENT: */
    bool pauses;       /* it tells of a pause, and not of a wish */
    int64_t paused_at; /* since when the sender is paused; 0: it goes on */
    enum child_wish wish;
    /* Both: why. Code NONE: no reason is known. */
    struct fault_note error;
};

/* Lines of JSON: an object, and the output if there is one. An output is of any size, so it is not
 * parsed by who reads this. */
void family_word_write(struct buf *b, struct slice kind, const struct family_word *w);

/* Its texts are in `a`, but the output, which is in `body`. False: it is not understood, being of a
 * newer version, or damaged. */
bool family_word_read(struct slice kind, struct slice body, struct arena *a,
                      struct family_word *ret) MUST_USE;

/* What a child has from its parent, beside what submissions have. */
struct child_origin {
    struct slice parent, root, step;
    uint32_t number;
    int64_t complete_by;               /* no later than that; 0: no limit */
    int64_t paused_at;                 /* its parent has been paused since then; 0: it is not */
    struct slice family, trace, owner; /* NONE: none */
};

void child_origin_write(struct buf *b, const struct child_origin *o);
bool child_origin_read(struct slice text, struct arena *a, struct child_origin *ret) MUST_USE;

#endif
