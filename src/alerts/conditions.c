/* The table of conditions of alerts: their names, texts, and how long each has to hold before an
 * alert opens (conditions.h). background/alerts.c and watch.c find which of them hold. */

#include "alerts/conditions.h"

#include "base/base.h"

static const struct {
    const char *text, *about;
    int64_t wait_ms;
} conditions[] = {
#define X(name, text, wait, about) {text, about, wait},
    ALERT_CONDITIONS(X)
#undef X
};

const char *condition_text(enum alert_condition c)
{
    ASSERT((size_t)c < CONDITION_COUNT);
    return conditions[c].text;
}

const char *condition_about(enum alert_condition c)
{
    ASSERT((size_t)c < CONDITION_COUNT);
    return conditions[c].about;
}

bool condition_parse(struct slice text, enum alert_condition *ret)
{
    for (size_t i = 0; i < CONDITION_COUNT; i++)
        if (slice_is(text, conditions[i].text)) {
            *ret = (enum alert_condition)i;
            return true;
        }
    return false;
}

int64_t condition_wait_ms(enum alert_condition c)
{
    ASSERT((size_t)c < CONDITION_COUNT);
    return conditions[c].wait_ms;
}
