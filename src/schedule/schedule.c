/* Compiles the text of a schedule, and reports all its mistakes: see schedule.h. The moments are in
 * moments.c. */
#include "schedule/schedule.h"

#include <stdlib.h>

#include "base/when.h"
#include "definition/reader/definition_reader.h"
#include "definition/template/template.h"
#include "outbox/reply_to.h"

enum { TAG_KEY_MAX = 64, TAGS_COUNT_MAX = 32, TAG_TEXT_MAX = 256, PRIORITY_USUAL = 5 };

#define CATCH_UP_USUAL_MS MS_PER_H
#define CATCH_UP_MIN_MS   MS_PER_MIN
#define CATCH_UP_MAX_MS   (366 * MS_PER_D)

const char *overlap_text(enum overlap o)
{
    static const char *const texts[] = {
#define X(name, text) text,
        OVERLAPS(X)
#undef X
    };
    return texts[o];
}

/* A schedule while it is read. */
struct draft {
    struct schedule s;
    const struct json *cron, *every, *at, *timezone;
};

/* ---- when it fires ---- */

static void read_cron(struct reader *r, const struct json *j, const struct path *path, void *target)
{
    struct draft *d = target;
    struct error e = {0};

    d->cron = j;
    if (j->type != JSON_STRING) {
        mistake_in(r, path, j, "a cron expression in quotes, such as \"30 2 * * *\"");
        return;
    }
    if (cron_parse(j->text, &d->s.cron, &e) != ERR_OK)
        mistake_in(r, path, j, "a cron expression (%s)", e.text);
}

static void read_every(struct reader *r, const struct json *j, const struct path *path,
                       void *target)
{
    struct draft *d = target;
    int64_t ms = 0;

    d->every = j;
    read_length(r, j, path, &ms);
    if (ms == 0)
        return;
    if (ms % MS_PER_S != 0 || MS_PER_D % ms != 0)
        mistake_in(r, path, j, "full seconds that divide a day, such as 30s, 15m, 6h or 1d");
    else
        d->s.every_ms = ms;
}

static int compare_moments(const void *a, const void *b)
{
    const int64_t *x = a;
    const int64_t *y = b;

    return (*x > *y) - (*x < *y);
}

static void read_moment(struct reader *r, const struct json *j, const struct path *path,
                        struct schedule *s)
{
    int64_t at = 0;

    if (j->type == JSON_STRING && time_parse(j->text, &at) && at % MS_PER_S == 0)
        s->at[s->at_count++] = at;
    else
        mistake_in(r, path, j, "a time of full seconds, with Z or an offset: 2027-01-31T10:00:00Z");
}

static void read_at(struct reader *r, const struct json *j, const struct path *path, void *target)
{
    struct draft *d = target;
    struct schedule *s = &d->s;
    size_t kept = 0;

    d->at = j;
    if (j->type != JSON_ARRAY || j->count == 0 || j->count > SCHEDULE_MOMENTS_MAX) {
        mistake_in(r, path, j, "an array of 1 to %d times", SCHEDULE_MOMENTS_MAX);
        return;
    }
    s->at = arena_alloc(r->arena, j->count * sizeof *s->at);
    size_t i = 0;
    for (const struct json *m = j->child; m; m = m->next) {
        struct path at = {path, SLICE_NONE, i++};
        read_moment(r, m, &at, s);
    }
    qsort(s->at, s->at_count, sizeof *s->at, compare_moments);
    for (i = 0; i < s->at_count; i++)
        if (kept == 0 || s->at[i] != s->at[kept - 1])
            s->at[kept++] = s->at[i];
    s->at_count = kept;
}

static void read_zone(struct reader *r, const struct json *j, const struct path *path, void *target)
{
    struct draft *d = target;
    struct error e = {0};

    d->timezone = j;
    if (j->type != JSON_STRING || zone_open(j->text, &d->s.zone, &e) != ERR_OK)
        mistake_in(r, path, j, "the name of a time zone, such as Europe/Rome or UTC");
    else
        d->s.zone_name = j->text;
}

/* ---- what it submits ---- */

struct watcher {
    struct reader *reader;
    const struct path *path;
};

static void report_fault(void *arg, const struct json *string, size_t at, const char *what)
{
    const struct watcher *w = arg;

    mistake_of_expression(w->reader, w->path, reader_string_offset(w->reader, string, at), what);
}

static void expect_moment(const struct watcher *w, const struct json *j)
{
    mistake_in(w->reader, w->path, j, ".time, .local or .previous: there is no task yet");
}

static void report_reference(void *arg, const struct json *string, size_t at,
                             const struct reference *ref)
{
    (void)at;
    if (!ref->is_unchecked)
        expect_moment(arg, string);
}

static void report_odd(void *arg, const struct json *string, size_t at, const struct odd_name *odd)
{
    const struct watcher *w = arg;

    shape_warn(w->reader, w->path, reader_string_offset(w->reader, string, at), odd);
}

static void read_input(struct reader *r, const struct json *j, const struct path *path,
                       void *target)
{
    struct watcher watcher = {r, path};
    struct wanted of_input = {0};
    struct template_watch w = {&watcher,
                               report_fault,
                               report_reference,
                               report_odd,
                               {.of_input = &of_input, .scope = shape_of_moment()}};
    struct draft *d = target;

    d->s.input = template_read(j, r->arena, &w);
    /* A path that depends on data refers to everything, so to all three. */
    bool refers_to_all = w.refs.input && w.refs.task && w.refs.steps;
    if (!refers_to_all && (w.refs.input || w.refs.task || w.refs.steps))
        expect_moment(&watcher, j);
}

static bool is_tag(const struct json *m)
{
    if (m->type != JSON_STRING || m->text.len > TAG_TEXT_MAX || m->key.len == 0
        || m->key.len > TAG_KEY_MAX)
        return false;
    for (size_t i = 0; i < m->key.len; i++) {
        char c = m->key.ptr[i];
        if (!(c >= 'a' && c <= 'z') && !(c >= 'A' && c <= 'Z') && !(c >= '0' && c <= '9')
            && c != '.' && c != '_' && c != '-')
            return false;
    }
    return true;
}

static void read_tags(struct reader *r, const struct json *j, const struct path *path, void *target)
{
    struct draft *d = target;

    if (j->type != JSON_OBJECT || j->count > TAGS_COUNT_MAX) {
        mistake_in(r, path, j, "an object of at most %d strings", TAGS_COUNT_MAX);
        return;
    }
    for (const struct json *m = j->child; m; m = m->next) {
        struct path at = {path, m->key, 0};
        if (!is_tag(m))
            mistake_in(r, &at, m, "a string of at most %d bytes; its key 1 to %d of [A-Za-z0-9._-]",
                       TAG_TEXT_MAX, TAG_KEY_MAX);
    }
    d->s.tags = j->raw;
}

static void read_priority(struct reader *r, const struct json *j, const struct path *path,
                          void *target)
{
    struct draft *d = target;

    (void)read_whole(r, j, path, 0, 9, &d->s.priority);
}

static void read_reply_to(struct reader *r, const struct json *j, const struct path *path,
                          void *target)
{
    struct draft *d = target;
    struct error e = {0};
    struct reply reply;

    if (reply_check(j, &reply, &e) != ERR_OK)
        mistake_in(r, path, j, "a target (%s)", e.text);
    else
        d->s.reply_to = reply_text(j);
}

/* ---- what happens to late ones ---- */

static void read_catch_up(struct reader *r, const struct json *j, const struct path *path,
                          void *target)
{
    struct draft *d = target;
    int64_t ms = 0;

    read_length(r, j, path, &ms);
    if (ms == 0)
        return;
    if (ms < CATCH_UP_MIN_MS || ms > CATCH_UP_MAX_MS)
        mistake_in(r, path, j, "a duration from 1m to 366d");
    else
        d->s.catch_up_ms = ms;
}

static void read_spread(struct reader *r, const struct json *j, const struct path *path,
                        void *target)
{
    struct draft *d = target;
    int64_t ms = 0;

    read_length(r, j, path, &ms);
    if (ms > MS_PER_D)
        mistake_in(r, path, j, "a duration of at most 1d");
    else if (ms > 0)
        d->s.spread_ms = ms;
}

static const char *const overlap_words[] = {
#define X(name, text) text,
    OVERLAPS(X)
#undef X
        NULL};
static const char *const missed_words[] = {"latest", "all", NULL};

static const struct field fields[] = {
    REQUIRED("intact", read_version, 0),
    REQUIRED("schedule", read_name, offsetof(struct draft, s.name)),
    REQUIRED("workflow", read_name, offsetof(struct draft, s.workflow)),
    FIELD("cron", read_cron, 0),
    FIELD("every", read_every, 0),
    FIELD("at", read_at, 0),
    FIELD("timezone", read_zone, 0),
    FIELD("input", read_input, 0),
    WORD_FIELD("overlap", 0, struct draft, s.overlap, overlap_words, NULL),
    FIELD("catch_up", read_catch_up, 0),
    WORD_FIELD("missed", 0, struct draft, s.missed_all, missed_words, NULL),
    FIELD("spread", read_spread, 0),
    FIELD("tags", read_tags, 0),
    FIELD("priority", read_priority, 0),
    FIELD("reply_to", read_reply_to, 0),
};

/* ---- the whole ---- */

static void settle_kind(struct reader *r, const struct json *root, struct draft *d)
{
    struct path at_root = {0};
    int count = (d->cron != NULL) + (d->every != NULL) + (d->at != NULL);

    if (count == 0)
        mistake_at(r, &at_root, root->at, "nothing", "a key \"cron\", \"every\" or \"at\"");
    for (const struct json *m = root->child; m && count > 1; m = m->next)
        if (m == d->cron || m == d->every || m == d->at) {
            struct path at = {NULL, m->key, 0};
            mistake_in(r, &at, m, "either cron, every or at");
        }
    d->s.kind = d->every ? SCHEDULE_EVERY : d->at ? SCHEDULE_AT : SCHEDULE_CRON;
    const struct json *times = d->cron ? d->cron : d->every ? d->every : d->at;
    if (times)
        d->s.times = times->raw;
}

/* A cron expression that is right may still never fire in its zone. */
static void check_fires(struct reader *r, const struct draft *d)
{
    struct path at_cron = {NULL, SLICE("cron"), 0};

    if (r->mistakes->count == 0 && d->cron && schedule_next(&d->s, 0) < 0)
        mistake_in(r, &at_cron, d->cron, "an expression that fires before the year 10000");
}

static void read_schedule(struct reader *r, const struct json *root, struct draft *d)
{
    struct path at_root = {0};
    struct error e = {0};

    read_object(r, root, &at_root, fields, COUNT_OF(fields), d);
    if (root->type != JSON_OBJECT)
        return;
    settle_kind(r, root, d);
    if (!d->s.zone_name.ptr && !d->timezone) {
        d->s.zone_name = SLICE("UTC");
        if (zone_open(d->s.zone_name, &d->s.zone, &e) != ERR_OK)
            mistake_at(r, &at_root, root->at, "no time zones", "the package tzdata, installed");
    }
    check_fires(r, d);
}

enum err schedule_parse(struct slice text, enum source_format format, struct schedule **ret,
                        struct mistakes *m, struct mistakes *warnings)
{
    struct schedule *s = calloc(1, sizeof *s);
    struct json *root = NULL;
    struct draft d = {.s = {.priority = PRIORITY_USUAL, .catch_up_ms = CATCH_UP_USUAL_MS}};

    ASSERT(s);
    m->count = 0;
    if (warnings)
        warnings->count = 0;
    struct reader r = {.arena = &s->arena, .mistakes = m, .warnings = warnings, .subject = &d};
    struct slice kept = arena_copy(&s->arena, text.ptr ? text : SLICE(""));
    enum err err = read_source(&r, kept, format, &root);
    if (err == ERR_OK)
        read_schedule(&r, root, &d);
    if (err == ERR_OK && m->count > 0)
        err = ERR_INVALID;
    if (warnings)
        mistakes_sort(warnings);
    struct arena arena = s->arena;
    *s = d.s;
    s->arena = arena;
    s->text = kept;
    s->is_yaml = r.is_yaml;
    if (err != ERR_OK) {
        mistakes_sort(m);
        schedule_free(s);
        return err;
    }
    ASSERT(s->zone);
    *ret = s;
    return ERR_OK;
}

void schedule_free(struct schedule *s)
{
    if (!s)
        return;
    zone_close(s->zone);
    arena_fini(&s->arena);
    free(s);
}
