/* Seccomp filters. They are deny lists, not allow lists, because libraries use new system calls
 * with every version and must not fail in the field. They cover what Landlock does not: modes and
 * owners of files, signals, Unix sockets, and truncation on kernels before 6.2. */

#include "confine/calls.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <seccomp.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

/* The sanitizers' leak detection creates a process, which inspects this one by ptrace. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    #define IS_SANITIZED true
#elif defined(__has_feature)
    #if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
        #define IS_SANITIZED true
    #endif
#endif
#ifndef IS_SANITIZED
    #define IS_SANITIZED false
#endif

#define LOW_BITS 0xffffffffULL /* the kernel uses only these if the argument is an int */

static const char *const refused[] = {
    /* programs, and other processes */
    "execve", "execveat", "fork", "vfork", "process_vm_readv", "process_vm_writev", "pidfd_open",
    "pidfd_getfd", "process_madvise", "process_mrelease", "kcmp", "setns", "unshare", "personality",
    "setpriority", "ioprio_set",
    /* signals to other processes by other calls than kill */
    "tkill", "pidfd_send_signal",
    /* the file system as a whole */
    "mount", "umount", "umount2", "pivot_root", "chroot", "open_tree", "move_mount", "fsopen",
    "fsconfig", "fsmount", "fspick", "mount_setattr", "open_by_handle_at", "name_to_handle_at",
    "quotactl", "quotactl_fd", "swapon", "swapoff", "mknod", "mknodat", "fanotify_init",
    /* modes, owners and times, which Landlock does not cover */
    "chmod", "fchmod", "fchmodat", "chown", "fchown", "lchown", "fchownat", "setxattr", "lsetxattr",
    "fsetxattr", "removexattr", "lremovexattr", "fremovexattr", "utime", "utimes", "futimesat",
    "utimensat", "utimensat_time64",
    /* file lengths, which Landlock covers since version 3 */
    "truncate", "truncate64", "creat",
#ifndef CONFINE_COUNTS /* coverage counters truncate their files */
    "ftruncate", "ftruncate64",
#endif
    /* memory, messages and locks shared by the processes of a user */
    "shmget", "shmat", "shmctl", "semget", "semop", "semtimedop", "semctl", "msgget", "msgsnd",
    "msgrcv", "msgctl", "mq_open", "mq_unlink",
    /* identity */
    "setuid", "setgid", "setreuid", "setregid", "setresuid", "setresgid", "setfsuid", "setfsgid",
    "setgroups", "capset",
    /* the kernel and the machine */
    "bpf", "perf_event_open", "userfaultfd", "io_uring_setup", "io_uring_enter",
    "io_uring_register", "keyctl", "add_key", "request_key", "kexec_load", "kexec_file_load",
    "init_module", "finit_module", "create_module", "delete_module", "reboot", "syslog", "acct",
    "iopl", "ioperm", "vhangup", "sethostname", "setdomainname", "settimeofday", "clock_settime",
    "clock_adjtime", "adjtimex", "stime", "lookup_dcookie", "uselib", "vm86", "vm86old",
    "modify_ldt", "nfsservctl", "sysfs", "_sysctl", "mbind", "set_mempolicy", "migrate_pages",
    "move_pages",
    /* accepting connections */
    "listen", "accept", "accept4"};

/* Newer than many versions of libseccomp, which lack their names. Since Linux 5.1 new calls have
 * the same number on all machines. */
#ifdef __alpha__ /* except this one */
    #define SINCE_5_1(number) ((number) + 110)
#else
    #define SINCE_5_1(number) (number)
#endif
static const int refused_numbers[] = {
    SINCE_5_1(452), /* fchmodat2 */
    SINCE_5_1(463), /* setxattrat */
    SINCE_5_1(466), /* removexattrat */
    SINCE_5_1(467), /* open_tree_attr */
    SINCE_5_1(469), /* file_setattr */
};

/* Calls refused if an argument has this value under a mask. */
static const struct {
    const char *name;
    unsigned arg;
    uint64_t mask, value;
} refused_values[] = {
    {"open", 1, O_TRUNC, O_TRUNC},
    {"openat", 2, O_TRUNC, O_TRUNC},
    /* sockets that can later connect and send anywhere */
    {"socketpair", 1, 0xf, SOCK_DGRAM},
    {"socketpair", 1, 0xf, SOCK_RAW},
    /* descriptors that send signals to any process */
    {"fcntl", 1, LOW_BITS, F_SETOWN},
    {"fcntl", 1, LOW_BITS, F_SETOWN_EX},
    {"fcntl", 1, LOW_BITS, F_SETSIG},
    {"ioctl", 1, LOW_BITS, FIOSETOWN},
    {"ioctl", 1, LOW_BITS, SIOCSPGRP},
    /* input to the terminal of whoever started the server */
    {"ioctl", 1, LOW_BITS, TIOCSTI},
    {"ioctl", 1, LOW_BITS, TIOCLINUX},
};

/* Calls that take a process: only our own is allowed. */
static const char *const own_pid[] = {"kill", "tgkill", "rt_sigqueueinfo", "rt_tgsigqueueinfo"};
static const char *const zero_pid[] = {"prlimit64", "sched_setscheduler", "sched_setparam",
                                       "sched_setattr", "sched_setaffinity"};

enum { FAMILIES_MAX = 64 }; /* the kernel has fewer */

static int refuse_number(scmp_filter_ctx filter, int number)
{
    return seccomp_rule_add(filter, SCMP_ACT_ERRNO(EPERM), number, 0);
}

static int refuse(scmp_filter_ctx filter, const char *name)
{
    int number = seccomp_syscall_resolve_name(name);

    if (number == __NR_SCMP_ERROR)
        return 0; /* covered by the list of numbers, or not on this machine */
    return refuse_number(filter, number);
}

static int refuse_if(scmp_filter_ctx filter, const char *name, struct scmp_arg_cmp is)
{
    int number = seccomp_syscall_resolve_name(name);

    if (number == __NR_SCMP_ERROR)
        return 0;
    return seccomp_rule_add_array(filter, SCMP_ACT_ERRNO(EPERM), number, 1, &is);
}

/* Threads are created by clone, or by clone3, whose flags a filter cannot see. With ENOSYS, as from
 * an older kernel, the C library uses clone. */
static int refuse_processes(scmp_filter_ctx filter)
{
    int err = seccomp_rule_add(filter, SCMP_ACT_ERRNO(ENOSYS), SCMP_SYS(clone3), 0);

#ifndef __s390__ /* its arguments have another order */
    if (err == 0 && !IS_SANITIZED)
        err = seccomp_rule_add(filter, SCMP_ACT_ERRNO(EPERM), SCMP_SYS(clone), 1,
                               SCMP_A0(SCMP_CMP_MASKED_EQ, CLONE_THREAD, 0));
#endif
    if (err == 0 && !IS_SANITIZED)
        err = refuse(filter, "ptrace");
    return err;
}

static int refuse_others(scmp_filter_ctx filter)
{
    int err = 0;

    for (size_t i = 0; err == 0 && i < COUNT_OF(own_pid); i++)
        err = refuse_if(filter, own_pid[i], SCMP_A0(SCMP_CMP_NE, (scmp_datum_t)getpid(), 0));
    for (size_t i = 0; err == 0 && i < COUNT_OF(zero_pid); i++)
        err = refuse_if(filter, zero_pid[i], SCMP_A0(SCMP_CMP_NE, 0, 0));
    return err;
}

/* All except TCP, UDP, and netlink, which the C library uses to find local addresses. */
static int refuse_families(scmp_filter_ctx filter)
{
    int err = 0;

    for (int i = 0; err == 0 && i < FAMILIES_MAX; i++)
        if (i != AF_INET && i != AF_INET6 && i != AF_NETLINK)
            err =
                refuse_if(filter, "socket", SCMP_A0(SCMP_CMP_MASKED_EQ, LOW_BITS, (scmp_datum_t)i));
    return err;
}

static int refuse_values(scmp_filter_ctx filter)
{
    int err = 0;

    for (size_t i = 0; err == 0 && i < COUNT_OF(refused_values); i++)
        err = refuse_if(filter, refused_values[i].name,
                        SCMP_CMP(refused_values[i].arg, SCMP_CMP_MASKED_EQ, refused_values[i].mask,
                                 refused_values[i].value));
    return err;
}

static bool finish(scmp_filter_ctx filter, int err)
{
    if (err == 0)
        err = seccomp_load(filter); /* also sets no-new-privs */
    seccomp_release(filter);
    errno = -err;
    return err == 0;
}

/* A filter cannot see its flags: with ENOSYS, callers use openat. */
static int refuse_openat2(scmp_filter_ctx filter)
{
    return seccomp_rule_add(filter, SCMP_ACT_ERRNO(ENOSYS), SCMP_SYS(openat2), 0);
}

bool calls_give_up(void)
{
    scmp_filter_ctx filter = seccomp_init(SCMP_ACT_ALLOW);
    int err = filter ? refuse_processes(filter) : -ENOMEM;

    for (size_t i = 0; err == 0 && i < COUNT_OF(refused); i++)
        err = refuse(filter, refused[i]);
    for (size_t i = 0; err == 0 && i < COUNT_OF(refused_numbers); i++)
        err = refuse_number(filter, refused_numbers[i]);
    err = err == 0 ? refuse_others(filter) : err;
    err = err == 0 ? refuse_families(filter) : err;
    err = err == 0 ? refuse_values(filter) : err;
    err = err == 0 ? refuse_openat2(filter) : err;
    return finish(filter, err);
}

/* ---- truncation without Landlock ---- */

/* Programs for other machine types run here, too. Calls of unlisted ones fail as nonexistent. */
static int add_other_machines(scmp_filter_ctx filter)
{
    static const uint32_t others[] = {
#if defined(__x86_64__)
        SCMP_ARCH_X86,
        SCMP_ARCH_X32,
#elif defined(__aarch64__)
        SCMP_ARCH_ARM,
#endif
        SCMP_ARCH_NATIVE /* present already */
    };
    int err = seccomp_attr_set(filter, SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_ERRNO(ENOSYS));

    for (size_t i = 0; err == 0 && i < COUNT_OF(others); i++) {
        err = seccomp_arch_add(filter, others[i]);
        err = err == -EEXIST ? 0 : err;
    }
    return err;
}

bool calls_give_up_truncating(void)
{
    static const struct {
        const char *name;
        unsigned arg;
    } opening[] = {{"open", 1}, {"openat", 2}};
    static const int modes[] = {O_RDONLY, O_ACCMODE}; /* without write access */
    scmp_filter_ctx filter = seccomp_init(SCMP_ACT_ALLOW);
    int err = filter ? add_other_machines(filter) : -ENOMEM;

    for (size_t i = 0; err == 0 && i < COUNT_OF(opening); i++)
        for (size_t k = 0; err == 0 && k < COUNT_OF(modes); k++)
            err = refuse_if(filter, opening[i].name,
                            SCMP_CMP(opening[i].arg, SCMP_CMP_MASKED_EQ, O_ACCMODE | O_TRUNC,
                                     (scmp_datum_t)(modes[k] | O_TRUNC)));
    err = err == 0 ? refuse(filter, "truncate") : err;
    err = err == 0 ? refuse(filter, "truncate64") : err;
    err = err == 0 ? refuse_openat2(filter) : err;
    return finish(filter, err);
}
