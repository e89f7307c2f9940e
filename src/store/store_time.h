#ifndef STORE_STORE_TIME_H
#define STORE_STORE_TIME_H

/*
 * The time of a store that has a clock of its own, as one of its nodes knows it: the steady clock
 * of this machine and an offset, measured now and then on round trips to the store.
 *
 * A round trip says that the offset lies in an interval as long as it took. An offset that lies in
 * it stays; one that does not becomes the middle. So slow round trips say little, and what is right
 * does not tremble.
 *
 * It never goes backwards. When the store turns out to be ahead, it is there at once. When the
 * store is behind (a standby with another clock was promoted), it goes on a little slower (by one
 * part of STORE_TIME_SLOWER) until the store has caught up: whoever waits for a length of time
 * waits a little longer, but not for ever.
 *
 * All times are ms; `steady` ones are of a clock that never jumps. Thread-safe, but for init.
 */

#include <pthread.h>

#include "base/base.h"

enum { STORE_TIME_SLOWER = 16 };

struct store_time {
    pthread_mutex_t lock;
    bool known;     /* there was a sample */
    int64_t offset; /* of the store's clock to the steady one, as last measured */
    int64_t from;   /* ours was that at `since`; it falls to `offset` by and by */
    int64_t since;  /* steady */
};

/* Until the first sample the offset is `offset`. */
void store_time_init(struct store_time *t, int64_t offset);
void store_time_fini(struct store_time *t);

/* At `steady`, which must not be less than in the call before. */
int64_t store_time_at(struct store_time *t, int64_t steady);

/* By clock_boot_ms(), so that a suspended machine is not behind. */
int64_t store_time_now(struct store_time *t);

/* The store's clock showed `theirs` at some moment between these two steady ones. Returns by how
 * much it was off what we had believed: 0 if that may have been right, or nothing was known. */
int64_t store_time_sample(struct store_time *t, int64_t sent_at, int64_t received_at,
                          int64_t theirs);

#endif
