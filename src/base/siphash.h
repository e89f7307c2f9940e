#ifndef BASE_SIPHASH_H
#define BASE_SIPHASH_H

/*
 * SipHash, after J.-P. Aumasson and D. J. Bernstein, "SipHash: a fast short-input PRF", 2012:
 * without the key, nobody can find colliding texts. `rounds` is the number of rounds for each 8
 * bytes, `last_rounds` that at the end: 2 and 4 are the paper's choice; its authors, and many
 * languages since, consider 1 and 3 sufficient for tables. Both must be constants.
 */

#include "base/base.h"

struct siphash_key {
    uint64_t low, high; /* the first 8 bytes and the others, least significant byte first */
};

static inline uint64_t siphash_left(uint64_t v, int by)
{
    return v << by | v >> (64 - by);
}

static inline uint64_t siphash_word(const unsigned char *p)
{
    uint64_t v;

    memcpy(&v, p, sizeof v);
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    v = __builtin_bswap64(v);
#endif
    return v;
}

static inline void siphash_round(uint64_t v[4])
{
    v[0] += v[1];
    v[2] += v[3];
    v[1] = siphash_left(v[1], 13) ^ v[0];
    v[3] = siphash_left(v[3], 16) ^ v[2];
    v[0] = siphash_left(v[0], 32);
    v[2] += v[1];
    v[0] += v[3];
    v[1] = siphash_left(v[1], 17) ^ v[2];
    v[3] = siphash_left(v[3], 21) ^ v[0];
    v[2] = siphash_left(v[2], 32);
}

/* Up to 7 bytes, least significant byte first. */
static inline uint64_t siphash_rest(const unsigned char *p, size_t len)
{
    uint64_t v = 0;

    switch (len & 7) {
    case 7:
        v |= (uint64_t)p[6] << 48;
        FALL_THROUGH;
    case 6:
        v |= (uint64_t)p[5] << 40;
        FALL_THROUGH;
    case 5:
        v |= (uint64_t)p[4] << 32;
        FALL_THROUGH;
    case 4:
        v |= (uint64_t)p[3] << 24;
        FALL_THROUGH;
    case 3:
        v |= (uint64_t)p[2] << 16;
        FALL_THROUGH;
    case 2:
        v |= (uint64_t)p[1] << 8;
        FALL_THROUGH;
    case 1:
        v |= (uint64_t)p[0];
        break;
    default:
        break;
    }
    return v;
}

static inline uint64_t siphash(const struct siphash_key *key, const void *ptr, size_t len,
                               int rounds, int last_rounds)
{
    const unsigned char *p = ptr;
    uint64_t v[4] = {
        key->low ^ UINT64_C(0x736f6d6570736575),
        key->high ^ UINT64_C(0x646f72616e646f6d),
        key->low ^ UINT64_C(0x6c7967656e657261),
        key->high ^ UINT64_C(0x7465646279746573),
    };

    for (size_t left = len; left >= 8; left -= 8, p += 8) {
        uint64_t word = siphash_word(p);
        v[3] ^= word;
        for (int i = 0; i < rounds; i++)
            siphash_round(v);
        v[0] ^= word;
    }
    uint64_t last = (uint64_t)len << 56 | siphash_rest(p, len);
    v[3] ^= last;
    for (int i = 0; i < rounds; i++)
        siphash_round(v);
    v[0] ^= last;
    v[2] ^= 0xff;
    for (int i = 0; i < last_rounds; i++)
        siphash_round(v);
    return v[0] ^ v[1] ^ v[2] ^ v[3];
}

#endif
