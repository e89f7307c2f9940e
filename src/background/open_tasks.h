#ifndef BACKGROUND_OPEN_TASKS_H
#define BACKGROUND_OPEN_TASKS_H

/* Counts the open tasks of each token, for its quota. */

#include "node/part.h"

struct open_tasks;
struct server;

extern const struct part open_tasks_part;

#endif
