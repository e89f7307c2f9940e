#ifndef CLI_OPERATION_SHOW_H
#define CLI_OPERATION_SHOW_H

/* An operation on many tasks, for people. */

#include "cli/client.h"

void operation_show(const struct json *operation);
void operation_show_dry(const struct json *dry); /* what it would be */
/* Looks on until it is done or stopped, with a bar on a terminal, and shows what came of it. The
 * exit status. `expected`: how many tasks there may be; 0: nobody knows. */
int operation_follow(const struct invocation *in, struct intact_client *c, struct slice id,
                     int64_t expected);

#endif
