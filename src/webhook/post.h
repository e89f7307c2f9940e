#ifndef WEBHOOK_POST_H
#define WEBHOOK_POST_H

/* One POST: its request, and the result for its deliveries. */

#include "webhook/receiver.h"

/* Sends the first of the remaining deliveries. False: the request cannot be made, and nothing has
 * changed. */
bool post_start(struct post *p, struct transfer *t, CURLM *multi) MUST_USE;

/* Handles the response that libcurl has completed. True: all deliveries have ended; false: some are
 * still to be sent. */
bool post_conclude(struct post *p, struct transfer *t, CURLcode code) MUST_USE;

/* The running transfer. */
struct transfer *post_transfer(const struct post *p);

#endif
