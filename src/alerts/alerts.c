/* Groups conditions into alerts and decides when each is opened, repeated and resolved: see
 * alerts.h. Deliveries to sinks are in alerts_tell.c. */
#include "alerts/internal.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/when.h"
#include "json/json.h"

enum {
    GROUP_WAIT_MS = 5000,
    RESOLVE_AFTER_MS = 300000,
    COUNTS_MS = 30000, /* interval for writing rows of which only counts changed */
    REMINDERS_MAX = 5, /* 1 h, 2 h, 4 h, 8 h, 16 h; then a day */
    REPEAT_MIN_MS = 60000,
    TIMES_MAX = 4, /* a recurring alert is resolved later each time, up to 16 times as late */
};

const char *notice_text(enum notice_kind k)
{
    static const char *const texts[] = {"none", "opened", "reminder", "resolved"};

    ASSERT((size_t)k < COUNT_OF(texts));
    return texts[k];
}

struct alerts_config alerts_config_default(void)
{
    struct alerts_config c = {.group_wait_ms = GROUP_WAIT_MS,
                              .repeat_ms = MS_PER_H,
                              .resolve_after_ms = RESOLVE_AFTER_MS};

    for (size_t i = 0; i < CONDITION_COUNT; i++)
        c.for_ms[i] = -1;
    return c;
}

int64_t alerts_for_ms(const struct alerts_config *c, enum alert_condition condition)
{
    int64_t ms = c->for_ms[condition];

    return ms < 0 ? condition_wait_ms(condition) : ms;
}

struct alerts *alerts_new(const struct alerts_config *c)
{
    struct alerts *a = calloc(1, sizeof *a);

    ASSERT(a);
    ASSERT(c->sink_count <= ALERT_SINKS);
    a->config = *c;
    if (c->group_wait_ms == 0)
        a->config.group_wait_ms = GROUP_WAIT_MS;
    if (c->repeat_ms == 0)
        a->config.repeat_ms = MS_PER_H;
    if (c->resolve_after_ms == 0)
        a->config.resolve_after_ms = RESOLVE_AFTER_MS;
    if (c->pace_max_ms == 0)
        a->config.pace_max_ms = ALERT_PACE_MS;
    for (size_t i = 0; i < CONDITION_COUNT; i++)
        a->config.for_ms[i] = alerts_for_ms(c, (enum alert_condition)i);
    return a;
}

void alert_free(struct alert *al)
{
    free((char *)(uintptr_t)al->key.ptr); /* allocated in alert_new */
    free(al);
}

void alerts_clear(struct alerts *a)
{
    struct alert *al = NULL;

    sinks_forget(a);
    for (size_t i = 0; (al = map_next(&a->by_key, &i));)
        alert_free(al);
    map_fini(&a->by_key);
    a->by_key = (struct map){0};
}

void alerts_free(struct alerts *a)
{
    if (!a)
        return;
    alerts_clear(a);
    free(a);
}

/* ---- groups ---- */

void text_copy(char to[ALERT_TEXT_SIZE], struct slice from)
{
    struct slice cut = slice_cut(from, ALERT_TEXT_SIZE - 1);

    if (cut.len > 0)
        memcpy(to, cut.ptr, cut.len);
    to[cut.len] = 0;
}

void alert_key(const struct alert *al, struct buf *b)
{
    buf_str(b, condition_text(al->condition));
    buf_byte(b, '{');
    for (size_t i = 0; i < al->label_count; i++) {
        json_member_text(b, al->labels[i].name, slice_of(al->labels[i].value));
    }
    json_close(b, '}');
}

struct alert *alert_new(struct alerts *a, const struct alert *like)
{
    CLEANUP(buf_fini) struct buf key = {0};
    struct alert *al = malloc(sizeof *al);

    ASSERT(al);
    *al = *like;
    alert_key(al, &key);
    char *text = malloc(key.len + 1);
    ASSERT(text);
    memcpy(text, key.ptr, key.len + 1);
    al->key.ptr = text;
    al->key.len = key.len;
    map_put(&a->by_key, al->key, al);
    return al;
}

static size_t groups_of(const struct alerts *a, enum alert_condition c)
{
    struct alert *al = NULL;
    size_t count = 0;

    for (size_t i = 0; (al = map_next(&a->by_key, &i));)
        count += al->condition == c;
    return count;
}

static void take_labels(struct alert *al, const struct sighting *s)
{
    al->condition = s->condition;
    for (size_t i = 0; i < ALERT_LABELS && s->labels[i].name; i++) {
        if (!s->labels[i].value.ptr)
            continue;
        struct alert_label *l = &al->labels[al->label_count++];
        l->name = s->labels[i].name;
        text_copy(l->value, s->labels[i].value);
    }
}

static struct alert *group_get(struct alerts *a, const struct alert *like)
{
    CLEANUP(buf_fini) struct buf key = {0};

    alert_key(like, &key);
    return map_get(&a->by_key, buf_view(&key));
}

/* The group of a sighting; a common one if there are too many. */
static struct alert *group_of(struct alerts *a, const struct sighting *s, int64_t now)
{
    struct alert like = {.since = now};

    take_labels(&like, s);
    struct alert *al = group_get(a, &like);
    if (al)
        return al;
    if (groups_of(a, s->condition) >= CONDITION_GROUPS) {
        like = (struct alert){.condition = s->condition, .label_count = 1, .since = now};
        like.labels[0] = (struct alert_label){"group", "others"};
        al = group_get(a, &like);
    }
    return al ? al : alert_new(a, &like);
}

static void example_add(struct alert *al, struct slice id)
{
    char text[ALERT_TEXT_SIZE];

    if (!id.ptr || id.len == 0)
        return;
    text_copy(text, id);
    for (size_t i = 0; i < al->example_count; i++)
        if (strcmp(al->examples[i], text) == 0) {
            al->seen_examples |= BIT(i);
            return;
        }
    /* keeps the first ones; the last slot gets the latest */
    size_t at = al->example_count < ALERT_EXAMPLES ? al->example_count++ : ALERT_EXAMPLES - 1;
    memcpy(al->examples[at], text, sizeof text);
    al->seen_examples |= BIT(at);
}

/* The earlier occurrence has ended, so its details must not describe the next. */
static void forget_words(struct alert *al)
{
    al->example_count = 0;
    al->seen_examples = 0;
    al->story[0] = 0;
}

/* Examples that a whole look did not see have ended, while others of the group continue. */
static void drop_examples_unseen(struct alert *al)
{
    size_t kept = 0;

    for (size_t i = 0; i < al->example_count; i++) {
        if (!(al->seen_examples & BIT(i)))
            continue;
        if (kept != i)
            memcpy(al->examples[kept], al->examples[i], sizeof al->examples[kept]);
        kept++;
    }
    al->dirty |= kept != al->example_count;
    al->example_count = kept;
}

/* ---- sightings ---- */

/* Reminders in quick succession would be written all the time, and nothing else would be done. */
int64_t alert_repeat_ms(int64_t ms)
{
    return ms <= 0 ? 0 : max_i64(ms, REPEAT_MIN_MS);
}

/* The condition holds (again). If it was resolved and returns, the same alert is reported again. */
static void lights(struct alert *al, int64_t now)
{
    if (al->over_since != 0) {
        forget_words(al);
        al->over_since = 0;
        al->since = al->opened_at ? al->since : now;
        al->dirty = true;
    }
    if (al->resolved_at == 0)
        return;
    al->resolved_at = 0;
    al->since = now;
    al->times++;
    al->reminders = 0;
    al->acknowledged_at = 0;
    al->lifted = true;
    al->notice++;
    al->kind = NOTICE_OPENED;
    al->notice_at = now;
    al->noticed = true;
    al->dirty = true;
}

/* What has come was not meant by an acknowledgement. */
static void tell_anew(struct alert *al, int64_t now)
{
    al->lifted |= al->acknowledged_at != 0;
    al->acknowledged_at = 0;
    al->reminders = 0;
    al->notice++;
    al->kind = NOTICE_REMINDER;
    al->notice_at = now;
    al->dirty = true;
}

static void see_words(struct alert *al, const struct sighting *s)
{
    example_add(al, s->example);
    if (s->story.ptr)
        text_copy(al->story, s->story);
}

/* An acknowledgement does not cover what comes after a quiet period of `repeat`. */
static void see_latest(struct alerts *a, struct alert *al, int64_t latest_at, int64_t now)
{
    if (latest_at <= al->latest_at)
        return;
    bool was_quiet = latest_at - al->latest_at >= a->config.repeat_ms;

    al->latest_at = latest_at;
    al->dirty = true;
    if (al->acknowledged_at == 0 || al->each || !was_quiet || latest_at <= al->acknowledged_at)
        return;
    tell_anew(al, now);
}

void alerts_look_begin(struct alerts *a, uint32_t which)
{
    struct alert *al = NULL;

    for (size_t i = 0; (al = map_next(&a->by_key, &i));)
        if (which & BIT(al->condition)) {
            al->seen = al->each = al->later = al->noticed = false;
            al->seen_count = 0;
            al->seen_first_at = 0;
            al->seen_examples = 0;
        }
}

void alerts_see(struct alerts *a, const struct sighting *s, int64_t now)
{
    struct alert *al = group_of(a, s, now);
    int64_t first = s->first_at ? s->first_at : now;

    ASSERT(s->count > 0);
    lights(al, now);
    al->seen = true;
    al->seen_count += s->count;
    if (al->seen_first_at == 0 || first < al->seen_first_at)
        al->seen_first_at = first;
    if (al->first_at == 0)
        al->first_at = first;
    see_words(al, s);
    al->each |= s->each;
    al->later |= (s->latest_at ? s->latest_at : first) > al->latest_at;
    int64_t repeat_ms = alert_repeat_ms(s->repeat_ms);
    al->dirty |= al->repeat_ms != repeat_ms;
    al->repeat_ms = repeat_ms;
    see_latest(a, al, s->latest_at ? s->latest_at : first, now);
}

static void look_ends(struct alert *al, int64_t now)
{
    if (!al->seen) {
        al->count = al->opened_at ? al->count : 0;
        if (al->over_since == 0) {
            al->over_since = now;
            al->dirty = true;
        }
        return;
    }
    if (al->each && !al->noticed && alert_is_open(al) && (al->later || al->seen_count > al->count))
        tell_anew(al, now);
    al->dirty |= al->count != al->seen_count;
    if (al->seen_count > al->count)
        al->total += al->seen_count - al->count;
    al->count = al->seen_count;
    al->first_at = al->seen_first_at;
    drop_examples_unseen(al);
}

void alerts_look_end(struct alerts *a, uint32_t which, int64_t now)
{
    struct alert *al = NULL;

    for (size_t i = 0; (al = map_next(&a->by_key, &i));)
        if (which & BIT(al->condition))
            look_ends(al, now);
}

void alerts_add(struct alerts *a, const struct sighting *s, int64_t now)
{
    struct alert *al = group_of(a, s, now);
    int64_t first = s->first_at ? s->first_at : now;

    ASSERT(s->count > 0);
    lights(al, now);
    if (al->first_at == 0 || al->count == 0)
        al->first_at = first;
    al->seen = true; /* in case a look is past it already */
    al->seen_count += s->count;
    if (al->seen_first_at == 0)
        al->seen_first_at = first;
    al->count += s->count;
    al->total += s->count;
    al->dirty = true;
    see_words(al, s);
    see_latest(a, al, s->latest_at ? s->latest_at : first, now);
}

/* ---- transitions ---- */

bool alert_is_open(const struct alert *al)
{
    return al->opened_at != 0 && al->resolved_at == 0;
}

static void notify(struct alert *al, enum notice_kind kind, int64_t now)
{
    al->notice++;
    al->kind = kind;
    al->notice_at = now;
    al->dirty = true;
}

static int64_t wait_ms(const struct alerts *a, const struct alert *al)
{
    return max_i64(a->config.for_ms[al->condition], a->config.group_wait_ms);
}

static int64_t resolves_at(const struct alerts *a, const struct alert *al)
{
    unsigned times = al->times < TIMES_MAX ? al->times : TIMES_MAX;

    return al->over_since + (a->config.resolve_after_ms << times);
}

static int64_t reminder_at(const struct alerts *a, const struct alert *al)
{
    int64_t wait = a->config.repeat_ms << (al->reminders < REMINDERS_MAX ? al->reminders : 0);

    if (al->repeat_ms != 0)
        return al->notice_at + al->repeat_ms;
    if (al->reminders >= REMINDERS_MAX || wait > MS_PER_D)
        wait = max_i64(MS_PER_D, a->config.repeat_ms);
    return al->notice_at + wait;
}

static void open_it(struct alert *al, int64_t now)
{
    CLEANUP(buf_fini) struct buf b = {0};

    buf_slice(&b, al->key);
    buf_i64(&b, now);
    al->opened_at = now;
    if (al->total < al->count)
        al->total = al->count;
    (void)snprintf(al->id, sizeof al->id, "a-%016" PRIx64, hash_stable(b.ptr, b.len));
    notify(al, NOTICE_OPENED, now);
}

static bool all_were_told(const struct alerts *a, const struct alert *al)
{
    for (size_t i = 0; i < a->config.sink_count; i++)
        if (sink_wants(&a->config.sinks[i], al) && al->told[i] < al->notice)
            return false;
    return true;
}

/* A resolved alert is remembered for a while, in case it returns. */
static int64_t settles_at(const struct alerts *a, const struct alert *al)
{
    return al->resolved_at + a->config.repeat_ms;
}

/* The time of the next transition; 0: only after an event. */
static int64_t alert_turn(struct alerts *a, struct alert *al, int64_t now)
{
    if (al->opened_at == 0) {
        if (al->over_since == 0 && now >= al->since + wait_ms(a, al))
            open_it(al, now);
        else
            return al->over_since ? 0 : al->since + wait_ms(a, al);
    }
    if (al->resolved_at != 0) {
        bool settled = now >= settles_at(a, al) && all_were_told(a, al);
        al->dirty |= settled && !al->settled;
        al->settled = settled;
        return settled || now >= settles_at(a, al) ? 0 : settles_at(a, al);
    }
    if (al->over_since != 0) {
        if (now < resolves_at(a, al))
            return resolves_at(a, al);
        al->resolved_at = now;
        al->count = 0;
        notify(al, NOTICE_RESOLVED, now);
        return settles_at(a, al);
    }
    if (al->acknowledged_at != 0)
        return 0;
    if (now >= reminder_at(a, al)) {
        al->reminders++;
        notify(al, NOTICE_REMINDER, now);
    }
    return reminder_at(a, al);
}

static bool is_being_told(const struct alerts *a, const struct alert *al)
{
    for (size_t i = 0; i < a->config.sink_count; i++)
        for (size_t k = 0; a->sinks[i].state.busy && k < a->sinks[i].count; k++)
            if (a->sinks[i].list[k] == al)
                return true;
    return false;
}

/* Forgets alerts that were never reported, and those that are settled and stored. */
static bool is_done(const struct alerts *a, const struct alert *al)
{
    if (al->opened_at == 0)
        return al->over_since != 0;
    return al->settled && !al->dirty && !is_being_told(a, al);
}

static void forget_done(struct alerts *a)
{
    struct alert *al = NULL;
    size_t i = 0;

    while ((al = map_next(&a->by_key, &i)))
        if (is_done(a, al)) {
            (void)map_remove(&a->by_key, al->key);
            alert_free(al);
            i = 0; /* the map has changed */
        }
}

int64_t alerts_turn(struct alerts *a, int64_t now)
{
    struct alert *al = NULL;
    int64_t next = 0;

    forget_done(a);
    for (size_t i = 0; (al = map_next(&a->by_key, &i));) {
        int64_t at = alert_turn(a, al, now);
        if (at != 0 && (next == 0 || at < next))
            next = at;
    }
    return next;
}

enum err alerts_acknowledge(struct alerts *a, struct slice id, int64_t at, struct slice by,
                            struct slice why)
{
    struct alert *al = alerts_find(a, id);

    if (!al)
        return ERR_NOT_FOUND;
    if (al->resolved_at != 0)
        return ERR_CONFLICT;
    if (al->acknowledged_at != 0 || al->lifted)
        return ERR_OK; /* or its acknowledgement was removed, which is not stored yet */
    al->acknowledged_at = at;
    text_copy(al->acknowledged_by, by);
    text_copy(al->acknowledged_why, why);
    return ERR_OK;
}

/* ---- queries ---- */

struct alert *alerts_next(const struct alerts *a, size_t *i)
{
    return map_next(&a->by_key, i);
}

struct alert *alerts_find(const struct alerts *a, struct slice id)
{
    struct alert *al = NULL;

    for (size_t i = 0; (al = map_next(&a->by_key, &i));)
        if (al->id[0] && slice_is(id, al->id))
            return al;
    return NULL;
}

struct alert *alerts_find_group(const struct alerts *a, struct slice key)
{
    return map_get(&a->by_key, key);
}

size_t alerts_open(const struct alerts *a, enum alert_condition c)
{
    struct alert *al = NULL;
    size_t count = 0;

    for (size_t i = 0; (al = map_next(&a->by_key, &i));)
        count += al->condition == c && alert_is_open(al);
    return count;
}

struct alert *alerts_unwritten(struct alerts *a, int64_t now)
{
    struct alert *al = NULL;

    for (size_t i = 0; (al = map_next(&a->by_key, &i));)
        if (al->id[0] && al->dirty
            && (al->stored_notice < al->notice || al->settled || al->lifted || al->stored_at == 0
                || now - al->stored_at >= COUNTS_MS))
            return al;
    return NULL;
}

void alert_writing(struct alert *al)
{
    al->dirty = false;
}

void alert_written(struct alert *al, uint32_t notice, bool lifted, int64_t now)
{
    ASSERT(notice <= al->notice);
    al->stored_notice = notice;
    al->stored_at = now;
    if (lifted)
        al->lifted = false;
}

void alert_not_written(struct alert *al)
{
    al->dirty = true;
}
