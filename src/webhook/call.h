#ifndef WEBHOOK_CALL_H
#define WEBHOOK_CALL_H

/* One call: what is sent, and what the answer means for its deliveries. */

#include "webhook/receiver.h"

/* Sends the first of those that are left. False: it cannot be made, and nothing has changed. */
bool call_start(struct call *c, struct transfer *t, CURLM *multi) MUST_USE;

/* Takes the answer that libcurl has finished with. True: all deliveries have ended; false: some are
 * to be sent still. */
bool call_conclude(struct call *c, struct transfer *t, CURLcode code) MUST_USE;

/* The transfer that is under way. */
struct transfer *call_transfer(const struct call *c);

#endif
