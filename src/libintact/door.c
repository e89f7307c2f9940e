/* The child's side of a door (door.h): requests a connection and waits for it. If the server
 * answers too late, this call fails, and the answer serves the next one. */

#include "libintact/door.h"

#include <errno.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/clock.h"
#include "libintact/wire.h"

enum { ASK_MS = 3000 };

static bool was_asked; /* and the answer is outstanding */

/* ---- the socket that libcurl connects ---- */

static char decoy[sizeof(struct sockaddr_un)]; /* its name */

/* libcurl 7.88 (Debian 12) calls connect even if it is told that the socket is connected. That
 * fails with EISCONN, unless the address has no room: then libcurl waits until the socket is
 * writable, which it is. So this address never has room. */
bool door_prepare(void)
{
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    socklen_t size = sizeof at;
    int ear = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int filler = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    if (ear < 0 || filler < 0 || bind(ear, (const struct sockaddr *)&at, sizeof at.sun_family) != 0
        || listen(ear, 0) != 0 || getsockname(ear, (struct sockaddr *)&at, &size) != 0
        || connect(filler, (const struct sockaddr *)&at, size) != 0)
        return false; /* the process exits */
    size_t len = size - offsetof(struct sockaddr_un, sun_path) - 1;
    memcpy(decoy, at.sun_path + 1, len);
    decoy[len] = 0;
    return true; /* both stay open while the process runs */
}

/* ---- connections ---- */

/* The descriptor in a packet; -1: none. Sets *ret_came if there was a packet. */
static int take(int door, bool *ret_came)
{
    char byte;
    struct iovec part = {&byte, 1};
    union {
        struct cmsghdr head;
        char bytes[CMSG_SPACE(sizeof(int))];
    } rights;
    struct msghdr m = {.msg_iov = &part,
                       .msg_iovlen = 1,
                       .msg_control = rights.bytes,
                       .msg_controllen = sizeof rights.bytes};
    int fd = -1;

    *ret_came = recvmsg(door, &m, MSG_DONTWAIT | MSG_CMSG_CLOEXEC) == 1;
    const struct cmsghdr *c = *ret_came ? CMSG_FIRSTHDR(&m) : NULL;
    if (c && c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS)
        memcpy(&fd, CMSG_DATA(c), sizeof fd);
    return fd;
}

int door_ask(int door)
{
    struct pollfd p = {.fd = door, .events = POLLIN};
    bool came = false;
    int fd = -1;

    if (!was_asked)
        was_asked = send(door, "c", 1, MSG_NOSIGNAL | MSG_DONTWAIT) == 1;
    for (int64_t until = clock_boot_ms() + ASK_MS; was_asked && !came;) {
        int64_t left = until - clock_boot_ms();
        if (left <= 0 || (poll(&p, 1, (int)left) < 0 && errno != EINTR))
            break;
        if (p.revents & POLLIN)
            fd = take(door, &came);
        else if (p.revents)
            break; /* the server has exited */
    }
    was_asked &= !came;
    return fd;
}

static curl_socket_t open_socket(void *arg, curlsocktype purpose, struct curl_sockaddr *address)
{
    (void)purpose;
    (void)address;
    int fd = door_ask((int)(intptr_t)arg);
    return fd < 0 ? CURL_SOCKET_BAD : fd;
}

static int is_connected(void *arg, curl_socket_t fd, curlsocktype purpose)
{
    (void)arg;
    (void)fd;
    (void)purpose;
    return CURL_SOCKOPT_ALREADY_CONNECTED;
}

bool door_use(CURL *easy, int door)
{
    /* NOLINTNEXTLINE(performance-no-int-to-ptr): it is only read */
    void *arg = (void *)(intptr_t)door;

    return curl_easy_setopt(easy, CURLOPT_ABSTRACT_UNIX_SOCKET, decoy) == CURLE_OK
           && curl_easy_setopt(easy, CURLOPT_OPENSOCKETFUNCTION, open_socket) == CURLE_OK
           && curl_easy_setopt(easy, CURLOPT_OPENSOCKETDATA, arg) == CURLE_OK
           && curl_easy_setopt(easy, CURLOPT_SOCKOPTFUNCTION, is_connected) == CURLE_OK;
}
