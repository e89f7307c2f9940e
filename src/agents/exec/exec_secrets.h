#ifndef AGENTS_EXEC_EXEC_SECRETS_H
#define AGENTS_EXEC_EXEC_SECRETS_H

/*
 * The secrets of a command, line by line, and texts without them. However many lines there are, a
 * text is read once.
 */

#include <stdint.h>

#include "base/buf.h"

struct exec_secrets {
    struct slice *lines; /* sorted; they belong to the caller */
    size_t count, room;
    uint64_t *starts; /* a bit for each hash of the first bytes of a line */
};

/* Adds the lines of a text, which must outlive the set. Lines of fewer than 4 bytes are left out:
 * they occur everywhere. */
void exec_secrets_add(struct exec_secrets *s, struct slice text);

/* After the last exec_secrets_add, and before everything that follows. */
void exec_secrets_sort(struct exec_secrets *s);
void exec_secrets_fini(struct exec_secrets *s);

/* The text with *** for each line in it. Lines that overlap are one. *ret is empty at first. */
void exec_secrets_hide(const struct exec_secrets *s, struct slice text, struct buf *ret);

/* Whether the text is one of the lines. */
bool exec_secrets_have(const struct exec_secrets *s, struct slice text);

/* Covers the rest of a line that begins in front of the text. */
void exec_secrets_cover_begun(const struct exec_secrets *s, struct buf *text);

#endif
