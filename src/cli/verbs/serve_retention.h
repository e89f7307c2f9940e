#ifndef CLI_VERBS_SERVE_RETENTION_H
#define CLI_VERBS_SERVE_RETENTION_H

/* The sections `retention`, `archive` and `reserve` of the file for `intact serve --config`. */

#include "background/retention.h"
#include "config/config_reader.h"

/* Sets the defaults; before the sections are read. */
void serve_retention_init(struct retention *r);

/* For the table of fields; the target is the struct retention. */
void read_retention(struct reader *r, const struct json *j, const struct path *path, void *target);
void read_archive(struct reader *r, const struct json *j, const struct path *path, void *target);
void read_reserve(struct reader *r, const struct json *j, const struct path *path, void *target);

/* Checks the sections against each other; after all are read. `root` is the whole file. */
void serve_retention_check(struct reader *r, const struct json *root, struct retention *ret);

/* Adds a last rule for serve --keep (0: none). */
void serve_retention_keep(struct retention *r, struct arena *a, int64_t keep_ms);

#endif
