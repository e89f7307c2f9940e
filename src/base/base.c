/* What a failed ASSERT or a failed allocation does (base.h): it prints the reason on stderr,
 * calls assert_story if a test or the simulator has set it, and aborts. It allocates nothing
 * itself, and does not use the log (log.c). */

#include "base/base.h"

#include <stdio.h>
#include <stdlib.h>

void (*assert_story)(void);

_Noreturn void out_of_memory(size_t wanted)
{
    fprintf(
        stderr,
        "out of memory: %zu bytes are not to be had; what was acknowledged is durable, start it "
        "again, with more memory or lower limits\n",
        wanted);
    if (assert_story)
        assert_story();
    abort();
}

_Noreturn void assert_failed(const char *cond, const char *file, int line)
{
    fprintf(stderr, "%s:%d: assertion failed: %s\n", file, line, cond);
    if (assert_story)
        assert_story();
    abort();
}
