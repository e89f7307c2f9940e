#ifndef CONFIG_SECRET_H
#define CONFIG_SECRET_H

/*
 * A configuration contains no secrets, only their places: {file: PATH} or {env: NAME}. All of them
 * are loaded here, but for tokens, whose files have a form of their own.
 */

#include "config/config_reader.h"

enum { SECRET_MAX = 64 << 10 /* bytes of a file */ };

struct secret_place {
    const char *file, *env; /* exactly one is set; the other is NULL. Neither: there is no secret */
};

/* Reads into a struct secret_place. */
void read_secret_place(struct reader *r, const struct json *j, const struct path *path,
                       void *target);

/* A file name or variable: any non-empty text; reads into a const char *. */
void read_plain_text(struct reader *r, const struct json *j, const struct path *path, void *target);

/* Loads the secret, without trailing line ends. NULL, or why it cannot be read. Free *ret, which
 * ends with a NUL, with secret_wipe. Any thread; the environment must not change meanwhile. Only
 * regular files and links to them: something that can be read only once (a pipe, /dev/stdin, a
 * shell's <(...)) would be empty on the next read. */
const char *secret_place_load(const struct secret_place *s, char **ret, size_t *ret_len);

void secret_wipe(char *text, size_t len); /* NULL is allowed */

/* "file /run/key: it is empty", "environment variable KEY: it is not set"; for messages. */
void secret_place_fault(const struct secret_place *s, const char *fault, struct buf *b);

#endif
