/* Remembers the installations of servers across invocations, in a file of the user with a line
 * "URL ID" for each (remembered.h says why). The file is replaced as a whole, and its loss is
 * harmless. client.c is the caller; libintact/installation.c uses what is remembered. */

#include "cli/client/remembered.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

enum { FILE_MAX = 64 << 10, LINES_MAX = 500 };

static const char heading[] =
    "# The installations of servers that were given to intact in a list. A line may be deleted.\n";

/* ---- the file ---- */

/* False: there is no place for it. */
static bool folder_of(struct buf *ret)
{
    const char *state = getenv("XDG_STATE_HOME");
    const char *home = getenv("HOME");

    if (state && state[0] == '/')
        buf_fmt(ret, "%s/intact", state);
    else if (home && home[0] == '/')
        buf_fmt(ret, "%s/.local/state/intact", home);
    return ret->len > 0;
}

static void read_file(const char *folder, struct buf *ret)
{
    CLEANUP(buf_fini) struct buf path = {0};

    buf_fmt(&path, "%s/installations", folder);
    int fd = open(path.ptr, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return;
    char *room = buf_room(ret, FILE_MAX);
    ssize_t n = room ? read(fd, room, FILE_MAX) : 0;
    ret->len += n > 0 ? (size_t)n : 0;
    (void)close(fd); /* it was only read */
}

/* Creates the folder and its missing parents. */
static void make_folder(char *path)
{
    for (char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = 0;
        (void)mkdir(path, 0700); /* then writing the file fails */
        *slash = '/';
    }
    (void)mkdir(path, 0700);
}

/* Written completely or not at all. Its loss is harmless. */
static void write_file(struct buf *folder, const struct buf *text)
{
    CLEANUP(buf_fini) struct buf path = {0};
    CLEANUP(buf_fini) struct buf part = {0};

    make_folder(folder->ptr);
    buf_fmt(&path, "%s/installations", folder->ptr);
    buf_fmt(&part, "%s.%d", path.ptr, (int)getpid());
    int fd = open(part.ptr, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0)
        return;
    bool ok = write(fd, text->ptr, text->len) == (ssize_t)text->len;
    ok = close(fd) == 0 && ok;
    if (!ok || rename(part.ptr, path.ptr) != 0)
        (void)unlink(part.ptr);
}

/* ---- its lines ---- */

struct line {
    struct slice server;
    char id[UUID_SIZE];
};

/* The next valid line. */
static bool next_line(struct slice *rest, struct line *ret)
{
    while (rest->len > 0) {
        const char *end = memchr(rest->ptr, '\n', rest->len);
        size_t len = end ? (size_t)(end - rest->ptr) : rest->len;
        const char *blank = memchr(rest->ptr, ' ', len);
        size_t server = blank ? (size_t)(blank - rest->ptr) : 0;
        struct slice id = {rest->ptr + server + 1, blank ? len - server - 1 : 0};
        ret->server = (struct slice){rest->ptr, server};
        rest->ptr += len + (end != NULL);
        rest->len -= len + (end != NULL);
        if (server > 0 && ret->server.ptr[0] != '#' && uuid_read(id, ret->id))
            return true;
    }
    return false;
}

static bool is_listed(const struct intact_client *c, struct slice server)
{
    for (size_t i = 0; i < c->server_count; i++)
        if (slice_is(server, c->all[i]))
            return true;
    return false;
}

/* The entry of the first server of the list that has one. */
static void recall(struct intact_client *c, struct slice text)
{
    struct line line;

    for (size_t i = 0; i < c->server_count; i++)
        for (struct slice rest = text; next_line(&rest, &line);)
            if (slice_is(line.server, c->all[i])) {
                installation_remember(&c->installation, line.id, c->all[i]);
                return;
            }
}

/* Adds the line at the top; removes contradicting lines for servers of the list, and the oldest if
 * there are too many. False: it was there. */
static bool add_line(const struct intact_client *c, const char *server, const char *id,
                     struct slice old, struct buf *ret)
{
    struct line line;
    size_t count = 1;
    bool was_there = false;
    bool is_right = true;

    buf_str(ret, heading);
    buf_fmt(ret, "%s %s\n", server, id);
    while (count < LINES_MAX && next_line(&old, &line)) {
        bool is_same = strcmp(line.id, id) == 0;
        if (slice_is(line.server, server)) {
            was_there = is_same;
        } else if (is_same || !is_listed(c, line.server)) {
            buf_fmt(ret, "%.*s %s\n", SLICE_ARG(line.server), line.id);
            count++;
        } else {
            is_right = false;
        }
    }
    return !was_there || !is_right;
}

/* Clients may run in several threads. */
static void keep(const struct intact_client *c, const char *server, const char *id)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    CLEANUP(buf_fini) struct buf folder = {0};
    CLEANUP(buf_fini) struct buf old = {0};
    CLEANUP(buf_fini) struct buf fresh = {0};

    (void)pthread_mutex_lock(&lock);
    if (folder_of(&folder)) {
        read_file(folder.ptr, &old);
        if (add_line(c, server, id, buf_view(&old), &fresh))
            write_file(&folder, &fresh);
    }
    (void)pthread_mutex_unlock(&lock);
}

void remembered_use(struct intact_client *c, const char *stated)
{
    CLEANUP(buf_fini) struct buf folder = {0};
    CLEANUP(buf_fini) struct buf text = {0};

    if (stated && stated[0])
        intact_client_set_installation(c, stated);
    if (c->server_count < 2 || (stated && strcmp(stated, "any") == 0))
        return;
    c->confirmed = keep;
    if ((stated && stated[0]) || !folder_of(&folder))
        return;
    read_file(folder.ptr, &text);
    recall(c, buf_view(&text));
}
