#ifndef ARCHIVE_ARCHIVE_H
#define ARCHIVE_ARCHIVE_H

/*
 * The archive of deleted tasks: a folder of files, with the whole record of one task as JSON on
 * each line. Lines with items of its steps, which begin with {"items_of":"ID","part":N, stand
 * before it, in order. A line is durable before its task is deleted. After a crash in between, the
 * same task is written again, so readers go by the id: the last record counts, and before it the
 * items from the latest part 1 on.
 *
 *   n1-20260131T100000.000Z.ndjson.zst   node, and start of the file
 *
 * A file belongs to the process that created it; no other process ever writes to it. Lines written
 * together are one zstd frame, so a file can be read up to its last complete frame after any crash.
 * A new file is begun each day (UTC), when one has grown large, and after a failure that cannot be
 * repaired.
 *
 * A writer is used by one thread at a time; its calls block on the disk. A reader belongs to its
 * caller.
 */

#include <stdint.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"

enum {
    ARCHIVE_SIZE_DEFAULT = 256 << 20,
    ARCHIVE_NAME_MAX = 200, /* of a file */
};

struct archive_config {
    const char *folder; /* NULL: no archive. Created if its parent exists */
    int64_t max_size;   /* approximate bytes of a file; 0: ARCHIVE_SIZE_DEFAULT */
    bool plain;         /* not compressed; names end in .ndjson */
};

struct archive_writer;

/* Opens nothing yet. `node`: for the names of files; the texts are copied. */
struct archive_writer *archive_writer_new(const struct archive_config *c, const char *node);
void archive_writer_free(struct archive_writer *w); /* NULL is allowed */

/* Whether files can be created there. ERR_FULL, ERR_IO with the remedy. */
enum err archive_check(const struct archive_config *c, struct error *e) MUST_USE;

/* Writes whole lines. ERR_OK: they and the name of their file are durable. After a failure none of
 * them is (or they are repeated later), and the next call tries again. */
enum err archive_write(struct archive_writer *w, struct slice lines, int64_t now,
                       struct error *e) MUST_USE;

/* The files of a folder in the order of their start, as far as one clock can tell. */
struct archive_file {
    const char *name;
    int64_t size;     /* bytes on the disk */
    int64_t begun_at; /* ms UTC */
};
enum err archive_list(const char *folder, struct arena *a, struct archive_file **ret,
                      size_t *ret_count, struct error *e) MUST_USE;

struct archive_reader;

/* NULL: *e has the reason. */
struct archive_reader *archive_reader_open(const char *folder, const char *name, struct error *e);
void archive_reader_close(struct archive_reader *r); /* NULL is allowed */

/* The next line without its end, valid until the next call; NONE at the end. Data after the last
 * complete frame was never acknowledged: the file ends there, and archive_reader_is_cut returns
 * true. */
enum err archive_next(struct archive_reader *r, struct slice *ret, struct error *e) MUST_USE;
bool archive_reader_is_cut(const struct archive_reader *r);

#endif
