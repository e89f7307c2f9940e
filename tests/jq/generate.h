#ifndef JQ_GENERATE_H
#define JQ_GENERATE_H

/*
 * Random expressions of the subset, and inputs for them. Most yield values rather than failures,
 * and they avoid the known differences from jq 1.6, which generate.c lists.
 */

#include "base/buf.h"
#include "base/prng.h"

void generate_expression(struct prng *p, struct buf *b);
void generate_input(struct prng *p, struct buf *b);

#endif
