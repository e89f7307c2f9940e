#ifndef WEBHOOK_SECRETS_H
#define WEBHOOK_SECRETS_H

/* The values of all that a configuration keeps elsewhere. They are in memory and in requests, and
 * nowhere else. */

#include "webhook/config.h"
#include "webhook/sign.h"

struct webhook_secret {
    struct sign_keys *keys;
    char **lines; /* of headers, "Name: value"; NULL behind the last one */
};

struct webhook_secrets {
    size_t count;
    struct webhook_secret of[]; /* in the order of the targets */
};

/* Reads all of them. NULL: some cannot be used; a line for each says which, where and why. */
struct webhook_secrets *webhook_secrets_load(const struct webhook_config *c,
                                             struct buf *ret_faults);
void webhook_secrets_free(struct webhook_secrets *s); /* NULL is fine; they are wiped */

#endif
