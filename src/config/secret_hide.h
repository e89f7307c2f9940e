#ifndef CONFIG_SECRET_HIDE_H
#define CONFIG_SECRET_HIDE_H

#include "base/buf.h"

/* Replaces each occurrence of the secret, plain or escaped as in JSON or a URL, by ***. Secrets of
 * fewer than 4 bytes stay. */
void secret_hide(struct buf *text, struct slice secret);

#endif
