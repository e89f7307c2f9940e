#ifndef BASE_CLOCK_H
#define BASE_CLOCK_H

/*
 * The clocks of this machine; nothing else of the program reads one. None of these can fail. Any
 * thread.
 *
 *     wall    since 1970 UTC; somebody may set it, forwards or backwards
 *     steady  never set; stands still while the machine is suspended. What waits on a condition
 *             uses it
 *     boot    never set; goes on while the machine is suspended. Leases and agents use it
 */

#include <stdint.h>
#include <time.h>

int64_t clock_wall_ms(void);
int64_t clock_steady_ms(void);
int64_t clock_steady_us(void);
int64_t clock_boot_ms(void);

/* Any other clock, such as the processor time of a thread; 0: its thread has ended. */
int64_t clock_read_ms(clockid_t id);

/* The moment in `ms` from now by that clock, for pthread_cond_timedwait(). ms >= 0 */
struct timespec clock_in_ms(clockid_t id, int64_t ms);

/* Differs between any two moments: a part of the seed of a generator. */
uint64_t clock_seed(void);

#endif
