/*
 * The table of all parts: what a node consists of, and the order in which parts are opened and take
 * their turns. It knows nothing else about them: see the file of a part, and node/part.h.
 */

#include "server/parts.h"

#include "api/backup.h"
#include "api/body.h"
#include "api/events.h"
#include "api/listing.h"
#include "api/pages.h"
#include "api/records.h"
#include "api/tasks.h"
#include "background/alerts.h"
#include "background/helper.h"
#include "background/messages.h"
#include "background/nodes.h"
#include "background/notices.h"
#include "background/open_tasks.h"
#include "background/operations.h"
#include "background/retention.h"
#include "background/schedules.h"
#include "background/submission_inbox.h"
#include "background/token_list.h"
#include "background/unknown_tokens.h"
#include "background/waits.h"
#include "node/node.h"
#include "server/core.h"
#include "server/listen.h"

/* Lines of batches and rows of the inbox come before the scheduler's turn, so that it has them in
 * its next batch. Events and messages come after it, since they report what it has done. Clients
 * come in when all else is there; helpers are clients. */
static const struct part *const parts[] = {
    &bodies_part,     &batches_part,    &nodes_part,          &inbox_part,    &notices_part,
    &operations_part, &schedules_part,  &scheduling_part,     &waits_part,    &records_part,
    &shown_part,      &events_part,     &listings_part,       &messages_part, &token_list_part,
    &retention_part,  &open_tasks_part, &unknown_tokens_part, &alerts_part,   &backup_part,
    &pages_part,      &listen_part,     &helpers_part,
};

enum err parts_open(struct server *sv, size_t *ret_opened, struct error *e)
{
    enum err err = ERR_OK;
    size_t i = 0;

    for (; err == ERR_OK && i < COUNT_OF(parts); i++)
        if (parts[i]->open)
            err = parts[i]->open(sv, e);
    *ret_opened = err == ERR_OK ? i : i - 1;
    return err;
}

int64_t parts_turn(struct server *sv)
{
    int64_t next = 0;

    for (size_t i = 0; i < COUNT_OF(parts); i++) {
        int64_t at = parts[i]->turn ? parts[i]->turn(sv) : 0;
        if (at != 0 && (next == 0 || at < next))
            next = at;
    }
    for (size_t i = 0; i < COUNT_OF(parts); i++)
        if (parts[i]->goes_on && parts[i]->goes_on(sv))
            return server_now(sv);
    return next;
}

void parts_drain(struct server *sv)
{
    for (size_t i = 0; i < COUNT_OF(parts); i++)
        if (parts[i]->drain)
            parts[i]->drain(sv);
}

bool parts_are_drained(const struct server *sv)
{
    for (size_t i = 0; i < COUNT_OF(parts); i++)
        if (parts[i]->is_drained && !parts[i]->is_drained(sv))
            return false;
    return true;
}

void parts_hang_up(struct server *sv, size_t opened)
{
    for (size_t i = opened; i-- > 0;)
        if (parts[i]->hang_up)
            parts[i]->hang_up(sv);
}

bool parts_are_busy(const struct server *sv, size_t opened)
{
    for (size_t i = 0; i < opened; i++)
        if (parts[i]->is_busy && parts[i]->is_busy(sv))
            return true;
    return false;
}

void parts_close(struct server *sv, size_t opened)
{
    for (size_t i = opened; i-- > 0;)
        if (parts[i]->close)
            parts[i]->close(sv);
}

void parts_free(struct server *sv, size_t opened)
{
    for (size_t i = opened; i-- > 0;)
        if (parts[i]->free)
            parts[i]->free(sv);
}
