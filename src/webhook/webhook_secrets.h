#ifndef WEBHOOK_WEBHOOK_SECRETS_H
#define WEBHOOK_WEBHOOK_SECRETS_H

/* The values that the configuration keeps elsewhere. They exist only in memory and in requests. */

#include "webhook/sign.h"
#include "webhook/webhook_config.h"

struct webhook_secret {
    struct sign_keys *keys;
    char **lines; /* of headers, "Name: value"; NULL-terminated */
};

struct webhook_secrets {
    size_t count;
    struct webhook_secret of[]; /* in the order of the targets */
};

/* Loads all of them. NULL: some are unusable; one line for each says which, where and why. */
struct webhook_secrets *webhook_secrets_load(const struct webhook_config *c,
                                             struct buf *ret_faults);
void webhook_secrets_free(struct webhook_secrets *s); /* NULL is allowed; they are wiped */

#endif
