#include "http_agent/inside.h"

#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

int inside_descriptor(void)
{
    const char *text = getenv(INSIDE_VARIABLE);
    int type = 0;
    socklen_t size = sizeof type;
    int fd = text && text[0] >= '0' && text[0] <= '9' ? atoi(text) : -1;

    (void)unsetenv(INSIDE_VARIABLE); /* it is there, or it is not */
    if (fd < 0 || getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &size) != 0 || type != SOCK_SEQPACKET)
        return -1;
    return fd;
}

static bool hand_over(int channel, int fd)
{
    char byte = 0;
    struct iovec data = {&byte, 1};
    union {
        struct cmsghdr head;
        char space[CMSG_SPACE(sizeof(int))];
    } control = {0};
    struct msghdr m = {.msg_iov = &data,
                       .msg_iovlen = 1,
                       .msg_control = control.space,
                       .msg_controllen = sizeof control.space};
    struct cmsghdr *c = CMSG_FIRSTHDR(&m);

    c->cmsg_level = SOL_SOCKET;
    c->cmsg_type = SCM_RIGHTS;
    c->cmsg_len = CMSG_LEN(sizeof fd);
    memcpy(CMSG_DATA(c), &fd, sizeof fd);
    return sendmsg(channel, &m, MSG_NOSIGNAL | MSG_DONTWAIT) == 1;
}

int inside_connect(int channel)
{
    int pair[2];

    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair) != 0)
        return -1;
    bool ok = hand_over(channel, pair[1]);
    (void)close(pair[1]);
    if (ok)
        return pair[0];
    (void)close(pair[0]);
    return -1;
}
