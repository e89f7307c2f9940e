#ifndef BASE_TEST_PORT_H
#define BASE_TEST_PORT_H

/* For tests that stop and restart a server: a port that stays free in between. */

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

/* A port of the loopback address that is free now. It is below the range for outgoing connections,
 * so it is still free when the server restarts. 0: none was found. */
static inline int test_port(void)
{
    FILE *f = fopen("/proc/sys/net/ipv4/ip_local_port_range", "r");
    enum { BLOCK = 64 }; /* for each process: another one may search at the same time */
    static unsigned serial;
    int lowest = 0;

    if (!f || fscanf(f, "%d", &lowest) != 1 || lowest <= 4096)
        lowest = 32768;
    if (f)
        (void)fclose(f);
    for (int tries = 0; tries < 1000; tries++) {
        if (serial == 0 && getrandom(&serial, sizeof serial, 0) != sizeof serial)
            return 0;
        int port = 2048 + getpid() % ((lowest - 2048) / BLOCK) * BLOCK + (int)(serial++ % BLOCK);
        struct sockaddr_in to = {.sin_family = AF_INET,
                                 .sin_port = htons((uint16_t)port),
                                 .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
        int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        bool is_free = fd >= 0 && bind(fd, (const struct sockaddr *)&to, sizeof to) == 0;
        if (fd >= 0)
            (void)close(fd);
        if (is_free)
            return port;
    }
    return 0;
}

#endif
