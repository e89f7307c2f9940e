/* Idle agents: COUNT long polls parked at the server, and their cost in this process. "raw": one
 * socket for each and nothing else. "agents": as many agents of libintact, all on one thread.
 * Prints a line when all are parked and ends at the end of standard input. Usage: bench-connections
 * raw|agents COUNT NAMES (the agents share NAMES names). */

#include <arpa/inet.h>
#include <errno.h>
#include <intact/agent.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

enum { CONNECTING_MAX = 64 };

static long resident_kib(void)
{
    long pages = 0;
    FILE *f = fopen("/proc/self/statm", "re");

    if (!f || fscanf(f, "%*d %ld", &pages) != 1)
        exit(1);
    (void)fclose(f);
    return pages * (sysconf(_SC_PAGESIZE) / 1024);
}

static void fail(const char *what)
{
    perror(what);
    exit(1);
}

static void until_input_ends(void)
{
    char c = 0;

    while (read(STDIN_FILENO, &c, 1) > 0)
        ;
}

static void say(int count, long before)
{
    printf("%d parked, resident %.1f MiB, %.1f KiB for each\n", count,
           (double)resident_kib() / 1024, (double)(resident_kib() - before) / count);
    (void)fflush(stdout);
}

/* ---- sockets ---- */

static void raw_one(const struct sockaddr_in *to, const char *token, int n, int names)
{
    char text[512];
    char body[160];
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    if (fd < 0 || connect(fd, (const struct sockaddr *)(const void *)to, sizeof *to) != 0)
        fail("connect");
    int body_len =
        snprintf(body, sizeof body,
                 "{\"instance\":\"raw-%d\",\"max\":1,\"wait\":\"5m\",\"holding\":[]}", n);
    int len = snprintf(text, sizeof text,
                       "POST /v1/agents/idle-%d/work HTTP/1.1\r\nHost: localhost\r\n"
                       "Authorization: Bearer %s\r\nContent-Type: application/json\r\n"
                       "Content-Length: %d\r\n\r\n%s",
                       n % names, token, body_len, body);
    if (write(fd, text, (size_t)len) != len)
        fail("write");
}

static void raw(int count, int names)
{
    const char *url = getenv("INTACT_SERVER");
    const char *port = url ? strrchr(url, ':') : NULL;
    const char *token = getenv("INTACT_TOKEN");
    struct sockaddr_in to = {.sin_family = AF_INET};
    long before = resident_kib();

    if (!port)
        exit(2);
    to.sin_port = htons((uint16_t)strtoul(port + 1, NULL, 10));
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    for (int i = 0; i < count; i++)
        raw_one(&to, token ? token : "", i, names);
    say(count, before);
    until_input_ends();
}

/* ---- libintact ---- */

static void never(struct intact_request *r, void *arg)
{
    (void)arg;
    intact_answer(r, "null");
}

static void silent(void *arg, enum intact_log_level level, const char *line)
{
    (void)arg;
    (void)level;
    (void)line;
}

static struct intact_agent *agent_one(int n, int names)
{
    char name[32];
    char instance[32];

    (void)snprintf(name, sizeof name, "idle-%d", n % names);
    (void)snprintf(instance, sizeof instance, "lib-%d", n);
    struct intact_agent *a = intact_agent_new(name);
    intact_agent_on(a, "do", INTACT_ANY, never, NULL);
    intact_agent_set_instance(a, instance);
    intact_agent_set_concurrency(a, 1);
    intact_agent_set_inline(a, true);
    intact_agent_set_discovery(a, false);
    intact_agent_set_wait_ms(a, 300000);
    intact_agent_set_log(a, silent, NULL);
    return a;
}

static void drive(struct intact_agent *a)
{
    if (!intact_agent_drive(a)) {
        (void)fprintf(stderr, "an agent has ended\n");
        exit(1);
    }
}

/* An agent's descriptor covers all that the agent waits for; its timeouts are checked when the poll
 * ends. */
static void turn(struct pollfd *set, struct intact_agent **agents, int count)
{
    int ready = poll(set, (nfds_t)count, 100);

    for (int i = 0; i < count; i++)
        if (ready > 0 ? set[i].revents != 0 : intact_agent_timeout_ms(agents[i]) == 0)
            drive(agents[i]);
}

static void agents(int count, int names)
{
    struct intact_agent **all = calloc((size_t)count, sizeof *all);
    struct pollfd *set = calloc((size_t)count + 1, sizeof *set);
    long before = resident_kib();

    if (!all || !set)
        fail("calloc");
    for (int i = 0; i < count; i++) {
        all[i] = agent_one(i, names);
        drive(all[i]);
        set[i] = (struct pollfd){.fd = intact_agent_fd(all[i]), .events = POLLIN};
        if (i % CONNECTING_MAX == 0)
            turn(set, all, i + 1);
    }
    for (int quiet = 0; quiet < 20; quiet++)
        turn(set, all, count);
    say(count, before);
    for (;;) {
        struct pollfd in = {.fd = STDIN_FILENO, .events = POLLIN};
        if (poll(&in, 1, 0) > 0)
            return; /* the kernel closes the sockets */
        turn(set, all, count);
    }
}

int main(int argc, char **argv)
{
    int count = argc == 4 ? (int)strtol(argv[2], NULL, 10) : 0;
    int names = argc == 4 ? (int)strtol(argv[3], NULL, 10) : 0;
    struct rlimit files;

    if (count < 1 || names < 1) {
        (void)fprintf(stderr, "usage: bench-connections raw|agents COUNT NAMES\n");
        return 2;
    }
    if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
        files.rlim_cur = files.rlim_max;
        (void)setrlimit(RLIMIT_NOFILE, &files);
    }
    if (strcmp(argv[1], "raw") == 0)
        raw(count, names);
    else
        agents(count, names);
    return 0;
}
