#ifndef SHOP_SUBMISSION_ORDER_H
#define SHOP_SUBMISSION_ORDER_H

/* An order, as the web server put it on the queue:
 *
 *     {"order": "o-1", "lines": [{"sku": "cup", "quantity": 2}], "amount": 1900,
 *      "card": "4242...", "address": "...", "at": "2026-01-31T10:00:00Z",
 *      "customer": "Ada", "pay": "now"}
 *
 * `pay` is now, later, or a day such as 2026-02-06T17:00:00Z.
 */

#include <jansson.h>
#include <stdbool.h>

#include "../lib/queue.h"

struct order {
    json_t *message; /* the next ones are its parts */
    const char *id, *card, *address, *at, *customer, *pay;
    const char *card_end; /* its last four digits */
    json_t *parts;
    json_int_t cents;
    char *lines, amount[24]; /* as they are stored */
    char *input;             /* of its task */
};

enum { WHY_SIZE = 300 };

/* False: it can be no order, and says why. */
bool order_read(struct order *o, const struct queue_message *m, char why[WHY_SIZE]);

/* Frees what order_read() filled, whatever it returned. */
void order_fini(struct order *o);

#endif
