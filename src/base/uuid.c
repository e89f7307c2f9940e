/* Writes UUIDs from random bytes that the caller supplies, and checks those that others wrote
 * (uuid.h). The stores name their installation by one: schema.c of each SQL body makes it. */

#include "base/uuid.h"

static bool is_dash_at(int i)
{
    return i == 8 || i == 13 || i == 18 || i == 23;
}

void uuid_write(const unsigned char random[16], char ret[UUID_SIZE])
{
    static const char hex[] = "0123456789abcdef";
    unsigned char u[16];
    int at = 0;

    memcpy(u, random, sizeof u);
    u[6] = (unsigned char)((u[6] & 0x0f) | 0x40);
    u[8] = (unsigned char)((u[8] & 0x3f) | 0x80);
    for (size_t i = 0; i < sizeof u; i++) {
        if (is_dash_at(at))
            ret[at++] = '-';
        ret[at++] = hex[u[i] >> 4];
        ret[at++] = hex[u[i] & 15];
    }
    ASSERT(at == UUID_SIZE - 1);
    ret[at] = 0;
}

bool uuid_read(struct slice text, char ret[UUID_SIZE])
{
    char small[UUID_SIZE] = {0};

    if (text.len != UUID_SIZE - 1)
        return false;
    for (int i = 0; i < UUID_SIZE - 1; i++) {
        char c = text.ptr[i];
        bool is_letter = (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
        if (is_dash_at(i) ? c != '-' : !is_letter && (c < '0' || c > '9'))
            return false;
        small[i] = (char)(is_letter ? c | 0x20 : c);
    }
    memcpy(ret, small, sizeof small);
    return true;
}
