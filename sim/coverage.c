/* Counts how often the runs met each interesting case (coverage.h has the list), and prints the
 * counts with those that never occurred. Runs in several processes share one page of counts
 * (many.c). */

#include "sim/coverage.h"

#include <stdio.h>

static const char *const texts[] = {
#define X(name, text) text,
    COVERAGE(X)
#undef X
};

static uint64_t own[COUNT_OF(texts)];
static uint64_t *counts = own;

void covered(enum cover c)
{
    (void)__atomic_fetch_add(&counts[c], 1, __ATOMIC_RELAXED);
}

void coverage_print(void)
{
    for (size_t i = 0; i < COUNT_OF(texts); i++)
        printf("%10" PRIu64 "  %s%s\n", counts[i], texts[i], counts[i] ? "" : "   <-- NEVER");
}

size_t coverage_size(void)
{
    return sizeof own;
}

void coverage_share(void *page)
{
    counts = page;
}
