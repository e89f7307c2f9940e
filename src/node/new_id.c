/* Ids that the server makes, of the store's time and random bytes: see new_id.h. They need not be
 * secret; tokens are made in access.c. */

#include "node/new_id.h"

#include <openssl/rand.h>
#include <stdio.h>

#include "node/node.h"

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
