/*
 * The ordinary program on a failing disk: linked with this file, which makes the VFS (vfs.h)
 * SQLite's default before main runs. The file named by INTACT_FAULTS steers it and is read again
 * every few milliseconds. It has one line:
 *
 *     PERMILLE HOW CALLS        such as "300 io all", "1000 full write", "20 tear write,sync"
 *
 * HOW: io, full, short, tear, quota. If the file is missing or empty, nothing fails. The line
 * "stall" makes the disk hang: every call waits until the line changes. While a call waits, a file
 * with that name and ".stalled" appended exists.
 *
 * INTACT_KILL, such as "before 3", has this process die at one of its commits (kill.h). Then
 * nothing is synced: what a process wrote outlives it anyway.
 */

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "kill.h"
#include "vfs.h"

enum { LOOK_EVERY_MS = 5 };

static const char *control;

static bool read_how(const char *text, enum vfs_how *ret)
{
    static const char *const names[] = {"io", "full", "short", "tear", "quota"};

    for (size_t i = 0; i < COUNT_OF(names); i++)
        if (strcmp(text, names[i]) == 0) {
            *ret = (enum vfs_how)i;
            return true;
        }
    return false;
}

static uint32_t read_calls(char *text)
{
    uint32_t calls = 0;
    char *rest = NULL;

    for (char *word = strtok_r(text, ",", &rest); word; word = strtok_r(NULL, ",", &rest))
        for (enum vfs_call c = 0; c < VFS_CALL_COUNT; c++)
            if (strcmp(word, "all") == 0 || strcmp(word, vfs_call_text(c)) == 0)
                calls |= BIT(c);
    return calls;
}

static bool is_stalled(const char *text)
{
    return strncmp(text, "stall", 5) == 0;
}

static void read_plan(char *text)
{
    unsigned permille = 0;
    char how[16] = "";
    char calls[160] = "";
    struct vfs_plan plan = {0};

    if (sscanf(text, "%u %15s %159s", &permille, how, calls) == 3 && read_how(how, &plan.how)) {
        plan.calls = read_calls(calls);
        plan.permille = permille;
    }
    vfs_plan = plan;
}

static void read_control(char *ret, size_t size)
{
    int fd = open(control, O_RDONLY | O_CLOEXEC);
    ssize_t len = fd < 0 ? 0 : read(fd, ret, size - 1);

    ret[len > 0 ? len : 0] = 0;
    if (fd >= 0)
        (void)close(fd);
}

static void tell_stalled(bool is)
{
    char path[500];

    (void)snprintf(path, sizeof path, "%s.stalled", control);
    int fd = is ? open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600) : unlink(path);
    if (fd > 0)
        (void)close(fd);
}

/* SQLite is used by one thread at a time here: at first by the main one, then by the store's. */
static void steer(void)
{
    static int64_t next_at;
    struct timespec ts;
    char text[200];

    (void)clock_gettime(CLOCK_MONOTONIC, &ts); /* cannot fail for this clock */
    int64_t now = (int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
    if (now < next_at)
        return;
    next_at = now + LOOK_EVERY_MS;
    read_control(text, sizeof text);
    if (is_stalled(text)) {
        tell_stalled(true);
        for (; is_stalled(text); read_control(text, sizeof text))
            (void)usleep(LOOK_EVERY_MS * 1000);
        tell_stalled(false);
    }
    read_plan(text);
}

__attribute__((constructor)) static void begin(void)
{
    const char *plan = getenv("INTACT_KILL");
    struct timespec ts;

    control = getenv("INTACT_FAULTS");
    ASSERT(!plan || kill_plan(plan));
    if (!control && !plan)
        return;
    (void)clock_gettime(CLOCK_MONOTONIC, &ts);
    vfs_register((uint64_t)ts.tv_nsec ^ (uint64_t)getpid() << 32, !plan);
    vfs_steer = control ? steer : NULL;
}
