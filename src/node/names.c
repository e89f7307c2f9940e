/*
 * Which names and ids are valid in requests, and new ids. Pure, except that a new id takes the
 * store's time and random bytes.
 */

#include "node/names.h"

#include <openssl/rand.h>
#include <stdio.h>

#include "node/node.h"

static bool is_made_of(struct slice s, const char *more, size_t max)
{
    for (size_t i = 0; i < s.len; i++) {
        char c = s.ptr[i];
        if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9')
              || (c && strchr(more, c))))
            return false;
    }
    return s.ptr && s.len >= 1 && s.len <= max;
}

bool is_name(struct slice s)
{
    return is_made_of(s, "._:-", 128);
}

bool is_task_id(struct slice s)
{
    return is_made_of(s, "._:-@", 128);
}

bool is_tag_key(struct slice s)
{
    return is_made_of(s, "._-", 64);
}

bool is_signal_key(struct slice s)
{
    for (size_t i = 0; i < s.len; i++)
        if (s.ptr[i] <= ' ' || s.ptr[i] >= 0x7f)
            return false;
    return s.ptr && s.len >= 1 && s.len <= SIGNAL_KEY_MAX;
}

void id_give(struct server *sv, char ret[ID_TEXT_SIZE])
{
    unsigned char u[16];
    int64_t now = server_now(sv);

    int rc = RAND_bytes(u, sizeof u);
    ASSERT(rc == 1);
    for (int i = 0; i < 6; i++)
        u[i] = (unsigned char)(now >> (40 - 8 * i));
    u[6] = (unsigned char)((u[6] & 0x0f) | 0x70);
    u[8] = (unsigned char)((u[8] & 0x3f) | 0x80);
    (void)snprintf(ret, ID_TEXT_SIZE,
                   "%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x", u[0],
                   u[1], u[2], u[3], u[4], u[5], u[6], u[7], u[8], u[9], u[10], u[11], u[12], u[13],
                   u[14], u[15]);
}
