/* Finds the two sockets that a server passes to its child agent (inside.h), and checks that they
 * are ours: sockets of the right kind, named by the environment. Called by http_agent.c and
 * agents/amqp/amqp_agent.c at their start. */

#include "agents/http/inside.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "libintact/door.h"

static bool is_ours(int fd)
{
    int type = 0;
    socklen_t size = sizeof type;

    return fd > STDERR_FILENO && getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &size) == 0
           && type == SOCK_SEQPACKET && fcntl(fd, F_SETFD, FD_CLOEXEC) == 0;
}

struct inside inside_find(const char *variable)
{
    const char *text = getenv(variable);
    struct inside in = {.channel = -1, .door = -1};
    int channel = -1;
    int door = -1;
    char end;

    /* NOLINTNEXTLINE(cert-err34-c): both numbers are checked below */
    if (text && sscanf(text, "%d:%d%c", &channel, &door, &end) == 2 && channel != door
        && is_ours(channel) && is_ours(door) && door_prepare())
        in = (struct inside){.channel = channel, .door = door};
    (void)unsetenv(variable); /* cannot fail with this name */
    return in;
}
