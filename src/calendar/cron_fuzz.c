/* Fuzz target of cron.c and cron_next.c: parses any text as a cron expression, and asks for
 * moments of it in several zones. Each moment is a full second later than the one before, and
 * nothing loops for ever. What is refused is ERR_INVALID. */

#include "base/fuzz.h"
#include "base/when.h"
#include "calendar/cron.h"

static const char *const zones[] = {"UTC", "Europe/Rome", "Australia/Lord_Howe", "America/Santiago",
                                    "Pacific/Apia"};

static void ask(const struct cron *c, const char *name)
{
    struct zone *z = NULL;
    struct error e;
    int64_t at = INT64_C(1300000000000);

    if (zone_open(slice_of(name), &z, &e))
        return; /* without tzdata */
    for (int i = 0; i < 20 && at >= 0; i++) {
        int64_t next = cron_next(c, z, at);
        ASSERT(next < 0 || (next > at && next % MS_PER_S == 0));
        at = next;
    }
    zone_close(z);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    struct error e = {0};
    struct cron c;

    if (cron_parse((struct slice){(const char *)bytes, len}, &c, &e)) {
        ASSERT(e.code == ERR_INVALID);
        return 0;
    }
    for (size_t i = 0; i < COUNT_OF(zones); i++)
        ask(&c, zones[i]);
    return 0;
}
