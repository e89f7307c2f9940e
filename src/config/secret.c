/* Reads the places of secrets, {file: PATH} or {env: NAME}, from a configuration, loads the
 * values, and wipes their memory (secret.h). The configuration itself never holds a value. Tokens
 * have files of another form: cli/client/token_file.c. */

#include "config/secret.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

void read_plain_text(struct reader *r, const struct json *j, const struct path *path, void *target)
{
    if (j->type != JSON_STRING || j->text.len == 0)
        mistake_in(r, path, j, "a text");
    else
        *(const char **)target = arena_copy(r->arena, j->text).ptr;
}

void read_secret_place(struct reader *r, const struct json *j, const struct path *path,
                       void *target)
{
    static const struct field fields[] = {
        TEXT_FIELD("file", struct secret_place, file, 0),
        TEXT_FIELD("env", struct secret_place, env, 0),
    };
    struct secret_place *s = target;

    if (j->type != JSON_OBJECT) {
        mistake_at(r, path, j->at, "a secret in this file",
                   "{file: PATH} or {env: NAME}, which name its place");
        return;
    }
    size_t before = r->mistakes->count;
    read_object(r, j, path, fields, COUNT_OF(fields), s);
    if (r->mistakes->count == before && !s->file == !s->env)
        mistake_in(r, path, j, "either file or env");
}

void secret_wipe(char *text, size_t len)
{
    if (text)
        explicit_bzero(text, len);
    free(text);
}

static const char *open_file(const char *path, int *ret)
{
    /* opening a pipe would block until there is a writer */
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    struct stat st;
    const char *fault = NULL;

    if (fd < 0 || fstat(fd, &st) != 0)
        fault = strerrordesc_np(errno);
    else if (!S_ISREG(st.st_mode))
        fault = "it is not a regular file, and a secret is read more than once";
    if (fault && fd >= 0)
        (void)close(fd);
    if (!fault)
        *ret = fd;
    return fault;
}

/* NULL, or why it cannot be read. */
static const char *read_file(const char *path, char *to, size_t size, size_t *ret_len)
{
    int fd = -1;
    size_t len = 0;
    ssize_t n = 0;
    const char *refused = open_file(path, &fd);

    if (refused)
        return refused;
    while (len < size && (n = read(fd, to + len, size - len)) > 0)
        len += (size_t)n;
    const char *fault = n < 0 ? strerrordesc_np(errno) : NULL;
    (void)close(fd);
    *ret_len = len;
    return len == size ? "it is longer than 64 KiB" : fault;
}

const char *secret_place_load(const struct secret_place *s, char **ret, size_t *ret_len)
{
    char *room = malloc(SECRET_MAX + 1);
    const char *env = s->env ? getenv(s->env) : NULL;
    const char *fault = NULL;
    size_t len = 0;

    ASSERT(room);
    if (s->file) {
        fault = read_file(s->file, room, SECRET_MAX, &len);
    } else if (!env) {
        fault = "it is not set";
    } else if ((len = strlen(env)) >= SECRET_MAX) {
        fault = "it is longer than 64 KiB";
    } else {
        memcpy(room, env, len);
    }
    if (fault) {
        secret_wipe(room, SECRET_MAX);
        return fault;
    }
    while (len > 0 && strchr("\r\n", room[len - 1]))
        len--; /* editors append a line end */
    room[len] = 0;
    *ret = room;
    *ret_len = len;
    return NULL;
}

void secret_place_fault(const struct secret_place *s, const char *fault, struct buf *b)
{
    buf_fmt(b, "%s %s: %s", s->file ? "file" : "environment variable", s->file ? s->file : s->env,
            fault);
}
