/*
 * Records what the tests send and receive, for tests/openapi to compare with docs/openapi.yaml. On
 * if INTACT_RECORD names a folder; each process appends to a file of its own there. A line is
 *
 *     {"test": PROGRAM, "sent": BYTES, "heard": BYTES}
 *
 * for one connection: raw HTTP of both directions, a character for each byte (U+0000 to U+00FF).
 * The reader parses it with a parser that shares no code with the server's.
 */

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "kit.h"

enum {
    FD_MAX = 4096,           /* connections beyond are not recorded */
    RECORD_MAX = 256 * 1024, /* bytes of one direction; longer exchanges are not recorded whole */
};

static struct buf said[FD_MAX]; /* by descriptor: since it was dialled */
static bool dialled[FD_MAX];    /* and not written down yet */
static int file = -1;

static bool is_on(int fd)
{
    const char *dir = getenv("INTACT_RECORD");
    char path[400];

    if (!dir || !*dir || fd < 0 || fd >= FD_MAX)
        return false;
    if (file >= 0)
        return true;
    (void)snprintf(path, sizeof path, "%s/%s-%ld.jsonl", dir, program_invocation_short_name,
                   (long)getpid());
    file = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    CHECK(file >= 0, "INTACT_RECORD: %s: %s", path, strerror(errno));
    return true;
}

void record_dialled(int fd)
{
    if (!is_on(fd))
        return;
    buf_fini(&said[fd]);
    dialled[fd] = true;
}

void record_said(int fd, struct slice bytes)
{
    if (is_on(fd) && said[fd].len <= RECORD_MAX)
        buf_slice(&said[fd], bytes);
}

static void bytes_write(struct buf *b, struct slice bytes)
{
    size_t len = bytes.len < RECORD_MAX ? bytes.len : RECORD_MAX;

    buf_byte(b, '"');
    for (size_t i = 0; i < len; i++) {
        unsigned char c = (unsigned char)bytes.ptr[i];
        if (c < ' ' || c >= 0x7f || c == '"' || c == '\\')
            buf_fmt(b, "\\u%04x", c);
        else
            buf_byte(b, (char)c);
    }
    buf_byte(b, '"');
}

void record_heard(int fd, struct slice bytes)
{
    CLEANUP(buf_fini) struct buf line = {0};

    if (!is_on(fd) || !dialled[fd] || bytes.len == 0)
        return;
    dialled[fd] = false;
    buf_fmt(&line, "{\"test\":\"%s\",\"sent\":", program_invocation_short_name);
    bytes_write(&line, buf_view(&said[fd]));
    buf_str(&line, ",\"heard\":");
    bytes_write(&line, bytes);
    buf_str(&line, "}\n");
    ssize_t written = write(file, line.ptr, line.len);
    CHECK(written == (ssize_t)line.len, "INTACT_RECORD: %s", strerror(errno));
    buf_fini(&said[fd]);
}
