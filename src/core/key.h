#ifndef CORE_KEY_H
#define CORE_KEY_H

/*
 * The idempotency key of a request to an agent: TASK/STEP, or TASK/STEP/undo for its undo. It is
 * the same for all attempts of a step in one direction, so that an agent recognizes a request that
 * it executed before. A step whose input was corrected has another key from then on (TASK/STEP~2),
 * because its requests differ, and each round of a repeated step has one of its own (TASK/STEP@2).
 * scheduler/work.c fills it in.
 */

#include "core/task.h"

struct idempotency_key {
    struct slice prefix; /* of the installation; may be NONE */
    struct slice task, step;
    uint32_t generation; /* of the step: 0 until its input is corrected */
    bool of_item;        /* of a list: TASK/STEP.3, TASK/STEP~2.3 of another list, ... */
    uint32_t item;
    uint32_t item_generation; /* ... and TASK/STEP.3~2 with another input */
    uint32_t round;           /* of a repeated step, else 0; the first one has no number */
    enum direction direction;
};

/* The length of its text, and the text, which is written to as many bytes. */
size_t idempotency_key_len(const struct idempotency_key *k);
void idempotency_key_write(const struct idempotency_key *k, char *to);

/* The id of the step's child of that number, from 1: T@STEP, then T@STEP:2. The caller shortens one
 * that would be longer than an id may be. */
size_t child_id_len(struct slice parent, struct slice step, uint32_t number);
void child_id_write(struct slice parent, struct slice step, uint32_t number, char *to);

#endif
