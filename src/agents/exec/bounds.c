/* The Landlock rules of a command whose configuration has `confine`: the files that it names, and
 * what nearly every program needs (bounds.h). Opened by command.c in the agent; keeper.c enters
 * them in the child. */

#include "agents/exec/bounds.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "agents/exec/exec_config.h"
#include "confine/landlock.h"

/* Without these hardly any program starts. What is not there on this machine is left out. */
static const char *const programs[] = {"/usr",   "/bin",   "/sbin",  "/lib",
                                       "/lib32", "/lib64", "/libx32"};
static const char *const files[] = {"/etc/ld.so.cache", "/etc/alternatives", "/etc/localtime"};
static const char *const devices[] = {"/dev/null", "/dev/zero", "/dev/full", "/dev/random",
                                      "/dev/urandom"};

static void allow_usual(int ruleset)
{
    for (size_t i = 0; i < COUNT_OF(programs); i++)
        (void)landlock_allow(ruleset, programs[i], LANDLOCK_READ | LANDLOCK_RUN);
    for (size_t i = 0; i < COUNT_OF(files); i++)
        (void)landlock_allow(ruleset, files[i], LANDLOCK_READ);
    for (size_t i = 0; i < COUNT_OF(devices); i++)
        (void)landlock_allow(ruleset, devices[i], LANDLOCK_READ | LANDLOCK_WRITE);
}

/* NULL, or the path that cannot be allowed, with errno. */
static const char *allow_all(int ruleset, const struct exec_paths *paths, unsigned rights)
{
    for (size_t i = 0; i < paths->count; i++)
        if (!landlock_allow(ruleset, paths->list[i], rights))
            return paths->list[i];
    return NULL;
}

int bounds_open(const struct exec_command *what, const char *program, char *why, size_t why_size)
{
    const unsigned reading = LANDLOCK_READ | LANDLOCK_RUN;
    int ruleset = landlock_open(false);

    ASSERT(what->is_confined && program);
    if (ruleset < 0) {
        (void)snprintf(why, why_size, "confine needs Landlock, and this kernel has none: %s",
                       strerror(errno));
        return -1;
    }
    allow_usual(ruleset);
    (void)landlock_allow(ruleset, program, reading); /* running it reports failures */
    const char *missing = allow_all(ruleset, &what->readable, reading);
    if (!missing)
        missing = allow_all(ruleset, &what->writable, reading | LANDLOCK_WRITE);
    if (!missing)
        return ruleset;
    (void)snprintf(why, why_size, "confine: %s: %s", missing, strerror(errno));
    (void)close(ruleset);
    return -1;
}
