/* The observer's model of votes on approvals: who may vote, what counts, and when a step is
 * decided (see history_world.h). Part of the tests: it shares no code with approve.c, which it
 * judges. */

#include "core/history_check.h"

static const struct approve_spec *spec_of(const struct world *w, int step)
{
    return &w->graph->steps[step].approve;
}

static const struct world_vote *vote_of(const struct world *w, int step, char person)
{
    for (uint16_t i = 0; i < w->vote_count; i++)
        if (w->votes[i].step == step && w->votes[i].person == person)
            return &w->votes[i];
    return NULL;
}

static uint16_t count_of(const struct world *w, int step, bool agrees)
{
    uint16_t count = 0;

    for (uint16_t i = 0; i < w->vote_count; i++)
        if (w->votes[i].step == step && w->votes[i].agrees == agrees)
            count++;
    return count;
}

bool world_voted(const struct world *w, uint16_t i)
{
    return count_of(w, i, false) > 0 || count_of(w, i, true) == spec_of(w, i)->people;
}

/* Persons are letters: see kit_ballot(). */
static bool may_vote(const struct world *w, int step, char person, int64_t now)
{
    bool early = now < w->steps[step].begun_at + GRAPH_ESCALATE_MS;

    if (person == 'X' || (person == 'H' && (spec_of(w, step)->escalate_ms == 0 || early)))
        return false;
    return person != 'S' || !spec_of(w, step)->not_submitter;
}

static enum answer vote_answer(const struct world *w, const struct event *ev, enum task_state state,
                               bool undone, int64_t now)
{
    const struct world_step *s = &w->steps[ev->step];
    char person = ev->ballot->person.ptr[0];
    const struct world_vote *known = vote_of(w, ev->step, person);

    if (w->graph->steps[ev->step].kind != KIND_APPROVE
        || (ev->ballot->asking != 0 && s->begun_at != 0 && ev->ballot->asking != s->asking))
        return ANSWER_REFUSED;
    if (known)
        return known->agrees == ev->ballot->agrees ? ANSWER_REPEATED : ANSWER_REFUSED;
    if (state == TASK_PROCESSED || state == TASK_COMPENSATED || w->back || undone || w->closed
        || s->phase != PHASE_IDLE || s->begun_at == 0 || world_voted(w, (uint16_t)ev->step))
        return ANSWER_REFUSED;
    return may_vote(w, ev->step, person, now) ? ANSWER_ACCEPTED : ANSWER_REFUSED;
}

enum answer world_vote_answer(const struct world *w, const struct event *ev, enum task_state state,
                              enum stop stop, int64_t now)
{
    uint16_t i = (uint16_t)ev->step;
    bool may = false;

    if (ev->kind == EVENT_VOTE)
        return vote_answer(w, ev, state, stop == STOP_UNDO, now);
    bool goes = stop == STOP_NONE && state != TASK_ERROR && !task_state_is_end(state);
    if (w->graph->steps[i].kind == KIND_APPROVE && goes && !w->back)
        may = ev->kind == EVENT_DECIDED ? world_awaits(w, i, now) && world_voted(w, i)
                                        : world_awaits_no_longer(w, i, now) && !world_voted(w, i);
    return may ? ANSWER_ACCEPTED : ANSWER_REFUSED;
}

void world_vote(struct world *w, const struct event *ev)
{
    ASSERT(w->vote_count < WORLD_VOTES);
    w->votes[w->vote_count++] = (struct world_vote){.person = ev->ballot->person.ptr[0],
                                                    .agrees = ev->ballot->agrees,
                                                    .step = (uint16_t)ev->step};
}

void world_votes_void(struct world *w, uint16_t step)
{
    uint16_t kept = 0;

    for (uint16_t i = 0; i < w->vote_count; i++)
        if (w->votes[i].step != step)
            w->votes[kept++] = w->votes[i];
    memset(&w->votes[kept], 0, (size_t)(w->vote_count - kept) * sizeof *w->votes);
    w->vote_count = kept;
}

void world_ask_anew(struct world *w)
{
    for (uint16_t i = 0; i < w->step_count; i++) {
        struct world_step *s = &w->steps[i];
        if (w->graph->steps[i].kind != KIND_APPROVE || s->begun_at == 0 || s->phase != PHASE_IDLE)
            continue;
        world_votes_void(w, i);
        s->begun_at = s->signal_by = 0;
    }
}

void world_asked(struct world *w, const struct event *ev, const struct step *s)
{
    if (w->graph->steps[ev->step].kind != KIND_APPROVE)
        return;
    CHECK(s->generation + 1 > w->steps[ev->step].asking, "%s: one number for two questions",
          history_story());
    w->steps[ev->step].asking = s->generation + 1;
}

bool world_waited_well(const struct world *w, const struct event *ev)
{
    const struct workflow_step *spec = &w->graph->steps[ev->step];

    if (ev->kind == EVENT_DECIDED)
        return count_of(w, ev->step, false) == 0;
    return spec->signal.otherwise.ptr || spec->approve.otherwise.ptr;
}

void world_check_votes(const struct world *w, const struct task *t, const char *(*about)(void))
{
    CHECK(t->vote_count == w->vote_count, "%s: votes", about());
    for (uint16_t i = 0; i < w->vote_count; i++) {
        const struct world_vote *v = &w->votes[i];
        const struct vote *c = &t->votes[i];
        CHECK(c->person.ptr[0] == v->person && c->agrees == v->agrees && c->step == v->step,
              "%s: vote %u", about(), i);
    }
    for (uint16_t i = 0; i < w->step_count; i++) {
        const struct step *s = &t->steps[i];
        if (w->graph->steps[i].kind != KIND_APPROVE)
            continue;
        CHECK((s->input.json.ptr != NULL) == (w->steps[i].begun_at != 0), "%s: the question of %u",
              about(), i);
        CHECK(s->begun_at == 0 || s->generation + 1 == w->steps[i].asking, "%s: number of %u",
              about(), i);
        CHECK(s->state != STEP_FAILED || s->begun_at == 0 || s->supplied
                  || slice_is(s->error.code, count_of(w, i, false) ? "rejected" : "not_approved"),
              "%s: why %u failed", about(), i);
    }
}

const struct ballot *history_ballot(char person, bool agrees, uint32_t asking)
{
    static const char letters[] = "ABHSX";
    static struct ballot b;

    b = *kit_ballot(person, agrees, asking);
    b.person = (struct slice){strchr(letters, person), 1};
    return &b;
}
