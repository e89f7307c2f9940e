#ifndef ARCHIVE_ARCHIVE_H
#define ARCHIVE_ARCHIVE_H

/*
 * What is kept of deleted tasks: a folder of files, in which each line is the whole record of one
 * task as JSON. A line is on the disk before its task is deleted; after a crash in between, the
 * same task is written down once more, so who reads goes by the id, and the last line counts.
 *
 *     n1-20260131T100000.000Z.ndjson.zst       node, and when the file was begun
 *
 * A file belongs to the process that made it: no other one ever writes into it. Lines that came
 * together are one frame of zstd, so a file can be read up to its last whole frame whatever befell
 * its writer. A new file is begun each day (UTC), when one has grown large, and after a failure
 * that cannot be made good.
 *
 * A writer is used by one thread at a time; its calls wait for the disk. A reader is its caller's.
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
    const char *folder; /* NULL: nothing is kept. Made if its parent is there */
    int64_t max_size;   /* of a file in bytes, about; 0: ARCHIVE_SIZE_DEFAULT */
    bool plain;         /* not compressed; names then end in .ndjson */
};

struct archive_writer;

/* Nothing is opened yet. `node`: for the names of files; the texts are copied. */
struct archive_writer *archive_writer_new(const struct archive_config *c, const char *node);
void archive_writer_free(struct archive_writer *w); /* NULL is fine */

/* Can files be made there? ERR_FULL, ERR_IO with what to do about it. */
enum err archive_check(const struct archive_config *c, struct error *e) MUST_USE;

/* Writes whole lines. ERR_OK: they, and the name of their file, are on the disk. After a failure
 * nothing of them is (or they stand there once more later), and the next call tries again. */
enum err archive_write(struct archive_writer *w, struct slice lines, int64_t now,
                       struct error *e) MUST_USE;

/* Files of a folder in the order in which they were begun, as far as one clock tells. */
struct archive_file {
    const char *name;
    int64_t size;     /* bytes on the disk */
    int64_t begun_at; /* ms UTC */
};
enum err archive_list(const char *folder, struct arena *a, struct archive_file **ret,
                      size_t *ret_count, struct error *e) MUST_USE;

struct archive_reader;

/* NULL: *e tells why not. */
struct archive_reader *archive_reader_open(const char *folder, const char *name, struct error *e);
void archive_reader_close(struct archive_reader *r); /* NULL is fine */

/* The next line without its end, valid until the next call; NONE at the end. What stands behind the
 * last whole frame was never acknowledged: it ends the file, and archive_reader_is_cut says so. */
enum err archive_next(struct archive_reader *r, struct slice *ret, struct error *e) MUST_USE;
bool archive_reader_is_cut(const struct archive_reader *r);

#endif
