/* Ids of children: T@STEP, or T@STEP:2 for the second child of that step. One that would be longer
 * than an id may be ends in a hash of it. */

#include "tasks/family.h"

#include <openssl/evp.h>
#include <string.h>

#include "core/key.h"

enum { ID_MAX = 128, SUM_BYTES = 24, SUM_CHARS = 32 };

_Static_assert(SUM_CHARS == SUM_BYTES / 3 * 4, "without padding");

static struct slice shortened(struct slice id, struct arena *a)
{
    unsigned char sum[EVP_MAX_MD_SIZE] = {0};
    char text[SUM_CHARS + 1];
    char *to = arena_bytes(a, ID_MAX);
    size_t kept = ID_MAX - 1 - SUM_CHARS;

    int ok = EVP_Digest(id.ptr, id.len, sum, NULL, EVP_sha256(), NULL);
    ASSERT(ok == 1);
    (void)EVP_EncodeBlock((unsigned char *)text, sum, SUM_BYTES);
    for (char *p = text; *p; p++) /* as in URLs */
        *p = (char)(*p == '+' ? '-' : *p == '/' ? '_' : *p);
    memcpy(to, id.ptr, kept);
    to[kept] = '@';
    memcpy(to + kept + 1, text, SUM_CHARS);
    return (struct slice){to, ID_MAX};
}

struct slice child_id(struct slice parent, struct slice step, uint32_t number, struct arena *a)
{
    size_t len = child_id_len(parent, step, number);
    char *text = arena_bytes(a, len);
    struct slice id = {text, len};

    ASSERT(number >= 1);
    child_id_write(parent, step, number, text);
    return len <= ID_MAX ? id : shortened(id, a);
}
