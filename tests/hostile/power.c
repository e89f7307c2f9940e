/*
 * A power cut for any program, by LD_PRELOAD: records what was synced below a folder, which is what
 * remains after the cut. power_kit.py turns the folder into that state. A sync of a file does not
 * make its name durable: a sync of its folder does.
 */

/* In the environment:
 *
 *     POWER_FOLDER   the simulated disk, as the program sees it
 *     POWER_DISK     its durable state: i/INODE is a file as of its last sync, d/INODE the names in
 *                    a folder as of its last sync, each as "INODE TYPE NAME"
 *     POWER_SLOW     a sync below this folder is slow; empty: none is
 *     POWER_DISK/cut a number, optional: after that many further syncs the power is cut in the
 *                    middle of the next one, of which nothing is durable
 */

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { PATH_SIZE = 4096, SLOW_US = 300000 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void give_up(const char *what)
{
    (void)fprintf(stderr, "power: %s: %s\n", what, strerror(errno));
    abort();
}

/* Is it a file or folder below that one? */
static int is_below(int fd, const char *variable)
{
    const char *folder = getenv(variable);
    char link[40];
    char path[PATH_SIZE];

    (void)snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t len = folder && *folder ? readlink(link, path, sizeof path - 1) : -1;
    if (len < 0)
        return 0;
    path[len] = 0;
    size_t n = strlen(folder);
    return strncmp(path, folder, n) == 0 && (path[n] == '/' || path[n] == 0);
}

static void disk_path(char *ret, const char *kind, unsigned long inode, const char *suffix)
{
    (void)snprintf(ret, PATH_SIZE, "%s/%s%lu%s", getenv("POWER_DISK"), kind, inode, suffix);
}

static void cut_if_told(void)
{
    char path[PATH_SIZE];
    char text[20] = "";

    (void)snprintf(path, sizeof path, "%s/cut", getenv("POWER_DISK"));
    int fd = open(path, O_RDWR | O_CLOEXEC);
    if (fd < 0)
        return;
    if (read(fd, text, sizeof text - 1) < 0)
        give_up(path);
    long left = strtol(text, NULL, 10);
    if (left <= 0)
        (void)raise(SIGKILL);
    int len = snprintf(text, sizeof text, "%-8ld", left - 1);
    if (pwrite(fd, text, (size_t)len, 0) != len)
        give_up(path);
    (void)close(fd);
}

static int begin_copy(char *ret_path, const char *kind, unsigned long inode)
{
    disk_path(ret_path, kind, inode, ".new");
    int to = open(ret_path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (to < 0)
        give_up(ret_path);
    return to;
}

static void end_copy(int to, const char *path, const char *kind, unsigned long inode)
{
    char name[PATH_SIZE];

    disk_path(name, kind, inode, "");
    (void)close(to);
    if (rename(path, name) != 0)
        give_up(name);
}

/* Through a descriptor of its own: ours may be one that only writes. It is never closed: closing
 * it would drop SQLite's locks, and the number of a file that is kept open is given to no other. */
static void save_file(int fd, const struct stat *st)
{
    static unsigned long known[1000];
    static int kept[1000];
    static size_t count;
    char link[40];
    char path[PATH_SIZE];
    size_t i = 0;

    while (i < count && known[i] != st->st_ino)
        i++;
    if (i == count) {
        (void)snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
        int own = open(link, O_RDONLY | O_CLOEXEC);
        if (own < 0 || count == sizeof kept / sizeof kept[0])
            give_up("open");
        known[count] = st->st_ino;
        kept[count++] = own;
    }
    int to = begin_copy(path, "i/", st->st_ino);
    off_t at = 0;
    while (sendfile(to, kept[i], &at, 1 << 20) > 0)
        continue;
    end_copy(to, path, "i/", st->st_ino);
}

static void save_folder(int fd, const struct stat *st)
{
    char path[PATH_SIZE];
    int own = openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *dir = own < 0 ? NULL : fdopendir(own);

    if (!dir)
        give_up("open a folder");
    int to = begin_copy(path, "d/", st->st_ino);
    for (struct dirent *e = readdir(dir); e; e = readdir(dir))
        if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0)
            (void)dprintf(to, "%lu %c %s\n", (unsigned long)e->d_ino,
                          e->d_type == DT_DIR ? 'd' : 'f', e->d_name);
    (void)closedir(dir);
    end_copy(to, path, "d/", st->st_ino);
}

static int save(int fd)
{
    struct stat st;
    int code = errno;

    if (fstat(fd, &st) != 0)
        return -1;
    if (is_below(fd, "POWER_SLOW"))
        (void)usleep(SLOW_US);
    pthread_mutex_lock(&lock);
    cut_if_told();
    if (S_ISREG(st.st_mode))
        save_file(fd, &st);
    else if (S_ISDIR(st.st_mode))
        save_folder(fd, &st);
    pthread_mutex_unlock(&lock);
    errno = code;
    return 0;
}

int fsync(int fd)
{
    return is_below(fd, "POWER_FOLDER") ? save(fd) : (int)syscall(SYS_fsync, fd);
}

int fdatasync(int fd)
{
    return is_below(fd, "POWER_FOLDER") ? save(fd) : (int)syscall(SYS_fdatasync, fd);
}
