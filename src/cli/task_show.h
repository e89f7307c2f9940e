#ifndef CLI_TASK_SHOW_H
#define CLI_TASK_SHOW_H

#include "json/json.h"

/* A task as people read it. */
void task_show(const struct json *task);

#endif
