#ifndef CORE_REPEAT_H
#define CORE_REPEAT_H

/*
 * The rounds of a repeated step: how far they are apart, and how many there can be. decide.c begins
 * and ends them; definition/ bounds their number.
 */

#include "core/workflow.h"

enum {
    ROUNDS_MAX = 10000,
    ROUND_ANSWER_MAX = 2048, /* a longer answer that begins another round is not kept */
};

/* How long after its answer that round (from 1) is followed by the next one. */
int64_t repeat_gap(const struct repeat_rule *r, uint32_t round);

/* How many rounds there are at most, if each is answered at once; ROUNDS_MAX + 1: too many. */
uint32_t repeat_rounds(const struct repeat_rule *r);

#endif
