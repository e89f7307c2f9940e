#ifndef JQ_GENERATE_H
#define JQ_GENERATE_H

/*
 * Random expressions of the subset, and inputs for them. They are made to give values more often
 * than failures, and to stay away from what jq 1.6 is known to see otherwise; generate.c says
 * where.
 */

#include "base/buf.h"
#include "base/prng.h"

void generate_expression(struct prng *p, struct buf *b);
void generate_input(struct prng *p, struct buf *b);

#endif
