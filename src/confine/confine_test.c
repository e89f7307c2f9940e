/* Attempts of a confined process. Each runs in a process of its own, because confinement is
 * permanent. */

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
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/un.h>
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
    if (mkdir(in_folder("shared"), 0700) != 0)
        return -1;
    write_file(in_folder("shared/named"), "a certificate\n");
    write_file(in_folder("shared/key"), "the server's\n");
    return 0;
}

static int remove_folder(void **state)
{
    static const char *const names[] = {"own/secret",   "fresh",  "shared/named", "shared/key",
                                        "shared/other", "shared", "ear",          "other/secret",
                                        "alone",        "own",    "other"};
    (void)state;

    for (size_t i = 0; i < COUNT_OF(names); i++)
        (void)remove(in_folder(names[i])); /* some do not exist */
    return rmdir(folder);
}

/* Zero, or the line number of the failed expectation. */
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

static int request[2]; /* a pipe to the process that replaces a file */

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
    static const char *const keys[] = {"/etc/ssl/private", "/etc/pki/tls/private",
                                       "/etc/ssl/private/ssl-cert-snakeoil.key"};
    static struct caller c;

    EXPECT(can_open("/etc/passwd", O_RDONLY)); /* before, anyone may */
    enter(&c);
    EXPECT(!can_open("/etc/shadow", O_RDONLY) && errno == EACCES);
    EXPECT(!can_open("/etc/passwd", O_RDONLY) && errno == EACCES);
    EXPECT(!can_open(in_folder("other/secret"), O_RDONLY) && errno == EACCES);
    EXPECT(!can_open("/", O_RDONLY | O_DIRECTORY) && errno == EACCES);
    for (size_t i = 0; i < COUNT_OF(keys); i++)
        EXPECT(access(keys[i], F_OK) != 0 || (!can_open(keys[i], O_RDONLY) && errno == EACCES));
    return 0;
}

/* A folder that contains more than the named file, for example a key of the server. */
static int reads_no_neighbours(void)
{
    static struct caller c;

    caller_begin(&c);
    caller_reads(&c, in_folder("shared/named"));
    caller_enter(&c);
    EXPECT(can_open(in_folder("shared/named"), O_RDONLY));
    EXPECT(!can_open(in_folder("shared/key"), O_RDONLY) && errno == EACCES);
    EXPECT(!can_open(in_folder("shared"), O_RDONLY | O_DIRECTORY) && errno == EACCES);
    EXPECT(!caller_is_outdated(&c, 1));
    EXPECT(write(request[1], "r", 1) == 1); /* to the process that replaces it; we cannot */
    for (struct stat st = {0}; st.st_size != 6;)
        EXPECT(stat(in_folder("shared/named"), &st) == 0);
    EXPECT(!caller_is_outdated(&c, 2)); /* it does not check all the time */
    caller_look(&c);
    EXPECT(caller_is_outdated(&c, 3));
    return 0;
}

static int notices_what_variables_name(void)
{
    static struct caller c;
    char list[400];

    (void)snprintf(list, sizeof list, "%s:%s", in_folder("shared"), in_folder("missing"));
    EXPECT(setenv("SSL_CERT_FILE", in_folder("shared/named"), 1) == 0);
    EXPECT(setenv("SSL_CERT_DIR", list, 1) == 0);
    caller_begin(&c);
    EXPECT(!caller_is_outdated(&c, 1));
    EXPECT(rename(in_folder("shared/key"), in_folder("shared/named")) == 0);
    EXPECT(caller_is_outdated(&c, 10000));
    caller_end(&c);
    caller_begin(&c);
    EXPECT(!caller_is_outdated(&c, 1));
    EXPECT(rename(in_folder("shared"), in_folder("missing")) == 0);
    EXPECT(caller_is_outdated(&c, 10000));
    caller_end(&c);
    EXPECT(rename(in_folder("missing"), in_folder("shared")) == 0);
    return 0;
}

/* Refused by number: newer than libseccomp, some newer than this kernel. */
static int changes_no_modes(const char *path)
{
    static const char empty[64];
    const struct timespec now[2] = {{.tv_nsec = UTIME_NOW}, {.tv_nsec = UTIME_NOW}};

    EXPECT(is_refused(chmod(path, 0666), EPERM));
    EXPECT(is_refused(chown(path, 0, 0), EPERM));
    EXPECT(is_refused(syscall(452, AT_FDCWD, path, 0666, 0), EPERM)); /* fchmodat2 */
    EXPECT(is_refused(syscall(463, AT_FDCWD, path, 0, "user.x", empty, 16), EPERM));
    EXPECT(is_refused(syscall(466, AT_FDCWD, path, 0, "user.x"), EPERM));
    EXPECT(is_refused(syscall(467, AT_FDCWD, path, 0, empty, 32), EPERM)); /* open_tree_attr */
    EXPECT(is_refused(syscall(469, AT_FDCWD, path, empty, 24, 0), EPERM)); /* file_setattr */
    EXPECT(is_refused(utimensat(AT_FDCWD, path, now, 0), EPERM));
#ifdef SYS_futimesat
    EXPECT(is_refused(syscall(SYS_futimesat, AT_FDCWD, path, NULL), EPERM));
    EXPECT(is_refused(syscall(SYS_utimes, path, NULL), EPERM));
#endif
    return 0;
}

static int shortens_nothing(const char *path)
{
    EXPECT(!can_open(path, O_RDONLY | O_TRUNC) && errno == EPERM);
    EXPECT(!can_open(path, O_ACCMODE | O_TRUNC) && errno == EPERM);
    EXPECT(is_refused(syscall(SYS_openat2, AT_FDCWD, path, NULL, 24), ENOSYS));
    EXPECT(is_refused(truncate(path, 0), EPERM));
    return 0;
}

static int writes_nothing(void)
{
    static struct caller c;

    enter(&c);
    EXPECT(!can_open(in_folder("own/secret"), O_WRONLY) && errno == EACCES);
    EXPECT(shortens_nothing(in_folder("own/secret")) == 0);
    EXPECT(shortens_nothing(in_folder("alone")) == 0);
    EXPECT(changes_no_modes(in_folder("own/secret")) == 0);
    EXPECT(changes_no_modes(in_folder("alone")) == 0);
    EXPECT(!can_open(in_folder("own/new"), O_WRONLY | O_CREAT) && errno == EACCES);
    EXPECT(!can_open("/tmp/intact-confine-new", O_WRONLY | O_CREAT) && errno == EACCES);
    EXPECT(is_refused(unlink(in_folder("own/secret")), EACCES));
    EXPECT(is_refused(mkdir(in_folder("own/sub"), 0700), EACCES));
    return 0;
}

static int writes_nothing_on_old_kernels(void)
{
    landlock_limit(2);
    return writes_nothing();
}

static int notices_replaced_files(void)
{
    static struct caller c;

    if (chdir(folder) != 0)
        return __LINE__;
    caller_begin(&c);
    caller_reads(&c, "alone"); /* not absolute: its folder is not allowed */
    EXPECT(!caller_is_outdated(&c, 1));
    EXPECT(rename("other/secret", "alone") == 0);
    EXPECT(!caller_is_outdated(&c, 2)); /* it does not check all the time */
    EXPECT(caller_is_outdated(&c, 10000));
    caller_end(&c);
    return 0;
}

static int follows_replaced_files_of_its_folder(void)
{
    static struct caller c;

    enter(&c);
    EXPECT(!caller_is_outdated(&c, 1));
    EXPECT(write(request[1], "r", 1) == 1); /* to the process that replaces it; we cannot */
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

static int signals_nobody(void)
{
    static struct caller c;
    const pid_t parent = getppid();
    const struct rlimit few = {8, 8};
    const struct f_owner_ex owner = {F_OWNER_PID, parent};
    siginfo_t info = {.si_code = -1};
    int own = getpid();
    int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);

    enter(&c);
    for (int number = 0; number <= SIGCONT; number += SIGCONT) {
        EXPECT(is_refused(kill(parent, number), EPERM));
        EXPECT(is_refused(kill(0, number), EPERM)); /* our group */
        EXPECT(is_refused(syscall(SYS_tkill, parent, number), EPERM));
        EXPECT(is_refused(syscall(SYS_tgkill, parent, parent, number), EPERM));
        EXPECT(is_refused(syscall(SYS_rt_sigqueueinfo, parent, number, &info), EPERM));
        EXPECT(is_refused(syscall(SYS_rt_tgsigqueueinfo, parent, parent, number, &info), EPERM));
        EXPECT(is_refused(syscall(SYS_pidfd_send_signal, 0, number, NULL, 0), EPERM));
    }
    EXPECT(is_refused(fcntl(fd, F_SETOWN, parent), EPERM));
    EXPECT(is_refused(fcntl(fd, F_SETOWN_EX, &owner), EPERM));
    EXPECT(is_refused(fcntl(fd, F_SETSIG, SIGSTOP), EPERM));
    EXPECT(is_refused(ioctl(fd, FIOSETOWN, &own), EPERM));
    EXPECT(is_refused(syscall(SYS_prlimit64, parent, RLIMIT_NOFILE, &few, NULL), EPERM));
    EXPECT(is_refused(setpriority(PRIO_PROCESS, (id_t)parent, 19), EPERM));
    EXPECT(is_refused(syscall(SYS_sched_setaffinity, parent, 0, NULL), EPERM));
    EXPECT(is_refused(ioctl(STDERR_FILENO, TIOCSTI, "x"), EPERM));
    return 0;
}

static volatile sig_atomic_t heard;

static void hear(int number)
{
    (void)number;
    heard++;
}

static void *signal_itself(void *arg)
{
    return pthread_kill(pthread_self(), SIGUSR2) == 0 ? arg : NULL;
}

static int signals_itself(void)
{
    static struct caller c;
    struct rlimit files;
    pthread_t thread;
    void *said = NULL;

    EXPECT(signal(SIGUSR2, hear) != SIG_ERR);
    enter(&c);
    EXPECT(raise(SIGUSR2) == 0 && heard == 1);
    EXPECT(kill(getpid(), SIGUSR2) == 0 && heard == 2);
    EXPECT(pthread_create(&thread, NULL, signal_itself, &said) == 0);
    EXPECT(pthread_join(thread, &said) == 0 && said && heard == 3);
    EXPECT(getrlimit(RLIMIT_NOFILE, &files) == 0 && setrlimit(RLIMIT_NOFILE, &files) == 0);
    return 0;
}

/* A listening socket with a name in the file system, like a database's, or with a kernel-assigned
 * one. */
static int open_ear(struct sockaddr_un *at, const char *path)
{
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    socklen_t size = sizeof *at;

    *at = (struct sockaddr_un){.sun_family = AF_UNIX};
    if (path)
        (void)snprintf(at->sun_path, sizeof at->sun_path, "%s", path);
    socklen_t len = path ? sizeof *at : (socklen_t)sizeof at->sun_family;
    EXPECT(bind(fd, (const struct sockaddr *)at, len) == 0 && listen(fd, 4) == 0);
    EXPECT(getsockname(fd, (struct sockaddr *)at, &size) == 0);
    return 0;
}

static int connects_to_nothing_of_this_machine(void)
{
    static struct caller c;
    struct sockaddr_un named;
    struct sockaddr_un nameless;
    int pair[2];
    char byte = 'x';

    EXPECT(open_ear(&named, in_folder("ear")) == 0);
    EXPECT(open_ear(&nameless, NULL) == 0);
    int before = socket(AF_UNIX, SOCK_STREAM, 0); /* inherited */
    enter(&c);
    EXPECT(unlink(in_folder("ear")) == -1);
    EXPECT(is_refused(socket(AF_UNIX, SOCK_STREAM, 0), EPERM));
    EXPECT(is_refused(syscall(SYS_socket, 0x100000000L | AF_UNIX, SOCK_STREAM, 0), EPERM));
    EXPECT(is_refused(socket(AF_VSOCK, SOCK_STREAM, 0), EPERM));
    EXPECT(is_refused(socketpair(AF_UNIX, SOCK_DGRAM, 0, pair), EPERM));
    EXPECT(is_refused(socketpair(AF_UNIX, SOCK_RAW | SOCK_CLOEXEC, 0, pair), EPERM));
    EXPECT(socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0); /* libcurl needs these */
    EXPECT(is_refused(connect(pair[0], (struct sockaddr *)&named, sizeof named), EISCONN));
    EXPECT(write(pair[0], &byte, 1) == 1 && read(pair[1], &byte, 1) == 1);
    if (landlock_version() >= 6)
        EXPECT(connect(before, (struct sockaddr *)&nameless, sizeof nameless.sun_family + 6) == -1);
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

/* Simulates a kernel without both features: no descriptor is left for a ruleset. */
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

/* ---- visibility to other processes ---- */

/* The result of a process of the same user that inspects its parent: 0, or an errno. */
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

    if (geteuid() == 0) /* root may inspect everything, and so could our child */
        EXPECT(setgid(65534) == 0 && setuid(65534) == 0);
    EXPECT(unsetenv("INTACT_DUMPABLE") == 0);
    EXPECT(prctl(PR_SET_DUMPABLE, 1) == 0);
    EXPECT(look_into(getpid()) == 0);
    process_hide();
    EXPECT(look_into(getpid()) == EACCES);
    EXPECT(getrlimit(RLIMIT_CORE, &core) == 0 && core.rlim_max == 0);
    EXPECT(can_open("/proc/self/statm", O_RDONLY)); /* the source of metrics */
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

static void nothing_may_be_written_on_old_kernels(void **state)
{
    (void)state;
    needs_landlock();
    assert_int_equal(line_of(writes_nothing_on_old_kernels), 0);
}

static void nobody_is_signalled(void **state)
{
    (void)state;
    assert_int_equal(line_of(signals_nobody), 0);
}

static void it_may_signal_itself(void **state)
{
    (void)state;
    assert_int_equal(line_of(signals_itself), 0);
}

static void sockets_of_the_machine_are_closed(void **state)
{
    (void)state;
    assert_int_equal(line_of(connects_to_nothing_of_this_machine), 0);
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

/* A process that replaces a file on request. */
static pid_t start_replacer(const char *what)
{
    char byte;

    assert_int_equal(pipe(request), 0);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        bool is_asked = read(request[0], &byte, 1) == 1;
        _exit(is_asked && rename(in_folder("fresh"), what) == 0 ? 0 : 1);
    }
    return child;
}

static void a_replaced_secret_may_be_read(void **state)
{
    (void)state;
    write_file(in_folder("fresh"), "fresh\n");
    pid_t replacer = start_replacer(in_folder("own/secret"));
    assert_int_equal(line_of(follows_replaced_files_of_its_folder), 0);
    assert_int_equal(waitpid(replacer, NULL, 0), replacer);
}

static void a_folder_of_others_is_closed(void **state)
{
    (void)state;
    needs_landlock();
    write_file(in_folder("fresh"), "fresh\n");
    pid_t replacer = start_replacer(in_folder("shared/named"));
    assert_int_equal(line_of(reads_no_neighbours), 0);
    assert_int_equal(waitpid(replacer, NULL, 0), replacer);
}

static void what_variables_name_is_watched(void **state)
{
    (void)state;
    assert_int_equal(line_of(notices_what_variables_name), 0);
}

static void a_replaced_file_by_itself_is_noticed(void **state)
{
    (void)state;
    assert_int_equal(line_of(notices_replaced_files), 0);
}

/* ---- rulesets of commands ---- */

static int writes_where_it_may(void)
{
    int ruleset = landlock_open(false);

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

/* Like a command on a kernel before 6.2: it may truncate what it may write, and nothing else. */
static int shortens_where_it_may(void)
{
    landlock_limit(2);
    int ruleset = landlock_open(false);
    struct stat st;

    EXPECT(landlock_allow(ruleset, in_folder("own"), LANDLOCK_READ | LANDLOCK_WRITE));
    EXPECT(landlock_allow(ruleset, in_folder("other"), LANDLOCK_READ));
    EXPECT(landlock_enter(ruleset) && calls_give_up_truncating());
    EXPECT(can_open(in_folder("own/made"), O_WRONLY | O_CREAT | O_TRUNC));
    EXPECT(can_open(in_folder("own/made"), O_RDWR | O_TRUNC));
    int fd = open(in_folder("own/made"), O_RDWR | O_CLOEXEC);
    EXPECT(ftruncate(fd, 7) == 0 && ftruncate(fd, 0) == 0);
    EXPECT(unlink(in_folder("own/made")) == 0);
    EXPECT(!can_open(in_folder("other/secret"), O_WRONLY | O_TRUNC) && errno == EACCES);
    EXPECT(shortens_nothing(in_folder("other/secret")) == 0);
    EXPECT(shortens_nothing(in_folder("alone")) == 0);
    EXPECT(stat(in_folder("other/secret"), &st) == 0 && st.st_size > 0);
    return 0;
}

static void a_ruleset_allows_what_it_names(void **state)
{
    (void)state;
    needs_landlock();
    assert_int_equal(line_of(writes_where_it_may), 0);
}

static void what_is_not_named_is_not_shortened_on_old_kernels(void **state)
{
    (void)state;
    needs_landlock();
    assert_int_equal(line_of(shortens_where_it_may), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_it_needs_may_be_read),
        cmocka_unit_test(nothing_else_may_be_read),
        cmocka_unit_test(nothing_may_be_written),
        cmocka_unit_test(nothing_may_be_written_on_old_kernels),
        cmocka_unit_test(what_is_not_named_is_not_shortened_on_old_kernels),
        cmocka_unit_test(nobody_is_signalled),
        cmocka_unit_test(it_may_signal_itself),
        cmocka_unit_test(sockets_of_the_machine_are_closed),
        cmocka_unit_test(nothing_may_be_run),
        cmocka_unit_test(the_machine_may_not_be_changed),
        cmocka_unit_test(names_are_looked_up_and_connections_made),
        cmocka_unit_test(without_landlock_it_goes_on),
        cmocka_unit_test(a_ruleset_allows_what_it_names),
        cmocka_unit_test(nobody_else_looks_into_it),
        cmocka_unit_test(a_debugger_may_if_it_is_asked_for),
        cmocka_unit_test(a_replaced_secret_may_be_read),
        cmocka_unit_test(a_folder_of_others_is_closed),
        cmocka_unit_test(what_variables_name_is_watched),
        cmocka_unit_test(a_replaced_file_by_itself_is_noticed), /* removes other/secret */
    };

    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
