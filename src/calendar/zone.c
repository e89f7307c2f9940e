/*
 * Time zones: see zone.h.
 *
 * GLib 2.74 computes the years after 2037 wrongly where the rule counts winter time as daylight
 * saving (Europe/Dublin): the tests leave this case out.
 */
#include "calendar/zone.h"

#include <fcntl.h>
#include <glib.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/when.h"

#define FOLDER "/usr/share/zoneinfo"

enum {
    NAME_MAX_LEN = 64,
    STEP_MS = 6 * 3600 * 1000, /* no zone changes twice within this time */
};

struct zone {
    GTimeZone *rules;
};

/* GLib shares the rules of a name between all who opened it, and counts them under a lock of its
 * own. ThreadSanitizer does not see that lock; so opening and closing take one that it sees. */
static pthread_mutex_t rules_lock = PTHREAD_MUTEX_INITIALIZER;

static GTimeZone *rules_open(const char *name)
{
    (void)pthread_mutex_lock(&rules_lock);
    GTimeZone *rules = g_time_zone_new_identifier(name);
    (void)pthread_mutex_unlock(&rules_lock);
    return rules;
}

static void rules_close(GTimeZone *rules)
{
    (void)pthread_mutex_lock(&rules_lock);
    g_time_zone_unref(rules);
    (void)pthread_mutex_unlock(&rules_lock);
}

static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

/* The form of a name: so it cannot leave the folder. */
static bool has_form(struct slice name)
{
    if (!name.ptr || name.len == 0 || name.len > NAME_MAX_LEN || !is_letter(name.ptr[0]))
        return false;
    for (size_t i = 0; i < name.len; i++) {
        char c = name.ptr[i];
        if (!is_letter(c) && !(c >= '0' && c <= '9') && !strchr("_+-/", c))
            return false;
    }
    return true;
}

/* Whether the system has rules of that name. GLib alone does not tell: it reads names such as
 * "EST5" as rules. posix/ and right/ are copies, the second one of which counts leap seconds. */
static bool is_known(const char *name)
{
    const char *folder = getenv("TZDIR");
    char path[PATH_MAX];
    char magic[4] = "";

    if (strncmp(name, "right/", 6) == 0 || strncmp(name, "posix/", 6) == 0)
        return false;
    if ((size_t)snprintf(path, sizeof path, "%s/%s", folder ? folder : FOLDER, name) >= sizeof path)
        return false;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    bool known = read(fd, magic, sizeof magic) == (ssize_t)sizeof magic
                 && memcmp(magic, "TZif", sizeof magic) == 0;
    (void)close(fd);
    return known;
}

enum err zone_open(struct slice name, struct zone **ret, struct error *e)
{
    char text[NAME_MAX_LEN + 1] = "";
    GTimeZone *rules = NULL;

    if (has_form(name)) {
        memcpy(text, name.ptr, name.len);
        if (is_known(text))
            rules = rules_open(text);
    }
    if (!rules)
        return error_set(e, ERR_INVALID,
                         "\"%.*s\" is no time zone; use a name such as Europe/Rome or UTC",
                         SLICE_ARG(slice_cut(name, NAME_MAX_LEN)));
    struct zone *z = malloc(sizeof *z);
    if (!z)
        out_of_memory(sizeof *z);
    /* cppcheck-suppress nullPointerRedundantCheck ; out_of_memory does not return */
    *z = (struct zone){.rules = rules};
    *ret = z;
    return ERR_OK;
}

void zone_close(struct zone *z)
{
    if (!z)
        return;
    rules_close(z->rules);
    free(z);
}

static int64_t floor_s(int64_t ms)
{
    return ms / MS_PER_S - (ms % MS_PER_S < 0);
}

int64_t zone_offset_ms(const struct zone *z, int64_t at)
{
    int interval = g_time_zone_find_interval(z->rules, G_TIME_TYPE_UNIVERSAL, floor_s(at));

    ASSERT(interval >= 0); /* each moment has an offset */
    return g_time_zone_get_offset(z->rules, interval) * MS_PER_S;
}

int64_t zone_change_after(const struct zone *z, int64_t at, int64_t until)
{
    int64_t offset = zone_offset_ms(z, at);
    int64_t before = at;
    int64_t after = at;

    ASSERT(at <= until);
    while (zone_offset_ms(z, after) == offset) {
        if (after == until)
            return until;
        before = after;
        after = min_i64(after + STEP_MS, until);
    }
    while (after - before > 1) { /* the offset at `before` is the old one, that at `after` is not */
        int64_t middle = before + (after - before) / 2;
        if (zone_offset_ms(z, middle) == offset)
            before = middle;
        else
            after = middle;
    }
    return after;
}

int64_t zone_moment(const struct zone *z, int64_t local)
{
    int64_t earlier = local - zone_offset_ms(z, local - MS_PER_D);
    int64_t later = local - zone_offset_ms(z, local + MS_PER_D);
    bool earlier_holds = earlier + zone_offset_ms(z, earlier) == local;
    bool later_holds = later + zone_offset_ms(z, later) == local;

    if (earlier_holds && later_holds)
        return min_i64(earlier, later);
    if (earlier_holds || later_holds)
        return earlier_holds ? earlier : later;
    return zone_change_after(z, min_i64(earlier, later) - 1, max_i64(earlier, later));
}
