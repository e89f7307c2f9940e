/*
 * The clock of the database as this process knows it: an offset to the steady clock, measured with
 * each round trip. Any thread may read it, under a mutex. postgres/time.c measures it.
 */
#include "store/store_time.h"

#include "base/clock.h"

/* Both clocks are read in whole ms. */
enum { GRAIN_MS = 1 };

void store_time_init(struct store_time *t, int64_t offset)
{
    *t = (struct store_time){.offset = offset, .from = offset};
    int rc = pthread_mutex_init(&t->lock, NULL);
    ASSERT(rc == 0);
}

void store_time_fini(struct store_time *t)
{
    int rc = pthread_mutex_destroy(&t->lock);

    ASSERT(rc == 0);
}

/* What is added to the steady clock now. It falls by less than what has passed: the sum rises. */
static int64_t offset_at(const struct store_time *t, int64_t steady)
{
    return max_i64(t->offset, t->from - max_i64(0, steady - t->since) / STORE_TIME_SLOWER);
}

int64_t store_time_at(struct store_time *t, int64_t steady)
{
    (void)pthread_mutex_lock(&t->lock); /* cannot fail: no thread takes it twice */
    int64_t now = steady + offset_at(t, steady);
    (void)pthread_mutex_unlock(&t->lock);
    return now;
}

int64_t store_time_now(struct store_time *t)
{
    /* The clock is read under the lock: a reader that is overtaken by a sample must not add the
     * offset of after it to a moment of before it. */
    (void)pthread_mutex_lock(&t->lock);
    int64_t steady = clock_boot_ms();
    int64_t now = steady + offset_at(t, steady);
    (void)pthread_mutex_unlock(&t->lock);
    return now;
}

int64_t store_time_sample(struct store_time *t, int64_t sent_at, int64_t received_at,
                          int64_t theirs)
{
    int64_t least = theirs - received_at - GRAIN_MS;
    int64_t most = theirs - sent_at + GRAIN_MS;
    int64_t off = 0;

    ASSERT(sent_at <= received_at);
    (void)pthread_mutex_lock(&t->lock);
    if (!t->known || t->offset < least || t->offset > most) {
        int64_t middle = least + (most - least) / 2;
        off = t->known ? middle - t->offset : 0;
        /* What is ahead by now stays ahead until the store has caught up. */
        t->from = max_i64(middle, offset_at(t, received_at));
        t->since = received_at;
        t->offset = middle;
        t->known = true;
    }
    (void)pthread_mutex_unlock(&t->lock);
    return off;
}
