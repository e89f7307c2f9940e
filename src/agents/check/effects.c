/* Counts the effects of the agent under test: by the command of --effects, or by the action
 * `count` that agents for the check have. The agent's calls are served meanwhile. play_moments.c
 * asks. */

#include <errno.h>
#include <signal.h>
#include <stdlib.h>

#include "agents/check/stage.h"
#include "base/clock.h"

enum { AGAIN_MS = 200 };

static bool has_ended(struct stage *s, const void *arg)
{
    (void)arg;
    child_look(&s->counter);
    return s->counter.has_ended;
}

/* Only this process, not our other children. */
static void end(struct child *c)
{
    child_signal(c, SIGKILL);
    while (!c->has_ended)
        child_look(c);
    child_look(c); /* closes its output */
}

/* A whole number, surrounded only by white space. */
static bool read_number(const struct child *c, int64_t *ret)
{
    char text[CHILD_TAIL_MAX + 1];
    char *behind = text;

    memcpy(text, c->tail, c->tail_len);
    text[c->tail_len] = 0;
    errno = 0;
    *ret = strtoll(text, &behind, 10);
    return errno == 0 && behind != text && behind[strspn(behind, " \t\r\n")] == 0;
}

static char *text_copy(struct stage *s, const char *text)
{
    size_t size = strlen(text) + 1;

    return memcpy(arena_alloc(&s->arena, size), text, size);
}

/* The agent's calls are served meanwhile. False: it failed, or the scenario is decided. */
static bool run_command(struct stage *s, int64_t *ret)
{
    static const char expected[] = "a command of --effects that ends";
    char shell[] = "/bin/sh";
    char flag[] = "-c";
    char *words[] = {shell, flag, text_copy(s, s->settings->effects), NULL};
    char *const no_variables[] = {NULL};
    struct child *c = &s->counter;
    struct error e = {0};

    *c = (struct child){.out = -1};
    if (child_start(c, words, no_variables, &e) != ERR_OK) {
        stage_wrong(s, expected, "%s", e.text);
        return false;
    }
    bool is_there = stage_until(s, has_ended, NULL, expected);
    end(c);
    return is_there && c->status == 0 && read_number(c, ret);
}

/* Retries, because a killed process may leave a database locked for a while. */
static bool ask_command(struct stage *s, int64_t *ret)
{
    int64_t until = clock_boot_ms() + s->settings->patience_ms;
    char how[80];

    while (!run_command(s, ret) && !s->is_decided) {
        child_describe_end(&s->counter, how, sizeof how);
        if (clock_boot_ms() > until)
            stage_wrong(s, "a whole number from the command of --effects", "%s, after \"%.*s\"",
                        how, (int)s->counter.tail_len, s->counter.tail);
        else
            (void)stage_passes(s, AGAIN_MS);
    }
    return !s->is_decided;
}

/* The known action counts with an effect of its own. */
static bool ask_count(struct stage *s, int64_t *ret)
{
    struct asked *a = stage_ask(s, &(struct ask){.action = "count"});

    if (!stage_output(s, a))
        return false;
    int64_t n = json_get_int(json_get(a->result, "output"), "n", -1);
    if (n < 0)
        stage_wrong(s, "the output {\"n\": NUMBER} of the action count", "%.*s",
                    SLICE_ARG(slice_cut(a->result->raw, 300)));
    *ret = n - ++s->probes;
    return !s->is_decided;
}

bool stage_effects(struct stage *s, int64_t *ret)
{
    *ret = 0;
    return s->settings->effects ? ask_command(s, ret) : ask_count(s, ret);
}
