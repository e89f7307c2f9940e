#ifndef TASKS_LIVE_H
#define TASKS_LIVE_H

/* Tasks in memory: stubs, loading, reloading, dropping, and events on them. */

#include "tasks/tasks.h"

/* False: *e says why. Otherwise this node may work on the row. */
bool live_load(struct tasks *ts, struct live *l, const struct task_row *row, struct error *e);
/* True if another node may have stored the task's definition meanwhile: then the task is loaded
 * once that is known, and the caller is done with it. */
bool live_awaits_definition(struct tasks *ts, struct live *l, const struct task_row *row);
void live_unload(struct tasks *ts, struct live *l); /* drops the state, keeps the inbox */
void live_reload(struct tasks *ts, struct live *l); /* drops the state and reads it again */
void live_drop(struct tasks *ts, struct live *l);   /* frees it; its inbox is empty */
void live_dirty(struct tasks *ts, struct live *l);
bool live_any_open(const struct live *l);
void live_remove_resting(struct live *l); /* removes those of which all is durable and reported */
void live_detach_step(struct tasks *ts, struct live_step *ls); /* removes it from all lists */
void live_detach_ended(struct tasks *ts, struct live *l);      /* all whose attempt has ended */
void live_detach_one(struct tasks *ts, struct live *l, uint16_t step); /* the same, for one step */
/* No instance has it from now on. */
void live_goes_elsewhere(struct tasks *ts, struct live *l, uint16_t step);
/* Applies an event by the rules of core/. */
enum answer live_decide(struct tasks *ts, struct live *l, const struct event *e);

#endif
