#ifndef CLI_SERVE_RETENTION_H
#define CLI_SERVE_RETENTION_H

/* The sections `retention`, `archive` and `reserve` of the file of `intact serve --config`. */

#include "config/reader.h"
#include "server/retention.h"

/* Before the sections are read: what counts without them. */
void serve_retention_init(struct retention *r);

/* For the table of fields; the target is the struct retention. */
void read_retention(struct reader *r, const struct json *j, const struct path *path, void *target);
void read_archive(struct reader *r, const struct json *j, const struct path *path, void *target);
void read_reserve(struct reader *r, const struct json *j, const struct path *path, void *target);

/* After all of them: what one asks of the other. `root` is the whole file. */
void serve_retention_check(struct reader *r, const struct json *root, struct retention *ret);

/* The same with one more rule at the end, that of serve --keep (0: none). */
void serve_retention_keep(struct retention *r, struct arena *a, int64_t keep_ms);

#endif
