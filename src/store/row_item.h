#ifndef STORE_ROW_ITEM_H
#define STORE_ROW_ITEM_H

/* What all bodies do with rows of items (rows/item.h). */

#include "base/buf.h"
#include "store/store.h"

/* Whether the table can hold it. */
bool item_row_valid(const struct item_row *row);

/* A copy whose texts (not its payloads) lie in `a`. */
struct item_row item_row_copy(struct arena *a, const struct item_row *row);

/* The word of the column `state`. False: it is none of an item at rest. */
bool item_state_parse(struct slice word, enum step_state *ret) MUST_USE;

/* The numbers of the payloads that its document names as its inputs, each once, in their order, in
 * `a`; none if it cannot be read. */
size_t item_payloads(struct slice doc, struct arena *a, uint32_t **ret);

/* Whether one more row, with its payloads, fits into the page, of which the rows before have
 * `bytes`: then its own are added. */
bool item_fits(const struct item_read *r, const struct item_row *row, size_t *bytes);

/* The order of the table: by step, generation and number. Negative: x is before y. */
int item_row_order(const struct item_row *x, const struct item_row *y);

/* Outputs in the making: between begin and end, one after the other in the order of their numbers.
 * False: it would be longer than it may be. */
struct outputs {
    struct buf *b;
    uint32_t next; /* item */
};
void outputs_begin(struct outputs *o, struct buf *b);
bool outputs_add(const struct item_outputs *want, struct outputs *o, uint32_t number,
                 struct slice json) MUST_USE;
bool outputs_end(const struct item_outputs *want, struct outputs *o) MUST_USE;

#endif
