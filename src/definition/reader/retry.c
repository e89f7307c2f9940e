/* Reads `retry` of a step or an undo into a retry rule, and checks that its attempts fit into a
 * deadline. core/retry.c applies the rule. */
#include <math.h>
#include <stdlib.h>

#include "base/when.h"
#include "definition/reader/definition_reader.h"

enum { TRIES_MAX = 1000, FACTOR_MAX = 100 };

const struct retry_rule retry_default = {
    .attempts = 5,
    .factor_milli = 2000,
    .wait_ms = 1000,
    .max_wait_ms = 60000,
    .jitter = true,
};

struct retry_draft {
    struct retry_rule rule;
    const struct json *max_wait, *defer, *defers;
};

static bool read_count(struct reader *r, const struct json *j, const struct path *path,
                       int64_t least, uint32_t *ret)
{
    int64_t v = 0;

    if (!json_int(j, &v) || v < least || v > TRIES_MAX) {
        mistake_in(r, path, j, "a whole number from %" PRId64 " to %d", least, TRIES_MAX);
        return false;
    }
    *ret = (uint32_t)v;
    return true;
}

static void read_attempts(struct reader *r, const struct json *j, const struct path *path,
                          void *target)
{
    struct retry_draft *d = target;

    (void)read_count(r, j, path, 1, &d->rule.attempts); /* a mistake is reported by the reader */
}

static void read_defers(struct reader *r, const struct json *j, const struct path *path,
                        void *target)
{
    struct retry_draft *d = target;

    if (read_count(r, j, path, 0, &d->rule.defers))
        d->defers = j;
}

void read_growth(struct reader *r, const struct json *j, const struct path *path, void *target)
{
    char text[32] = "";

    if (j->type == JSON_NUMBER && j->text.len < sizeof text)
        memcpy(text, j->text.ptr, j->text.len);
    double factor = strtod(text, NULL);
    if (!(factor >= 1 && factor <= FACTOR_MAX))
        mistake_in(r, path, j, "a number from 1 to %d", FACTOR_MAX);
    else
        *(uint32_t *)target = (uint32_t)lround(factor * 1000);
}

static void read_max_wait(struct reader *r, const struct json *j, const struct path *path,
                          void *target)
{
    struct retry_draft *d = target;

    d->max_wait = j;
    read_duration(r, j, path, &d->rule.max_wait_ms);
}

static void read_defer(struct reader *r, const struct json *j, const struct path *path,
                       void *target)
{
    struct retry_draft *d = target;

    d->defer = j;
    read_length(r, j, path, &d->rule.defer_ms);
}

/* Fields that are valid separately may contradict each other. */
static void check_together(struct reader *r, const struct json *j, const struct path *path,
                           struct retry_draft *d)
{
    struct path max_wait = {path, SLICE("max_wait"), 0};
    struct path defer = {path, SLICE("defer"), 0};
    struct path defers = {path, SLICE("defers"), 0};

    if (!d->max_wait)
        d->rule.max_wait_ms = max_i64(d->rule.max_wait_ms, d->rule.wait_ms);
    else if (d->rule.max_wait_ms < d->rule.wait_ms)
        mistake_in(r, &max_wait, d->max_wait, "at least as long as wait");
    if (d->defer && !d->defers)
        mistake_at(r, &defers, j->at, "nothing", "defers: how often to wait so long");
    if (!d->defer && d->rule.defers > 0)
        mistake_at(r, &defer, j->at, "nothing", "defer: how long to wait each time");
}

void read_retry(struct reader *r, const struct json *j, const struct path *path, void *target)
{
    static const struct field fields[] = {
        FIELD("attempts", read_attempts, 0),
        FIELD("wait", read_duration, offsetof(struct retry_draft, rule.wait_ms)),
        FIELD("factor", read_growth, offsetof(struct retry_draft, rule.factor_milli)),
        FIELD("max_wait", read_max_wait, 0),
        FIELD("jitter", read_bool, offsetof(struct retry_draft, rule.jitter)),
        FIELD("defer", read_defer, 0),
        FIELD("defers", read_defers, 0),
    };
    struct retry_draft d = {.rule = retry_default};

    read_object(r, j, path, fields, COUNT_OF(fields), &d);
    if (j->type == JSON_OBJECT)
        check_together(r, j, path, &d);
    *(struct retry_rule *)target = d.rule;
}

/* The least sum of all waits: jitter shortens each by up to a half. */
static int64_t least_wait(const struct retry_rule *rule)
{
    double wait = (double)rule->wait_ms;
    double sum = 0;

    for (uint32_t i = 1; i < rule->attempts; i++) {
        sum += rule->jitter ? floor(wait) - floor(wait / 2) : floor(wait);
        wait = fmin(wait * rule->factor_milli / 1000, (double)rule->max_wait_ms);
    }
    sum += (double)rule->defer_ms * rule->defers;
    return sum > 1e15 ? INT64_C(1000000000000000) : (int64_t)sum;
}

void check_schedule(struct reader *r, const struct json *j, const struct path *path,
                    const struct retry_rule *rule, int64_t limit_ms, const char *limit)
{
    CLEANUP(buf_fini) struct buf found = {0};
    int64_t waits = least_wait(rule);

    if (limit_ms == 0 || waits < limit_ms)
        return;
    buf_str(&found, "tries that wait for at least ");
    duration_write(&found, waits < MS_PER_MIN ? waits : waits / MS_PER_S * MS_PER_S);
    mistake_at(r, path, j->at, found.ptr, "less than the %s", limit);
}
