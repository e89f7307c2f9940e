/* Persons who vote on approvals: at bad times, twice, in races, on old questions, and where they
 * are not asked (voters.h). people.c carries their votes to nodes; check_votes.c has the rules. */

#include "sim/voters.h"

#include <stdio.h>

#include "base/when.h"
#include "core/decide.h"
#include "sim/people.h"
#include "sim/world.h"

enum { CROWD_MAX = 5, EACH_MS = 10 * MS_PER_S, CALM_VOTES = 40 /* kept for calm times */ };

static const char asked[] = {'A', 'B', 'C'};

struct ballot voters_ballot(const struct sent_vote *v)
{
    static const struct slice all[] = {{"g", 1}, {"h", 1}, {"x", 1}};
    size_t group = v->person == VOTER_NEVER ? 2 : v->person == VOTER_LATER ? 1 : 0;

    return (struct ballot){.person = text_of("%c", v->person),
                           .comment = v->agrees ? SLICE_NONE : SLICE("not so"),
                           .groups = &all[group],
                           .group_count = 1,
                           .asking = v->asking,
                           .agrees = v->agrees};
}

void voters_token(const struct sent_vote *v, char ret[VOTER_TOKEN_SIZE])
{
    (void)snprintf(ret, VOTER_TOKEN_SIZE, "%c of %c", v->token, v->person);
}

static bool is_asking(const struct subject *t, uint32_t i)
{
    const struct seen_step *s = &t->seen.steps[i];

    return t->flow->steps[i].is_approval && s->state == STEP_WAITING && s->begun_at != 0
           && !seen_is_end(&t->seen) && t->seen.direction == DIRECTION_FORWARD;
}

static char any_person(void)
{
    static const char all[] = {'A', 'B',           'C',         'A',        'B',
                               'C', VOTER_SUBMITS, VOTER_LATER, VOTER_NEVER};

    return all[below(COUNT_OF(all))];
}

/* Whoever votes has read the question, or any. */
static void somebody_votes(struct subject *t, uint32_t step)
{
    const struct sent_vote v = {.step = step,
                                .asking = chance(500) ? t->seen.steps[step].generation : 0,
                                .person = any_person(),
                                .token = t->votes_sent % 2 ? 'a' : 'b',
                                .agrees = !chance(150)};

    if (t->votes_sent + CALM_VOTES < SENT_VOTES_MAX)
        people_vote(t, &v, chance(500) ? between(0, 10) : spread(1, 20000));
}

static void some_vote(struct subject *t)
{
    for (uint32_t i = 0; i < t->seen.step_count; i++) {
        bool now = is_asking(t, i) && chance(200);
        if (!now && !(t->flow->steps[i].is_approval && chance(10)))
            continue; /* some vote where nothing is asked yet, or any more */
        for (uint32_t n = 1 + below(CROWD_MAX); n > 0; n--)
            somebody_votes(t, i);
    }
}

static void look(void *arg, uint64_t n)
{
    (void)arg;
    (void)n;
    if (world.calm)
        return;
    for (uint32_t i = 0; i < subjects.count; i++)
        some_vote(&subjects.list[i]);
    later(between(100, 3000), look, NULL, 0);
}

void voters_begin(void)
{
    later(between(100, 3000), look, NULL, 0);
}

static void all_vote(struct subject *t, uint32_t step)
{
    for (size_t i = 0; i < COUNT_OF(asked); i++) {
        const struct sent_vote v = {.step = step, .person = asked[i], .token = 'a', .agrees = true};
        people_vote(t, &v, 0);
    }
}

void voters_look(void)
{
    for (uint32_t i = 0; i < subjects.count; i++) {
        struct subject *t = &subjects.list[i];
        for (uint32_t k = 0; k < t->seen.step_count; k++)
            if (is_asking(t, k) && t->asked_at + EACH_MS <= world.now
                && t->votes_sent + COUNT_OF(asked) <= SENT_VOTES_MAX) {
                t->asked_at = world.now;
                all_vote(t, k);
            }
    }
}
