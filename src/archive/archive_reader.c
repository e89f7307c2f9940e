/* Reads an archive: lists its files, and returns their lines up to the last complete frame. See
 * archive.h. */
#include "archive/archive.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <zstd.h>

#include "base/when.h"

/* ---- the folder ---- */

static bool ends_with(const char *text, const char *end)
{
    size_t len = strlen(text);
    size_t n = strlen(end);

    return len >= n && strcmp(text + len - n, end) == 0;
}

/* NODE-20260131T100000.000Z[-N].ndjson[.zst] */
static bool name_parse(const char *name, int64_t *ret_at)
{
    CLEANUP(buf_fini) struct buf iso = {0};
    const char *z = strstr(name, "Z.ndjson");

    if (!ends_with(name, ".ndjson") && !ends_with(name, ".ndjson.zst"))
        return false;
    if (!z)
        for (const char *p = name; (p = strstr(p, "Z-")); p++)
            z = p;
    if (!z || z - name < 19 || strlen(name) >= ARCHIVE_NAME_MAX)
        return false;
    const char *s = z - 19; /* 20260131T100000.000Z */
    buf_fmt(&iso, "%.4s-%.2s-%.2sT%.2s:%.2s:%.2s%.4sZ", s, s + 4, s + 6, s + 9, s + 11, s + 13,
            s + 15);
    return time_parse(buf_view(&iso), ret_at);
}

static int by_time(const void *a, const void *b)
{
    const struct archive_file *x = a;
    const struct archive_file *y = b;

    if (x->begun_at != y->begun_at)
        return x->begun_at < y->begun_at ? -1 : 1;
    return strcmp(x->name, y->name);
}

static void add_file(const char *folder, const char *name, struct arena *a,
                     struct archive_file **files, size_t *count)
{
    CLEANUP(buf_fini) struct buf path = {0};
    struct stat st;
    int64_t at = 0;

    buf_fmt(&path, "%s/%s", folder, name);
    if (!name_parse(name, &at) || stat(path.ptr, &st) != 0 || !S_ISREG(st.st_mode))
        return;
    *files = reallocarray(*files, *count + 1, sizeof **files);
    ASSERT(*files);
    (*files)[(*count)++] = (struct archive_file){.name = arena_copy(a, slice_of(name)).ptr,
                                                 .size = (int64_t)st.st_size,
                                                 .begun_at = at};
}

enum err archive_list(const char *folder, struct arena *a, struct archive_file **ret,
                      size_t *ret_count, struct error *e)
{
    struct archive_file *files = NULL;
    size_t count = 0;
    DIR *d = opendir(folder);

    if (!d)
        return error_set(e, errno == ENOENT ? ERR_NOT_FOUND : ERR_IO,
                         "cannot read the archive %s: %s", folder, strerror(errno));
    for (const struct dirent *one = NULL; (one = readdir(d));)
        add_file(folder, one->d_name, a, &files, &count);
    (void)closedir(d);
    if (count > 0)
        qsort(files, count, sizeof *files, by_time);
    *ret = arena_alloc(a, (count + 1) * sizeof **ret);
    if (count > 0)
        memcpy(*ret, files, count * sizeof *files);
    *ret_count = count;
    free(files);
    return ERR_OK;
}

/* ---- a file ---- */

struct archive_reader {
    FILE *file;
    char *path;
    ZSTD_DStream *stream; /* NULL: not compressed */
    char *raw;            /* compressed input */
    size_t raw_size, raw_len, raw_at;
    bool in_frame;   /* the end of a frame is missing */
    struct buf text; /* lines; those before `at` were returned */
    size_t at;
    size_t good; /* end of the data from complete frames */
    bool ended, cut;
};

struct archive_reader *archive_reader_open(const char *folder, const char *name, struct error *e)
{
    struct archive_reader *r = calloc(1, sizeof *r);

    ASSERT(r);
    int len = asprintf(&r->path, "%s/%s", folder, name);
    ASSERT(len > 0);
    r->file = fopen(r->path, "re");
    if (!r->file) {
        (void)error_set(e, errno == ENOENT ? ERR_NOT_FOUND : ERR_IO, "cannot read %s: %s", r->path,
                        strerror(errno));
        archive_reader_close(r);
        return NULL;
    }
    r->raw_size = ZSTD_DStreamInSize();
    r->raw = malloc(r->raw_size);
    r->stream = ends_with(name, ".zst") ? ZSTD_createDStream() : NULL;
    ASSERT(r->raw);
    return r;
}

void archive_reader_close(struct archive_reader *r)
{
    if (!r)
        return;
    if (r->file)
        (void)fclose(r->file); /* it was only read */
    (void)ZSTD_freeDStream(r->stream);
    buf_fini(&r->text);
    free(r->raw);
    free(r->path);
    free(r);
}

/* Drops the lines that were returned. */
static void drop_told(struct archive_reader *r)
{
    if (r->at == 0)
        return;
    memmove(r->text.ptr, r->text.ptr + r->at, r->text.len - r->at);
    r->text.len -= r->at;
    r->good -= r->at;
    r->at = 0;
}

static enum err read_raw(struct archive_reader *r, struct error *e)
{
    r->raw_at = 0;
    r->raw_len = fread(r->raw, 1, r->raw_size, r->file);
    if (ferror(r->file))
        return error_set(e, ERR_IO, "cannot read %s: %s", r->path, strerror(errno));
    r->ended = r->raw_len == 0;
    r->cut = r->ended && r->in_frame;
    return ERR_OK;
}

static enum err decompress(struct archive_reader *r, struct error *e)
{
    static _Thread_local char plain[128 * 1024];
    ZSTD_inBuffer in = {r->raw, r->raw_len, r->raw_at};
    ZSTD_outBuffer out = {plain, sizeof plain, 0};

    size_t left = ZSTD_decompressStream(r->stream, &out, &in);
    if (ZSTD_isError(left))
        return error_set(e, ERR_CORRUPT, "%s is damaged: %s", r->path, ZSTD_getErrorName(left));
    r->raw_at = in.pos;
    buf_slice(&r->text, (struct slice){plain, out.pos});
    r->in_frame = left != 0;
    if (left == 0)
        r->good = r->text.len;
    return ERR_OK;
}

static enum err more(struct archive_reader *r, struct error *e)
{
    drop_told(r);
    if (r->raw_at == r->raw_len) {
        enum err err = read_raw(r, e);
        if (err != ERR_OK || r->ended)
            return err;
    }
    if (r->stream)
        return decompress(r, e);
    buf_slice(&r->text, (struct slice){r->raw, r->raw_len});
    r->raw_at = r->raw_len;
    const char *last = memrchr(r->text.ptr, '\n', r->text.len);
    r->good = last ? (size_t)(last - r->text.ptr) + 1 : 0;
    r->in_frame = r->good < r->text.len;
    return ERR_OK;
}

enum err archive_next(struct archive_reader *r, struct slice *ret, struct error *e)
{
    for (;;) {
        const char *from = buf_view(&r->text).ptr + r->at;
        const char *nl = r->good > r->at ? memchr(from, '\n', r->good - r->at) : NULL;
        if (nl) {
            *ret = (struct slice){from, (size_t)(nl - from)};
            r->at += ret->len + 1;
            return ERR_OK;
        }
        if (r->ended) {
            *ret = SLICE_NONE;
            return ERR_OK;
        }
        enum err err = more(r, e);
        if (err != ERR_OK)
            return err;
    }
}

bool archive_reader_is_cut(const struct archive_reader *r)
{
    return r->cut;
}
