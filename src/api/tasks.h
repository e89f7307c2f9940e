#ifndef API_TASKS_H
#define API_TASKS_H

/* What the files of /v1/tasks share: answering with one task, and batches of submissions. */

#include "node/access.h"
#include "node/part.h"
#include "scheduler/scheduler.h"

struct http_request;
struct server;

/* tasks_operate.c: POST /v1/tasks/{id}/VERB */
void task_operate(struct server *sv, struct http_request *r, enum ask_kind kind);

/* tasks_read.c. A task that `grant` does not cover does not exist for the caller. `more`: members
 * of JSON that are added to the record; may be empty. */
void task_get_when_ended(struct server *sv, struct http_request *r, struct slice id,
                         const struct grant *grant, int64_t wait_ms, int status, struct slice more);
/* The same for a task that has just been submitted, or was before, and has not ended yet: nothing
 * is read before it ends. */
void task_answer_end(struct server *sv, struct http_request *r, struct slice id, int64_t wait_ms,
                     int status, struct slice more);
extern const struct part shown_part;
/* Answers for a task that was not found: 410 if it was deleted, else 404. */
void task_get_missing(struct server *sv, struct http_request *r, struct slice id,
                      const struct grant *grant);
void answer_no_task(struct server *sv, struct http_request *r, struct slice id,
                    const struct reservation *gone);

/* tasks_many.c: batches, in NDJSON */
extern const struct part batches_part;
void batch_post(struct server *sv, struct http_request *r, int64_t wait_ms);

#endif
