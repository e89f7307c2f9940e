/* The cost that a breaker adds to a request: one check before the start, one record of the outcome.
 * Usage: bench-breaker */

#include <stdio.h>
#include <time.h>

#include "dispatch/breaker.h"

enum { CALLS = 20000000 };

int main(void)
{
    const struct breaker_rule r = settings_default().breaker;
    struct breaker b = {0};
    struct timespec from, to;
    uint64_t room = 0;

    (void)clock_gettime(CLOCK_MONOTONIC, &from);
    for (int64_t i = 0; i < CALLS; i++) {
        room += breaker_room(&b, &r);
        (void)breaker_start(&b, &r, 1 + i / 100);
        (void)breaker_ended(&b, &r, i % 8 ? END_GOOD : END_BAD, 1 + i / 100, 1 + i / 100, 7);
    }
    (void)clock_gettime(CLOCK_MONOTONIC, &to);
    double ns = (double)(to.tv_sec - from.tv_sec) * 1e9 + (double)(to.tv_nsec - from.tv_nsec);
    printf("breaker: %.1f ns a request (%s)\n", ns / CALLS, room > 0 ? "closed" : "open");
    return 0;
}
