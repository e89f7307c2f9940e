#ifndef BASE_TEST_H
#define BASE_TEST_H

/*
 * Included by every test: cmocka with its prerequisites, and CHECK, an assertion with a message.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "base/base.h"

#define CHECK(cond, ...)                                                       \
    do {                                                                       \
        if (!(cond)) {                                                         \
            fprintf(stderr, "%s:%d: not so: %s: ", __FILE__, __LINE__, #cond); \
            fprintf(stderr, __VA_ARGS__);                                      \
            fputc('\n', stderr);                                               \
            fail();                                                            \
        }                                                                      \
    } while (0)

#endif
