/* Tests of the notifications to a service manager, sd_notify(3): ready, the watchdog, and the
 * end. The manager is a socket of the test; node/notify.c is what it tests. */

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "kit.h"

struct manager {
    int fd;
    struct sockaddr_un at;
};

static void manager_open(struct manager *m, const char *home)
{
    m->at = (struct sockaddr_un){.sun_family = AF_UNIX};
    (void)snprintf(m->at.sun_path, sizeof m->at.sun_path, "%s/notify", home);
    m->fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    CHECK(bind(m->fd, (const struct sockaddr *)&m->at, sizeof m->at) == 0, "%s", strerror(errno));
    CHECK(setenv("NOTIFY_SOCKET", m->at.sun_path, 1) == 0, "%s", strerror(errno));
}

static void manager_hears(const struct manager *m, const char *expected)
{
    char text[200] = "";
    struct pollfd p = {.fd = m->fd, .events = POLLIN};

    CHECK(poll(&p, 1, PATIENCE_MS) == 1, "nothing comes, expected %s", expected);
    ssize_t len = recv(m->fd, text, sizeof text - 1, 0);
    CHECK(len > 0 && strcmp(text, expected) == 0, "\"%s\" comes, expected %s", text, expected);
}

static void readiness_and_the_end_are_told(void **state)
{
    struct node node;
    struct manager m;
    (void)state;

    node_init(&node);
    manager_open(&m, node.home);
    node_start(&node, FLAGS(NULL));
    manager_hears(&m, "READY=1");
    node_signal(&node, SIGTERM);
    manager_hears(&m, "STOPPING=1");
    CHECK(node_wait(&node, PATIENCE_MS) == 0, "it ends otherwise");
    (void)unsetenv("NOTIFY_SOCKET");
    (void)close(m.fd);
    node_fini(&node);
}

static void a_watchdog_is_fed(void **state)
{
    struct node node;
    struct manager m;
    (void)state;

    node_init(&node);
    manager_open(&m, node.home);
    CHECK(setenv("WATCHDOG_USEC", "100000", 1) == 0, "%s", strerror(errno));
    node_start(&node, FLAGS(NULL));
    manager_hears(&m, "READY=1");
    for (int i = 0; i < 3; i++)
        manager_hears(&m, "WATCHDOG=1");
    (void)unsetenv("WATCHDOG_USEC");
    (void)unsetenv("NOTIFY_SOCKET");
    (void)close(m.fd);
    node_fini(&node);
}

/* None of it keeps a server from running: it is not what it is for. */
static void a_manager_that_is_not_there_does_no_harm(void **state)
{
    static const char *const names[] = {"/nowhere/at/all", "@intact-nobody-listens", "relative",
                                        "/", ""};
    (void)state;

    for (size_t i = 0; i < COUNT_OF(names); i++) {
        struct node node;
        node_init(&node);
        CHECK(setenv("NOTIFY_SOCKET", names[i], 1) == 0, "%s", strerror(errno));
        CHECK(setenv("WATCHDOG_USEC", "many", 1) == 0, "%s", strerror(errno));
        node_start(&node, FLAGS(NULL));
        (void)unsetenv("NOTIFY_SOCKET");
        (void)unsetenv("WATCHDOG_USEC");
        node_stop(&node);
        node_fini(&node);
    }
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(readiness_and_the_end_are_told),
        cmocka_unit_test(a_watchdog_is_fed),
        cmocka_unit_test(a_manager_that_is_not_there_does_no_harm),
    };

    kit_program(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
