/* What a confined process tries, each time in a process of its own, since nobody gets out again. */

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <netdb.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "confine/caller.h"
#include "confine/calls.h"
#include "confine/hidden.h"
#include "confine/landlock.h"

static char folder[] = "/tmp/intact-confine-XXXXXX";

static const char *in_folder(const char *name)
{
    static char path[4][200];
    static unsigned turn;
    char *one = path[turn++ % 4];

    (void)snprintf(one, sizeof path[0], "%s/%s", folder, name);
    return one;
}

static void write_file(const char *path, const char *text)
{
    FILE *f = fopen(path, "w");

    assert_non_null(f);
    assert_true(fputs(text, f) >= 0);
    assert_int_equal(fclose(f), 0);
}

static int make_folder(void **state)
{
    (void)state;
    if (!mkdtemp(folder) || mkdir(in_folder("own"), 0700) != 0
        || mkdir(in_folder("other"), 0700) != 0)
        return -1;
    write_file(in_folder("own/secret"), "mine\n");
    write_file(in_folder("other/secret"), "of somebody else\n");
    write_file(in_folder("alone"), "alone\n");
    return 0;
}

static int remove_folder(void **state)
{
    static const char *const names[] = {"own/secret", "own/fresh", "other/secret",
                                        "alone",      "own",       "other"};
    (void)state;

    for (size_t i = 0; i < COUNT_OF(names); i++)
        (void)remove(in_folder(names[i])); /* some are not there */
    return rmdir(folder);
}

/* Zero, or the number of the line at which the child was disappointed. */
#define EXPECT(cond)         \
    do {                     \
        if (!(cond))         \
            return __LINE__; \
    } while (0)

static int line_of(int (*body)(void))
{
    int pipe_fds[2];
    int line = -1;

    assert_int_equal(pipe(pipe_fds), 0);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        int found = body();
        (void)!write(pipe_fds[1], &found, sizeof found);
        _exit(0);
    }
    (void)close(pipe_fds[1]);
    assert_int_equal(read(pipe_fds[0], &line, sizeof line), sizeof line);
    (void)close(pipe_fds[0]);
    assert_int_equal(waitpid(child, NULL, 0), child);
    return line;
}

static bool can_open(const char *path, int flags)
{
    int fd = open(path, flags | O_CLOEXEC, 0600);

    if (fd >= 0)
        (void)close(fd);
    return fd >= 0;
}

static bool is_refused(long result, int with)
{
    return result == -1 && errno == with;
}

static void enter(struct caller *c)
{
    caller_begin(c);
    caller_reads(c, in_folder("own/secret"));
    caller_reads(c, NULL);
    caller_enter(c);
}

/* ---- files ---- */

static int reads_its_files(void)
{
    static struct caller c;

    enter(&c);
    EXPECT(can_open(in_folder("own/secret"), O_RDONLY));
    EXPECT(can_open("/etc/hosts", O_RDONLY));
    EXPECT(can_open("/etc/ssl/openssl.cnf", O_RDONLY));
    EXPECT(can_open("/dev/urandom", O_RDONLY));
    EXPECT(can_open("/dev/null", O_WRONLY));
    return 0;
}

static int reads_no_others(void)
{
    static struct caller c;

    EXPECT(can_open("/etc/passwd", O_RDONLY)); /* before, everybody may */
    enter(&c);
    EXPECT(!can_open("/etc/shadow", O_RDONLY) && errno == EACCES);
    EXPECT(!can_open("/etc/passwd", O_RDONLY) && errno == EACCES);
    EXPECT(!can_open(in_folder("other/secret"), O_RDONLY) && errno == EACCES);
    EXPECT(!can_open("/", O_RDONLY | O_DIRECTORY) && errno == EACCES);
    return 0;
}

static int writes_nothing(void)
{
    static struct caller c;

    enter(&c);
    EXPECT(!can_open(in_folder("own/secret"), O_WRONLY) && errno == EACCES);
    EXPECT(!can_open(in_folder("own/secret"), O_RDONLY | O_TRUNC) && errno == EACCES);
    EXPECT(!can_open(in_folder("own/new"), O_WRONLY | O_CREAT) && errno == EACCES);
    EXPECT(!can_open("/tmp/intact-confine-new", O_WRONLY | O_CREAT) && errno == EACCES);
    EXPECT(is_refused(unlink(in_folder("own/secret")), EACCES));
    EXPECT(is_refused(mkdir(in_folder("own/sub"), 0700), EACCES));
    EXPECT(is_refused(chmod(in_folder("own/secret"), 0666), EPERM));
    EXPECT(is_refused(chown(in_folder("own/secret"), 0, 0), EPERM));
    return 0;
}

static int notices_replaced_files(void)
{
    static struct caller c;

    if (chdir(folder) != 0)
        return __LINE__;
    caller_begin(&c);
    caller_reads(&c, "alone"); /* not absolute: its folder is not for it */
    EXPECT(!caller_is_outdated(&c, 1));
    EXPECT(rename("other/secret", "alone") == 0);
    EXPECT(!caller_is_outdated(&c, 2)); /* it does not look all the time */
    EXPECT(caller_is_outdated(&c, 10000));
    caller_end(&c);
    return 0;
}

static int follows_replaced_files_of_its_folder(void)
{
    static struct caller c;

    enter(&c);
    EXPECT(!caller_is_outdated(&c, 1));
    EXPECT(kill(getppid(), SIGUSR1) == 0); /* who replaces it; we cannot */
    for (struct stat st = {0}; st.st_size != 6;)
        EXPECT(stat(in_folder("own/secret"), &st) == 0);
    EXPECT(can_open(in_folder("own/secret"), O_RDONLY));
    EXPECT(!caller_is_outdated(&c, 10000));
    return 0;
}

/* ---- calls ---- */

static int runs_nothing(void)
{
    static struct caller c;
    char name[] = "true";
    char *argv[] = {name, NULL};

    enter(&c);
    EXPECT(is_refused(execv("/bin/true", argv), EPERM));
    EXPECT(is_refused(syscall(SYS_execveat, -1, "/bin/true", argv, NULL, 0), EPERM));
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
    EXPECT(is_refused(fork(), EPERM));
    EXPECT(is_refused(ptrace(PTRACE_ATTACH, getppid(), NULL, NULL), EPERM));
#endif
    return 0;
}

static int changes_nothing(void)
{
    static struct caller c;

    enter(&c);
    EXPECT(is_refused(mount("none", "/tmp", "tmpfs", 0, NULL), EPERM));
    EXPECT(is_refused(unshare(CLONE_NEWUSER), EPERM));
    EXPECT(is_refused(syscall(SYS_bpf, 0, NULL, 0), EPERM));
    EXPECT(is_refused(syscall(SYS_keyctl, 0, 0, 0, 0, 0), EPERM));
    EXPECT(is_refused(syscall(SYS_setuid, getuid()), EPERM));
    EXPECT(is_refused(syscall(SYS_init_module, NULL, 0, ""), EPERM));
    EXPECT(is_refused(syscall(SYS_io_uring_setup, 1, NULL), EPERM));
    EXPECT(is_refused(listen(socket(AF_INET, SOCK_STREAM, 0), 1), EPERM));
    return 0;
}

static void *look_up(void *arg)
{
    const struct addrinfo wanted = {.ai_socktype = SOCK_STREAM};
    struct addrinfo *found = NULL;

    *(int *)arg = getaddrinfo("localhost", "80", &wanted, &found);
    if (found)
        freeaddrinfo(found);
    return NULL;
}

static int does_its_work(void)
{
    static struct caller c;
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof at;
    pthread_t thread;
    int outcome = -1;
    int door = socket(AF_INET, SOCK_STREAM, 0);

    EXPECT(bind(door, (struct sockaddr *)&at, size) == 0 && listen(door, 1) == 0
           && getsockname(door, (struct sockaddr *)&at, &size) == 0);
    enter(&c);
    EXPECT(pthread_create(&thread, NULL, look_up, &outcome) == 0);
    EXPECT(pthread_join(thread, NULL) == 0);
    EXPECT(outcome == 0);
    EXPECT(connect(socket(AF_INET, SOCK_STREAM, 0), (struct sockaddr *)&at, size) == 0);
    return 0;
}

/* A kernel that has neither, as far as the process can tell: no descriptor is left for a ruleset.
 */
static int goes_on_without(void)
{
    static struct caller c;
    const struct rlimit none = {0, 0};

    EXPECT(setrlimit(RLIMIT_NOFILE, &none) == 0);
    caller_begin(&c);
    caller_enter(&c);
    EXPECT(c.ruleset == -1);
    EXPECT(!caller_is_outdated(&c, 10000));
    return 0;
}

/* ---- what others may see ---- */

/* What a process of the same user finds when it looks into its parent: 0, or why it may not. */
static int look_into(pid_t other)
{
    char path[64];
    int status = -1;
    pid_t child = fork();

    (void)snprintf(path, sizeof path, "/proc/%ld/environ", (long)other);
    if (child == 0)
        _exit(can_open(path, O_RDONLY) ? 0 : errno);
    return waitpid(child, &status, 0) == child && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static int is_hidden(void)
{
    struct rlimit core;

    if (geteuid() == 0) /* who may look into everything, and so may our child */
        EXPECT(setgid(65534) == 0 && setuid(65534) == 0);
    EXPECT(unsetenv("INTACT_DUMPABLE") == 0);
    EXPECT(prctl(PR_SET_DUMPABLE, 1) == 0);
    EXPECT(look_into(getpid()) == 0);
    process_hide();
    EXPECT(look_into(getpid()) == EACCES);
    EXPECT(getrlimit(RLIMIT_CORE, &core) == 0 && core.rlim_max == 0);
    EXPECT(can_open("/proc/self/statm", O_RDONLY)); /* what metrics are made of */
    EXPECT(can_open("/proc/self/fd", O_RDONLY | O_DIRECTORY));
    return 0;
}

static int stays_as_it_is(void)
{
    EXPECT(setenv("INTACT_DUMPABLE", "1", 1) == 0);
    EXPECT(prctl(PR_SET_DUMPABLE, 1) == 0);
    process_hide();
    EXPECT(prctl(PR_GET_DUMPABLE) == 1);
    return 0;
}

/* ---- the tests ---- */

static void nobody_else_looks_into_it(void **state)
{
    (void)state;
    assert_int_equal(line_of(is_hidden), 0);
}

static void a_debugger_may_if_it_is_asked_for(void **state)
{
    (void)state;
    assert_int_equal(line_of(stays_as_it_is), 0);
}

static void needs_landlock(void)
{
    if (landlock_version() == 0)
        skip();
}

static void what_it_needs_may_be_read(void **state)
{
    (void)state;
    assert_int_equal(line_of(reads_its_files), 0);
}

static void nothing_else_may_be_read(void **state)
{
    (void)state;
    needs_landlock();
    assert_int_equal(line_of(reads_no_others), 0);
}

static void nothing_may_be_written(void **state)
{
    (void)state;
    needs_landlock();
    assert_int_equal(line_of(writes_nothing), 0);
}

static void nothing_may_be_run(void **state)
{
    (void)state;
    assert_int_equal(line_of(runs_nothing), 0);
}

static void the_machine_may_not_be_changed(void **state)
{
    (void)state;
    assert_int_equal(line_of(changes_nothing), 0);
}

static void names_are_looked_up_and_connections_made(void **state)
{
    (void)state;
    assert_int_equal(line_of(does_its_work), 0);
}

static void without_landlock_it_goes_on(void **state)
{
    (void)state;
    assert_int_equal(line_of(goes_on_without), 0);
}

static void replace_secret(int number)
{
    (void)number;
    (void)rename(in_folder("own/fresh"), in_folder("own/secret"));
}

static void a_replaced_secret_may_be_read(void **state)
{
    (void)state;
    write_file(in_folder("own/fresh"), "fresh\n");
    (void)signal(SIGUSR1, replace_secret); /* what it interrupts goes on */
    assert_int_equal(line_of(follows_replaced_files_of_its_folder), 0);
}

static void a_replaced_file_by_itself_is_noticed(void **state)
{
    (void)state;
    assert_int_equal(line_of(notices_replaced_files), 0);
}

/* ---- rulesets of commands ---- */

static int writes_where_it_may(void)
{
    int ruleset = landlock_open();

    EXPECT(landlock_allow(ruleset, in_folder("own"), LANDLOCK_READ | LANDLOCK_WRITE));
    EXPECT(!landlock_allow(ruleset, in_folder("missing"), LANDLOCK_READ) && errno == ENOENT);
    EXPECT(landlock_allow(ruleset, in_folder("other/secret"), LANDLOCK_READ | LANDLOCK_WRITE));
    EXPECT(landlock_enter(ruleset));
    EXPECT(can_open(in_folder("own/made"), O_WRONLY | O_CREAT));
    EXPECT(rename(in_folder("own/made"), in_folder("own/moved")) == 0);
    EXPECT(unlink(in_folder("own/moved")) == 0);
    EXPECT(can_open(in_folder("other/secret"), O_RDWR));
    EXPECT(!can_open(in_folder("other/made"), O_WRONLY | O_CREAT) && errno == EACCES);
    EXPECT(!can_open(in_folder("alone"), O_RDONLY) && errno == EACCES);
    return 0;
}

static void a_ruleset_allows_what_it_names(void **state)
{
    (void)state;
    needs_landlock();
    assert_int_equal(line_of(writes_where_it_may), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_it_needs_may_be_read),
        cmocka_unit_test(nothing_else_may_be_read),
        cmocka_unit_test(nothing_may_be_written),
        cmocka_unit_test(nothing_may_be_run),
        cmocka_unit_test(the_machine_may_not_be_changed),
        cmocka_unit_test(names_are_looked_up_and_connections_made),
        cmocka_unit_test(without_landlock_it_goes_on),
        cmocka_unit_test(a_ruleset_allows_what_it_names),
        cmocka_unit_test(nobody_else_looks_into_it),
        cmocka_unit_test(a_debugger_may_if_it_is_asked_for),
        cmocka_unit_test(a_replaced_secret_may_be_read),
        cmocka_unit_test(a_replaced_file_by_itself_is_noticed), /* takes other/secret away */
    };

    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
