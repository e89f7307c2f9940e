/* A list of what is refused, and not of what is allowed: libraries call something new with each of
 * their versions, and must not fail in the field for it. */

#include "confine/calls.h"

#include <errno.h>
#include <sched.h>
#include <seccomp.h>

/* The sanitizers' search for leaks makes a process of its own, and looks into ours by ptrace. */
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

static const char *const refused[] = {
    /* programs, and other processes */
    "execve", "execveat", "fork", "vfork", "process_vm_readv", "process_vm_writev", "pidfd_getfd",
    "kcmp", "setns", "unshare", "personality",
    /* the file system as a whole */
    "mount", "umount", "umount2", "pivot_root", "chroot", "open_tree", "move_mount", "fsopen",
    "fsconfig", "fsmount", "fspick", "mount_setattr", "open_by_handle_at", "name_to_handle_at",
    "quotactl", "quotactl_fd", "swapon", "swapoff", "mknod", "mknodat",
    /* modes and owners, which Landlock does not know of */
    "chmod", "fchmod", "fchmodat", "chown", "fchown", "lchown", "fchownat", "setxattr", "lsetxattr",
    "fsetxattr", "removexattr", "lremovexattr", "fremovexattr",
    /* who we are */
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
    /* who talks with others calls them */
    "listen", "accept", "accept4"};

static int refuse(scmp_filter_ctx filter, const char *name)
{
    int number = seccomp_syscall_resolve_name(name);

    if (number == __NR_SCMP_ERROR)
        return 0; /* newer than the library, which nobody can have called by name then */
    return seccomp_rule_add(filter, SCMP_ACT_ERRNO(EPERM), number, 0);
}

/* Threads are made by clone, too, or by clone3, whose flags a filter cannot see: as if the kernel
 * were older, the C library then asks by clone. */
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

bool calls_give_up(void)
{
    scmp_filter_ctx filter = seccomp_init(SCMP_ACT_ALLOW);
    int err = filter ? refuse_processes(filter) : -ENOMEM;

    for (size_t i = 0; err == 0 && i < COUNT_OF(refused); i++)
        err = refuse(filter, refused[i]);
    if (err == 0)
        err = seccomp_load(filter); /* which sets no-new-privs, too */
    seccomp_release(filter);
    errno = -err;
    return err == 0;
}
