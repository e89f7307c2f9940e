#ifndef WEBHOOK_POST_H
#define WEBHOOK_POST_H

/* One post: what is sent, and what the answer means for its deliveries. */

#include "webhook/receiver.h"

/* Sends the first of those that are left. False: it cannot be made, and nothing has changed. */
bool post_start(struct post *p, struct transfer *t, CURLM *multi) MUST_USE;

/* Takes the answer that libcurl has finished with. True: all deliveries have ended; false: some are
 * to be sent still. */
bool post_conclude(struct post *p, struct transfer *t, CURLcode code) MUST_USE;

/* The transfer that is under way. */
struct transfer *post_transfer(const struct post *p);

#endif
