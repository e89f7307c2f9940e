#ifndef CLI_VERBS_OPERATION_SHOW_H
#define CLI_VERBS_OPERATION_SHOW_H

/* Shows an operation on many tasks. */

#include "cli/client/client.h"

void operation_show(const struct json *operation);
void operation_show_dry(const struct json *dry); /* what it would do */
/* Follows it until it is done or stopped, with a bar on a terminal, and shows the result. Returns
 * the exit status. `expected`: the number of tasks; 0: unknown. */
int operation_follow(const struct invocation *in, struct intact_client *c, struct slice id,
                     int64_t expected);

#endif
