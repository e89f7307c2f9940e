#ifndef CLI_VERBS_FAMILY_SHOW_H
#define CLI_VERBS_FAMILY_SHOW_H

#include "cli/client/client.h"

/* Fetches the family of a task, whose record is given, and shows it as a tree: the root, and below
 * each task its children, oldest first. Returns the exit status. */
int family_show(const struct invocation *in, struct intact_client *c, const struct json *task);

#endif
