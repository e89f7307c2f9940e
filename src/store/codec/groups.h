#ifndef STORE_CODEC_GROUPS_H
#define STORE_CODEC_GROUPS_H

/*
 * What the codec keeps of the steps of a task that is written again and again: see struct encoded
 * in codec.h. A step rests when nothing of it is going on: it has ended well, or was not touched
 * yet. For one that rests, its text is kept, or the group that it lies in.
 *
 * So each step is written to `payload` about twice, and with values of some 300 bytes a document
 * has 1 to 3 KB, for 10 steps or 300. A kept text is compared byte for byte whenever its step may
 * have changed (effects.any_step says whether any but the event's may), and in one of 16 revisions
 * always: a change that nobody reports does not stay hidden.
 */

#include "store/codec/codec.h"

enum {
    /* So many bytes of steps that rest leave the document. Fewer are not worth a row; with more of
     * them most rows need a second page of SQLite. */
    GROUP_MIN = 1536,
    GROUP_MAX = 8192, /* one that is as long gets no more steps */
};

/* What is written in the place of a step. They lie close together: each change reads all of them.
 */
struct kept_text {
    struct slice text; /* what it was written as; NONE: it is not known */
    uint32_t group;    /* number of the payload that has it; 0: it lies in the document */
    bool changed;      /* perhaps, since it was last looked at */
};

/* A step as it was when it was written, or read. */
struct kept_step {
    struct step step;
    struct items items;       /* as they were, if it has any */
    struct attempt *attempts; /* as they were; those of `step` may have changed since */
    uint16_t attempt_cap;
};

struct encoded {
    struct arena *arena;
    struct slice input;       /* the task's, which a step's text without an input has; or NONE */
    const uint16_t *of_slots; /* the step of each unit behind the steps */
    uint16_t slot_count;
    bool regroup; /* the steps in groups have to be written into new ones */
    uint16_t count;
    struct kept_text *texts;
    struct kept_step steps[];
};

/* Whether the step's text is worth keeping, although the step may change later. */
bool kept_is_worth(const struct step *s);

/* Whether the kept text, or group, is that of the step as it is now. False if none is kept. */
bool kept_is_as(const struct encoded *kept, uint16_t i, const struct step *s);

void kept_forget(struct encoded *kept, uint16_t i);
void kept_set(struct encoded *kept, uint16_t i, const struct step *s, struct slice text);
void kept_set_group(struct encoded *kept, uint16_t i, const struct step *s, uint32_t group);

/* Sets the task's input. If it was corrected, the texts that relied on the old one are dropped. */
void kept_set_input(struct encoded *kept, const struct value *input);

bool kept_has_group(const struct encoded *kept); /* any of them lies in one */
size_t kept_size(const struct encoded *kept);    /* bytes of those that do not */

#endif
