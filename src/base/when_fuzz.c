/* Fuzz target of when.c: parses any text as a duration and as a time. What is accepted must
 * survive writing and parsing again. fuzz_main.c replays the corpus. */

#include "base/fuzz.h"
#include "base/when.h"

static void as_duration(struct slice text)
{
    CLEANUP(buf_fini) struct buf b = {0};
    int64_t ms = -1;
    int64_t again = -1;

    if (!duration_parse(text, &ms))
        return;
    ASSERT(ms >= 0);
    ASSERT(ms <= 10000 * MS_PER_D);
    duration_write(&b, ms);
    bool ok = duration_parse(buf_view(&b), &again);
    ASSERT(ok);
    ASSERT(again == ms);
}

static void as_time(struct slice text)
{
    CLEANUP(buf_fini) struct buf b = {0};
    int64_t at = -1;
    int64_t again = -1;

    if (!time_parse(text, &at))
        return;
    ASSERT(at >= 0);
    time_write(&b, at);
    ASSERT(b.len == strlen("2026-01-31T10:00:00.000Z"));
    bool ok = time_parse(buf_view(&b), &again);
    ASSERT(ok);
    ASSERT(again == at);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    struct slice text = {(const char *)bytes, len};

    as_duration(text);
    as_time(text);
    return 0;
}
