#ifndef BASE_FUZZ_H
#define BASE_FUZZ_H

/*
 * What all fuzz targets share. A target is one function that takes any bytes; its oracle are its
 * assertions and the sanitizers. Linked with fuzz_main.c it is a plain program that replays
 * tests/corpus, which `meson test` does; tools/fuzz links it with libFuzzer instead.
 */

#include "base/base.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);

/* Takes the bytes of an input one after another. */
struct fuzz {
    const uint8_t *at;
    size_t left;
};

static inline uint8_t fuzz_byte(struct fuzz *f) /* behind the end: 0 */
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

/* What stands before the next `end`, which is taken with it; or all that is left. */
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
