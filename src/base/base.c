#include "base/base.h"

#include <stdio.h>
#include <stdlib.h>

void (*assert_story)(void);

_Noreturn void assert_failed(const char *cond, const char *file, int line)
{
    fprintf(stderr, "%s:%d: assertion failed: %s\n", file, line, cond);
    if (assert_story)
        assert_story();
    abort();
}
