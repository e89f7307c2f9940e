#ifndef BASE_FUZZ_H
#define BASE_FUZZ_H

/*
 * Shared by all fuzz targets. A target is one function that accepts any bytes; its oracles are its
 * assertions and the sanitizers. Linked with fuzz_main.c it is a program that replays tests/corpus,
 * which `meson test` runs; tools/fuzz links it with libFuzzer instead.
 */

#include "base/base.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);

/* Consumes an input byte by byte. */
struct fuzz {
    const uint8_t *at;
    size_t left;
};

static inline uint8_t fuzz_byte(struct fuzz *f) /* after the end: 0 */
{
    if (f->left == 0)
        return 0;
    f->left--;
    return *f->at++;
}

static inline uint64_t fuzz_number(struct fuzz *f, unsigned bytes)
{
    uint64_t v = 0;

    while (bytes-- > 0)
        v = v << 8 | fuzz_byte(f);
    return v;
}

static inline struct slice fuzz_rest(struct fuzz *f)
{
    struct slice s = {(const char *)f->at, f->left};

    *f = (struct fuzz){f->at + f->left, 0};
    return s;
}

/* The bytes before the next `end`, which is consumed too; or the rest. */
static inline struct slice fuzz_until(struct fuzz *f, char end)
{
    const uint8_t *found = f->left ? memchr(f->at, end, f->left) : NULL;

    if (!found)
        return fuzz_rest(f);
    struct slice s = {(const char *)f->at, (size_t)(found - f->at)};
    *f = (struct fuzz){found + 1, f->left - s.len - 1};
    return s;
}

#endif
