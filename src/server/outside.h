#ifndef SERVER_OUTSIDE_H
#define SERVER_OUTSIDE_H

/* What scheduler and supervisor report, passed on to the parts that it concerns. */

#include "scheduler/scheduler.h"
#include "supervisor/supervisor.h"

struct server;

struct outside outside_of_scheduler(struct server *sv);
struct supervisor_outside outside_of_supervisor(struct server *sv);

#endif
