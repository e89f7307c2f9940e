/* Tokens from files: the file that the user names, or the admin token of a server on this
 * machine, which is used only if that server proves that it knows the token (token_file.h,
 * net/proof.h). client.c is the main caller. */

#include "cli/client/token_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/terminal/print.h"
#include "libintact/wire.h"
#include "net/proof.h"

enum { TOKEN_SIZE = 50 };

/* Reads at most `size` - 1 bytes; -1: see errno. */
static ssize_t read_line(int fd, char *ret, size_t size)
{
    ssize_t n = read(fd, ret, size - 1);

    ret[n > 0 ? n : 0] = 0;
    ret[strcspn(ret, "\r\n")] = 0;
    return n;
}

bool token_file_read(const char *path, char *ret, size_t size)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd >= 0 ? read_line(fd, ret, size) : -1;

    if (n < 0)
        fprintf(stderr, "intact: %s: %s\n", path, strerror(errno));
    else if (!ret[0])
        fprintf(stderr, "intact: %s: found nothing, expected a token\n", path);
    if (fd >= 0)
        (void)close(fd); /* it was only read */
    return n >= 0 && ret[0];
}

static bool has_form_of_token(const char *text)
{
    return strlen(text) == TOKEN_SIZE && strncmp(text, "intact_", 7) == 0
           && !text[strspn(text,
                           "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_")];
}

/* Does `uid` own all sockets that listen on `port`, on any address? Sets *ret_seen if there is
 * one. */
static bool listeners_are(const char *table, int port, uid_t uid, bool *ret_seen)
{
    FILE *f = fopen(table, "re");
    char line[512];
    bool all = true;

    while (f && fgets(line, sizeof line, f)) {
        unsigned local = 0;
        unsigned state = 0;
        unsigned owner = 0;
        /* NOLINTNEXTLINE(cert-err34-c): the kernel wrote it */
        if (sscanf(line, "%*d: %*[0-9A-Fa-f]:%x %*s %x %*s %*s %*s %u", &local, &state, &owner) != 3
            || state != 0x0a /* LISTEN */ || local != (unsigned)port)
            continue;
        *ret_seen = true;
        all &= owner == uid;
    }
    if (f)
        (void)fclose(f);
    return all;
}

static bool server_is_of(uid_t uid, int port)
{
    bool seen = false;
    bool v4 = listeners_are("/proc/net/tcp", port, uid, &seen);
    bool v6 = listeners_are("/proc/net/tcp6", port, uid, &seen);

    return seen && v4 && v6;
}

/* Does the server know this token, and is `port` its own? The user of the file may have forwarded
 * another machine's port to this one, or somebody else may have forwarded the server's. */
static bool server_knows(const struct intact_client *c, const char *challenge, int port,
                         const char *token)
{
    const char *said = intact_client_header(c, PROOF_HEADER);
    unsigned char key[PROOF_KEY_SIZE];
    char proof[PROOF_SIZE + 1];

    if (!said || !challenge)
        return false;
    proof_key(slice_of(token), key);
    proof_make(key, slice_of(challenge), port, proof);
    return strcmp(said, proof) == 0;
}

/* NULL: it may be used; `ret` has its token. */
static const char *why_not(int fd, int port, char *ret, size_t size)
{
    struct stat st;

    if (fstat(fd, &st) != 0)
        return strerror(errno);
    if (!S_ISREG(st.st_mode))
        return "it is no plain file";
    if (st.st_mode & (S_IRWXG | S_IRWXO))
        return "others than its owner have rights on it";
    if (!server_is_of(st.st_uid, port))
        return "its owner is not the one who runs the server";
    if (read_line(fd, ret, size) != TOKEN_SIZE + 1 || !has_form_of_token(ret))
        return "it does not hold a token";
    return NULL;
}

char *token_find(void *arg, const struct intact_client *c)
{
    const char *path = intact_client_header(c, "Intact-Token-File");
    const char *name = path ? strrchr(path, '/') : NULL;
    const char *why = NULL;
    char token[TOKEN_SIZE + 3] = "";
    const char *challenge = arg;
    int port = 0;

    if (!path || !wire_is_loopback(intact_client_server(c), &port))
        return NULL;
    int fd = -1;
    if (path[0] != '/' || strcmp(name, "/admin-token") != 0)
        why = "it is no admin-token";
    else
        fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (!why)
        why = fd < 0 ? strerror(errno) : why_not(fd, port, token, sizeof token);
    if (fd >= 0)
        (void)close(fd); /* it was only read */
    if (!why && !server_knows(c, challenge, port, token))
        why = "the server that answers does not show that it knows this token: it is another one, "
              "perhaps of another machine or behind another port that is forwarded here, or of an "
              "older version; "
              "give a token by INTACT_TOKEN or --token-file";
    if (!why)
        return strdup(token);
    print_row(stderr, "intact: the server's %s is not used: %s", path, why);
    return NULL;
}
