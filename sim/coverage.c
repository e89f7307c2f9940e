#include "sim/coverage.h"

#include <stdio.h>

static const char *const texts[] = {
#define X(name, text) text,
    COVERAGE(X)
#undef X
};

static uint64_t counts[COUNT_OF(texts)];

void covered(enum cover c)
{
    counts[c]++;
}

void coverage_print(void)
{
    for (size_t i = 0; i < COUNT_OF(texts); i++)
        printf("%10" PRIu64 "  %s%s\n", counts[i], texts[i], counts[i] ? "" : "   <-- NEVER");
}
