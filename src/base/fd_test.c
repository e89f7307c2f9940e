/* Tests of fd_duplicate() and fd_move() for the thread sanitizer: descriptors that libuv closes and
 * threads reuse must not be reported as races. */
#include "base/test.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/fd.h"

/* The loop's thread: has connections and closes them like libuv does. Values pass between the
 * threads without a happens-before relation, as far as a thread sanitizer knows. */
enum { CONNECTIONS = 8 };

static atomic_int turn;

static void wait_for(int value)
{
    while (atomic_load_explicit(&turn, memory_order_relaxed) != value)
        (void)usleep(100);
}

static void *loop(void *arg)
{
    int pairs[CONNECTIONS][2];
    (void)arg;

    for (int i = 0; i < CONNECTIONS; i++)
        CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pairs[i]) == 0, "a connection");
    for (int i = 0; i < CONNECTIONS; i++)
        CHECK(write(pairs[i][0], "x", 1) == 1 && write(pairs[i][1], "x", 1) == 1, "said");
    for (int i = 0; i < CONNECTIONS; i++) {
        (void)syscall(SYS_close, pairs[i][0]);
        (void)syscall(SYS_close, pairs[i][1]);
    }
    atomic_store_explicit(&turn, 1, memory_order_relaxed);
    wait_for(2);
    return NULL;
}

static bool is_file(int fd)
{
    struct stat st;

    return fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_size == 1;
}

static void a_number_that_was_a_connections_is_no_race(void **state)
{
    char folder[] = "/tmp/intact-fd-XXXXXX";
    pthread_t thread;
    (void)state;

    CHECK(mkdtemp(folder), "%s", folder);
    int known = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    CHECK(known >= 0, "%s", folder);
    CHECK(pthread_create(&thread, NULL, loop, NULL) == 0, "begun");
    wait_for(1);
    int made = openat(known, "f", O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    CHECK(made > known, "a number that a connection had");
    fd_move(made, known);
    CHECK(write(known, "x", 1) == 1 && is_file(known), "the file");
    CHECK(fcntl(known, F_GETFD) == FD_CLOEXEC, "closed by exec");
    int copy = fd_duplicate(known);
    CHECK(copy == made && is_file(copy), "its number is free again");
    CHECK(fcntl(copy, F_GETFD) == FD_CLOEXEC, "closed by exec, too");
    CHECK(close(copy) == 0 && close(known) == 0, "closed");
    atomic_store_explicit(&turn, 2, memory_order_relaxed);
    CHECK(pthread_join(thread, NULL) == 0, "joined");
}

static void what_is_not_open_has_no_duplicate(void **state)
{
    (void)state;
    CHECK(fd_duplicate(-1) == -1, "none");
    int free_one = open("/dev/null", O_RDONLY | O_CLOEXEC);
    CHECK(close(free_one) == 0 && fd_duplicate(free_one + 1) == -1, "nor of another");
    CHECK(fcntl(free_one, F_GETFD) == -1, "nothing is left open");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_number_that_was_a_connections_is_no_race),
        cmocka_unit_test(what_is_not_open_has_no_duplicate),
    };
    return cmocka_run_group_tests_name("fd", tests, NULL, NULL);
}
