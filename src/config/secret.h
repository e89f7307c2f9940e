#ifndef CONFIG_SECRET_H
#define CONFIG_SECRET_H

/*
 * A secret does not stand in a configuration, only where it is kept: {file: PATH} or {env: NAME}.
 */

#include "config/reader.h"

enum { SECRET_MAX = 64 << 10 /* bytes of a file */ };

struct secret_place {
    const char *file, *env; /* one of them; the other is NULL */
};

/* Into a struct secret_place. */
void read_secret_place(struct reader *r, const struct json *j, const struct path *path,
                       void *target);

/* Of a file, a variable: any text but an empty one; into a const char *. */
void read_plain_text(struct reader *r, const struct json *j, const struct path *path, void *target);

/* Reads the secret, without the ends of its lines. NULL, or why it cannot be read. *ret is for
 * secret_wipe. Any thread; the environment must not change meanwhile. */
const char *secret_place_load(const struct secret_place *s, char **ret, size_t *ret_len);

/* Opens a file that holds a secret. Regular files and links to them only: what can be read but once
 * (a pipe, /dev/stdin, a shell's <(...)) would be empty when it is read again. NULL, or why not. */
const char *secret_file_open(const char *path, int *ret) MUST_USE;

void secret_wipe(char *text, size_t len); /* NULL is fine */

/* "file /run/key", "environment variable KEY"; for messages. */
void secret_place_tell(const struct secret_place *s, struct buf *b);

#endif
