/* Finds and reads the files of `intact test` (test_files.h): test files, the definitions that they
 * name, and changes of both. */

#include "cli/verbs/test_files.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "cli/client/client.h"
#include "cli/client/mistakes.h"
#include "cli/terminal/print.h"
#include "definition/definition.h"

enum { DEPTH_MAX = 40, FILES_MAX = 10000, LOOK_MS = 250, DEFINITION_MAX = 16 << 20 };

/* ---- lists ---- */

void file_list_fini(struct file_list *l)
{
    for (size_t i = 0; i < l->count; i++)
        free(l->list[i].path);
    free(l->list);
    *l = (struct file_list){0};
}

/* Differs whenever the file may have changed. */
static int64_t stamp(const char *path)
{
    struct stat st;

    if (stat(path, &st) != 0)
        return -1;
    return (int64_t)st.st_mtim.tv_sec * 1000000000 + st.st_mtim.tv_nsec + (int64_t)st.st_ino
           + st.st_size;
}

void file_list_add(struct file_list *l, const char *path)
{
    for (size_t i = 0; i < l->count; i++)
        if (strcmp(l->list[i].path, path) == 0)
            return;
    if (l->count == l->cap) {
        l->cap = l->cap ? l->cap * 2 : 16;
        l->list = reallocarray(l->list, l->cap, sizeof *l->list);
        ASSERT(l->list);
    }
    struct test_path added = {strdup(path), stamp(path)};
    ASSERT(added.path);
    l->list[l->count++] = added;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(((const struct test_path *)a)->path, ((const struct test_path *)b)->path);
}

/* ---- finding ---- */

static bool ends_with(const char *name, const char *end)
{
    size_t len = strlen(name);
    size_t tail = strlen(end);

    return len > tail && strcmp(name + len - tail, end) == 0;
}

bool test_file_is(const char *name)
{
    return ends_with(name, ".test.yaml") || ends_with(name, ".test.yml")
           || ends_with(name, ".test.json");
}

/* Paths below "." are written without it. */
static void join(struct buf *b, const char *folder, const char *name)
{
    if (strcmp(folder, ".") != 0) {
        buf_str(b, folder);
        buf_byte(b, '/');
    }
    buf_str(b, name);
}

static bool is_folder(const char *path)
{
    struct stat st;

    return lstat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

static bool find_in(const char *folder, int depth, struct file_list *ret)
{
    DIR *d = opendir(folder);

    if (!d)
        return depth > 0; /* a folder that nobody may read has no tests for us */
    for (const struct dirent *e = NULL; (e = readdir(d)) && ret->count <= FILES_MAX;) {
        CLEANUP(buf_fini) struct buf path = {0};
        if (e->d_name[0] == '.')
            continue;
        join(&path, folder, e->d_name);
        if (test_file_is(e->d_name))
            file_list_add(ret, path.ptr);
        else if (depth < DEPTH_MAX && is_folder(path.ptr))
            (void)find_in(path.ptr, depth + 1, ret);
    }
    (void)closedir(d); /* it was only read */
    return true;
}

bool test_files_find(const char *folder, struct file_list *ret)
{
    if (!find_in(folder, 0, ret)) {
        (void)fprintf(stderr, "intact: %s: %s\n", folder, strerror(errno));
        return false;
    }
    if (ret->count > FILES_MAX) {
        (void)fprintf(stderr,
                      "intact: %s: there are more than %d test files below it; name files\n",
                      folder, FILES_MAX);
        return false;
    }
    if (ret->count > 0)
        qsort(ret->list, ret->count, sizeof *ret->list, by_name);
    return true;
}

/* ---- reading ---- */

static void beside(struct buf *b, const char *path, const char *name)
{
    const char *slash = strrchr(path, '/');

    if (slash && name[0] != '/')
        buf_add(b, path, (size_t)(slash - path) + 1);
    buf_str(b, name);
}

/* What is known of a suite while its files are read. */
struct loading {
    struct mistakes mistakes;
    struct file_list *read;
    struct definition **list;
    size_t count;
};

/* Why it is no definition; NULL: it may be one. A device or a pipe may have no end. */
static const char *unreadable(const char *file)
{
    struct stat st;

    if (stat(file, &st) != 0 || access(file, R_OK) != 0)
        return strerror(errno);
    if (S_ISDIR(st.st_mode))
        return strerror(EISDIR);
    if (!S_ISREG(st.st_mode))
        return "it is not a regular file";
    return st.st_size > DEFINITION_MAX ? "it is too large for a definition" : NULL;
}

static void complain_at(const struct suite *s, const char *path, uint32_t at, const char *name,
                        const char *expected, const char *why)
{
    uint32_t line = 0;
    uint32_t column = 0;

    suite_place(s, at, &line, &column);
    print_row(stderr, "%s:%u:%u: error: found \"%s\", expected %s: %s", path, line, column, name,
              expected, why);
}

static bool can_be_read(const struct suite *s, const char *path, const struct suite_source *source,
                        const char *file)
{
    const char *why = unreadable(file);

    if (why)
        complain_at(s, path, source->at, source->name, "a file that can be read", why);
    return !why;
}

static bool load_definition(struct loading *l, const struct suite *s, const char *path,
                            const struct suite_source *source)
{
    CLEANUP(buf_fini) struct buf file = {0};
    CLEANUP(buf_fini) struct buf text = {0};
    struct definition *d = NULL;

    beside(&file, path, source->name);
    if (l->read)
        file_list_add(l->read, file.ptr);
    if (!can_be_read(s, path, source, file.ptr) || !client_read_file(file.ptr, &text))
        return false;
    if (definition_parse(buf_view(&text), format_of_file(file.ptr), &d, &l->mistakes, NULL)
        != ERR_OK) {
        mistakes_print(file.ptr, "error", &l->mistakes);
        return false;
    }
    l->list[l->count++] = d;
    return true;
}

static bool has_name_twice(const struct loading *l, const struct suite *s, const char *path)
{
    for (size_t i = 0; i < l->count; i++)
        for (size_t k = 0; k < i; k++)
            if (slice_eq(l->list[i]->workflow.name, l->list[k]->workflow.name)) {
                const struct suite_source *again = &s->also[i - 1]; /* the first is `workflow` */
                CLEANUP(buf_fini) struct buf why = {0};
                buf_fmt(&why, "two of its definitions are of workflow %.*s",
                        SLICE_ARG(l->list[i]->workflow.name));
                complain_at(s, path, again->at, again->name, "a workflow of its own", why.ptr);
                return true;
            }
    return false;
}

static bool load_definitions(struct loading *l, const struct suite *s, const char *path)
{
    bool ok = load_definition(l, s, path, &s->workflow);

    for (size_t i = 0; i < s->also_count; i++)
        ok = load_definition(l, s, path, &s->also[i]) && ok;
    return ok && !has_name_twice(l, s, path);
}

static bool bind(struct loading *l, struct suite *s, const char *path)
{
    l->list = calloc(s->also_count + 1, sizeof *l->list);
    ASSERT(l->list);
    bool ok = load_definitions(l, s, path);
    for (size_t i = 0; !ok && i < l->count; i++)
        definition_free(l->list[i]);
    if (ok && suite_bind(s, l->list, l->count, &l->mistakes) != ERR_OK) {
        mistakes_print(path, "error", &l->mistakes);
        ok = false;
    }
    free(l->list);
    return ok;
}

static struct suite *load(struct loading *l, const char *path, struct slice text,
                          enum source_format format)
{
    struct suite *s = NULL;

    if (suite_parse(text, format, path, &s, &l->mistakes) != ERR_OK) {
        mistakes_print(path, "error", &l->mistakes);
        return NULL;
    }
    if (bind(l, s, path))
        return s;
    suite_free(s);
    return NULL;
}

struct suite *test_text_load(const char *path, struct slice text)
{
    struct loading *l = calloc(1, sizeof *l); /* too large for the stack */

    ASSERT(l);
    struct suite *s = load(l, path, text, SOURCE_JSON);
    free(l);
    return s;
}

struct suite *test_file_load(const char *path, struct file_list *read)
{
    struct loading *l = calloc(1, sizeof *l); /* too large for the stack */
    CLEANUP(buf_fini) struct buf text = {.max = SUITE_TEXT_MAX};
    struct suite *s = NULL;

    ASSERT(l);
    l->read = read;
    if (read)
        file_list_add(read, path);
    bool ok = client_read_file(path, &text);
    if (ok && text.overflow) {
        (void)fprintf(stderr, "%s: error: a test file has at most %d bytes\n", path,
                      SUITE_TEXT_MAX);
        ok = false;
    }
    if (ok)
        s = load(l, path, buf_view(&text), (enum source_format)format_of_file(path));
    free(l);
    return s;
}

/* ---- changes ---- */

static bool has_changed(const struct file_list *files)
{
    for (size_t i = 0; i < files->count; i++)
        if (stamp(files->list[i].path) != files->list[i].stamp)
            return true;
    return false;
}

/* Test files that appear in the folder count as well. */
static bool has_more(const char *folder, size_t count)
{
    struct file_list found = {0};

    bool more = test_files_find(folder, &found) && found.count != count;
    file_list_fini(&found);
    return more;
}

bool test_files_wait(const struct file_list *files, const char *folder, size_t count)
{
    const struct timespec pause = {.tv_nsec = LOOK_MS * 1000000L};

    while (!has_changed(files) && !(folder && has_more(folder, count)))
        if (nanosleep(&pause, NULL) != 0)
            return false;
    return true;
}

static mode_t mode_mask(void)
{
    mode_t mask = umask(0);

    (void)umask(mask);
    return mask;
}

/* What is no regular file, such as a pipe, takes the text as it comes. */
static bool write_through(const char *path, struct slice text)
{
    FILE *f = fopen(path, "we");
    bool ok = f && fwrite(text.ptr, 1, text.len, f) == text.len;

    return f && fclose(f) == 0 && ok;
}

/* The new file has the mode of the old one. */
static bool write_beside(const char *path, const struct stat *old, struct slice text)
{
    CLEANUP(buf_fini) struct buf part = {0};

    buf_fmt(&part, "%s.XXXXXX", path);
    int fd = mkostemp(part.ptr, O_CLOEXEC);
    FILE *f = fd >= 0 ? fdopen(fd, "w") : NULL;
    bool ok = f && fwrite(text.ptr, 1, text.len, f) == text.len && fflush(f) == 0;
    ok = ok && fchmod(fd, old ? old->st_mode & 07777 : 0666 & ~mode_mask()) == 0;
    ok = ok && fsync(fd) == 0;
    if (f)
        ok = fclose(f) == 0 && ok;
    else if (fd >= 0)
        (void)close(fd); /* there was no memory */
    ok = ok && rename(part.ptr, path) == 0;
    if (!ok && fd >= 0) {
        int why = errno;
        (void)unlink(part.ptr); /* it is of no use */
        errno = why;
    }
    return ok;
}

bool test_file_write(const char *path, struct slice text)
{
    struct stat old;
    bool is_there = stat(path, &old) == 0;
    char *target = is_there ? realpath(path, NULL) : NULL; /* a link stays a link */
    bool ok = is_there && !S_ISREG(old.st_mode)
                  ? write_through(path, text)
                  : write_beside(target ? target : path, is_there ? &old : NULL, text);

    if (!ok)
        (void)fprintf(stderr, "intact: %s: %s\n", path, strerror(errno));
    free(target);
    return ok;
}
