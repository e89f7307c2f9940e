/* Reports messages that became durable. Reporting takes long enough that the store gets its next
 * job first. */

#include "scheduler/job.h"

#include <stdlib.h>

static int number_order(const void *a, const void *b)
{
    const struct message *x = a;
    const struct message *y = b;

    return (x->seq > y->seq) - (x->seq < y->seq);
}

static bool has_messages(const struct job *j)
{
    for (size_t i = 0; i < j->batch.change_count; i++)
        if (j->batch.changes[i].message_count > 0)
            return true;
    return false;
}

/* Includes messages of a commit of unknown outcome: nothing else may ever report that they
 * exist. */
static void report_messages(const struct scheduler *s, struct job *j)
{
    size_t most = 0;
    size_t count = 0;

    for (size_t i = 0; i < j->batch.change_count; i++)
        most += j->batch.changes[i].message_count;
    struct message *list = arena_alloc(&j->arena, most * sizeof *list);
    for (size_t i = 0; i < j->batch.change_count; i++) {
        const struct change *c = &j->batch.changes[i];
        enum err outcome = j->err == ERR_OK ? c->outcome : j->err;
        bool is_sure = outcome == ERR_OK && c->first_message != 0;
        if (outcome != ERR_OK && outcome != ERR_UNKNOWN)
            continue;
        for (size_t k = 0; k < c->message_count; k++) {
            list[count] = c->messages[k];
            list[count].since = list[count].created_at;
            list[count++].seq = is_sure ? c->first_message + (int64_t)k : 0;
        }
    }
    ASSERT(count <= most);
    for (size_t i = 1; i < count; i++)
        if (list[i].seq < list[i - 1].seq) { /* the store numbers them target by target */
            qsort(list, count, sizeof *list, number_order);
            break;
        }
    if (count > 0)
        s->outside.messages(s->outside.arg, list, count);
}

void messages_report(struct scheduler *s)
{
    for (struct link *first = NULL; (first = list_first(&s->unreported));) {
        struct job *j = CONTAINER_OF(first, struct job, unreported);
        link_remove(first);
        if (s->outside.messages)
            report_messages(s, j);
        job_free(j);
    }
}

void messages_drop(struct scheduler *s)
{
    for (struct link *first = NULL; (first = list_first(&s->unreported));) {
        link_remove(first);
        job_free(CONTAINER_OF(first, struct job, unreported));
    }
    if (s->spare_job)
        job_free(s->spare_job);
    s->spare_job = NULL;
}

void messages_keep(struct scheduler *s, struct job *j)
{
    if (has_messages(j))
        list_push(&s->unreported, &j->unreported);
    else
        job_free(j);
}
