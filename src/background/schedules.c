/*
 * Schedules, as this node executes them while it leads: gives the ticker (schedule/ticker.h) its
 * share of the node. The API of schedules is api/schedules.c.
 */

#include "background/schedules.h"

#include <stdlib.h>

#include "background/room.h"
#include "background/submission_inbox.h"
#include "base/log.h"
#include "node/node.h"
#include "store/rows/schedule.h"

/* A run that is to be undone because the next moment is due. */
struct undo {
    void (*answered)(struct ask *a); /* first: ask_answered finds it through ask.user */
    struct ask ask;
    struct schedules *schedules;
    char id[]; /* of the run */
};

struct schedules {
    struct server *server;
    struct ticker *ticker;
    size_t undos; /* that are asked for */
};

static int64_t store_now(void *arg)
{
    const struct schedules *s = arg;

    return server_now(s->server);
}

static bool leads(void *arg, struct fence *ret)
{
    const struct schedules *s = arg;
    const struct server *sv = s->server;
    int64_t until = 0;

    return supervisor_leads(sv->supervisor, ret, &until)
           && (!sv->config.store->shared || server_steady(NULL) < until);
}

static void submitted(void *arg)
{
    const struct schedules *s = arg;

    inbox_wake(s->server);
}

static void undo_answered(struct ask *a)
{
    struct undo *u = a->user;

    u->schedules->undos--;
    log_line(LOG_INFO, "event=schedule_undo task=%s outcome=%s", u->id,
             a->outcome == ERR_OK ? "accepted" : "refused");
    free(u);
}

/* If it is refused, the moment waits. */
static void ask_undo(void *arg, const char *run)
{
    struct schedules *s = arg;
    size_t size = strlen(run) + 1;
    struct undo *u = calloc(1, sizeof *u + size);

    ASSERT(u);
    u->answered = undo_answered;
    u->schedules = s;
    memcpy(u->id, run, size);
    u->ask = (struct ask){.kind = ASK_CANCEL,
                          .user = u,
                          .id = slice_of(u->id),
                          .actor = SLICE(SCHEDULE_SOURCE),
                          .reason = SLICE("the next moment of the schedule is due"),
                          .if_open = true};
    s->undos++;
    server_ask(s->server, &u->ask);
}

void schedules_changed(struct server *sv)
{
    ticker_changed(sv->background->schedules->ticker);
}

void schedules_task_ended(struct server *sv, struct slice task)
{
    ticker_task_ended(sv->background->schedules->ticker, task);
}

int64_t schedules_due_at(const struct server *sv)
{
    return ticker_due_at(sv->background->schedules->ticker);
}

void schedules_stats(const struct server *sv, struct ticker_stats *ret)
{
    ticker_stats(sv->background->schedules->ticker, ret);
}

static enum err schedules_open(struct server *sv, struct error *e)
{
    struct schedules *s = calloc(1, sizeof *s);
    (void)e;

    ASSERT(s);
    s->server = sv;
    const struct ticker_config c = {
        .store = sv->store,
        .shared = sv->config.store->shared,
        .arg = s,
        .now = store_now,
        .steady = server_steady,
        .leads = leads,
        .submitted = submitted,
        .undo = ask_undo,
    };
    s->ticker = ticker_new(&c);
    sv->background->schedules = s;
    return ERR_OK;
}

static int64_t schedules_turn(struct server *sv)
{
    return ticker_turn(sv->background->schedules->ticker);
}

static void schedules_drain(struct server *sv)
{
    ticker_drain(sv->background->schedules->ticker);
}

static bool schedules_are_busy(const struct server *sv)
{
    return ticker_is_busy(sv->background->schedules->ticker);
}

static bool schedules_are_drained(const struct server *sv)
{
    return !schedules_are_busy(sv) && sv->background->schedules->undos == 0;
}

static void schedules_free(struct server *sv)
{
    struct schedules *s = sv->background->schedules;

    ticker_free(s->ticker);
    free(s);
}

const struct part schedules_part = {
    .name = "schedules",
    .open = schedules_open,
    .turn = schedules_turn,
    .drain = schedules_drain,
    .is_drained = schedules_are_drained,
    .is_busy = schedules_are_busy,
    .free = schedules_free,
};
