/* Runs the scenarios of `intact agent check` one after the other, decides which cannot or need
 * not run, and collects the verdicts (check.h). scenarios.c has the table, stage.c plays one
 * scenario, report.c writes the results. */

#include "agents/check/check.h"

#include <stdio.h>
#include <stdlib.h>

#include "agents/check/stage.h"
#include "base/clock.h"

static bool is_named(const char *const *names, const char *name)
{
    for (size_t i = 0; names && names[i]; i++)
        if (strcmp(names[i], name) == 0)
            return true;
    return false;
}

static bool is_wanted(const struct check_settings *set, const struct check_scenario *sc)
{
    return (!set->only || !set->only[0] || is_named(set->only, sc->name))
           && !is_named(set->except, sc->name);
}

/* Why it cannot run at all; NULL: it can. */
static const char *why_not(const struct check_settings *set, const struct check_scenario *sc)
{
    if (sc->level == CHECK_KNOWN && set->action)
        return "it is for agents with the known actions, and --action says that it has others";
    if ((sc->level == CHECK_EFFECTS || sc->level == CHECK_EFFECTS_UNDO) && set->action
        && !set->effects)
        return "its effects cannot be counted (--effects)";
    if ((sc->level == CHECK_UNDO || sc->level == CHECK_EFFECTS_UNDO) && set->action && !set->undo)
        return "no action that undoes is known (--undo)";
    if (sc->needs_process && !set->command)
        return "it is for a command: one that calls by itself can be neither started nor ended";
    if (!set->command && strcmp(sc->name, "bearer") == 0)
        return "which token it has is known of a command alone";
    return NULL;
}

static void judge_rule(struct stage *s, const struct check_scenario *sc)
{
    for (unsigned i = 0; i < s->breach_count && !s->is_decided; i++)
        if (s->breaches[i].rule == sc)
            stage_wrong(s, s->breaches[i].expected, "%s", s->breaches[i].seen);
}

/* A rule is judged on the earlier scenarios, or if there were none, on a run of its own. */
static void play(struct stage *s, const struct check_scenario *sc)
{
    int64_t began_at = clock_boot_ms();
    const char *why = why_not(s->settings, sc);

    if (why || (sc->is_rule && s->call_serial > 0)) {
        s->verdict = (struct check_verdict){.scenario = sc};
        s->is_decided = false;
        if (why)
            stage_skip(s, "%s", why);
    } else {
        if (stage_begin(s, sc))
            sc->play(s);
        stage_end(s);
    }
    if (sc->is_rule)
        judge_rule(s, sc);
    s->verdict.took_ms = clock_boot_ms() - began_at;
}

static void add(struct check_sum *sum, enum check_end end)
{
    switch (end) {
    case CHECK_OK:
        sum->ok++;
        return;
    case CHECK_WRONG:
        sum->wrong++;
        return;
    case CHECK_SKIPPED:
        sum->skipped++;
        return;
    }
    UNREACHABLE();
}

/* Why no further scenario can run; NULL: it can. */
static const char *why_over(const struct stage *s)
{
    if (s->is_interrupted)
        return "broken off by a signal";
    if (clock_boot_ms() > s->ends_at)
        return "the time limit of all of it is over (--limit)";
    if (s->call_serial == 0 && s->verdict.end == CHECK_WRONG)
        return "the agent has not made a single call";
    return NULL;
}

static void play_all(struct stage *s, void (*told)(void *arg, const struct check_verdict *v),
                     void *arg, struct check_sum *ret)
{
    const char *over = NULL;

    for (size_t i = 0; i < check_scenario_count; i++) {
        const struct check_scenario *sc = &check_scenarios[i];
        if (!is_wanted(s->settings, sc))
            continue;
        if (over) {
            s->verdict = (struct check_verdict){.scenario = sc};
            s->is_decided = false;
            stage_skip(s, "%s", over);
        } else {
            play(s, sc);
            over = why_over(s);
        }
        add(ret, s->verdict.end);
        told(arg, &s->verdict);
    }
    ret->is_broken_off = over != NULL;
    (void)snprintf(ret->agent, sizeof ret->agent, "%s", s->agent);
}

enum err check_run(const struct check_settings *settings,
                   void (*told)(void *arg, const struct check_verdict *v), void *arg,
                   struct check_sum *ret, struct error *e)
{
    struct stage *s = calloc(1, sizeof *s); /* too large for a stack frame */

    ASSERT(!settings->command != !settings->listen);
    if (!s)
        out_of_memory(sizeof *s);
    enum err err = stage_init(s, settings, e);
    *ret = (struct check_sum){0};
    if (err == ERR_OK)
        play_all(s, told, arg, ret);
    stage_fini(s);
    free(s);
    return err;
}
