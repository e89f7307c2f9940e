/* The simulated tasks, and what agents reported about them: finding, content of submissions, and
 * lookups of what was said for the checkers (subject.h). Nodes never see any of it. */

#include "sim/subject.h"

#include "sim/world.h"

struct subjects subjects;

/* Runs of schedules, and children, have other ids, and come last. */
static struct subject *find_later(struct slice id)
{
    for (uint32_t i = subjects.count; i > 0; i--) {
        struct subject *t = &subjects.list[i - 1];
        if (t->id[0] == 't' && !t->parent)
            return NULL;
        if (slice_is(id, t->id))
            return t;
    }
    return NULL;
}

struct subject *subject_add(struct slice id)
{
    ASSERT(subjects.count < SUBJECTS_ALL);
    struct subject *t = &subjects.list[subjects.count++];
    *t = (struct subject){0};
    ASSERT(id.len < sizeof t->id);
    memcpy(t->id, id.ptr, id.len);
    return t;
}

struct subject *subject_find(struct slice id)
{
    uint32_t n = 0;

    if (id.len > 1 && (id.ptr[0] == 'p' || memchr(id.ptr, '@', id.len)))
        return find_later(id);
    if (id.len < 2 || id.ptr[0] != 't')
        return NULL;
    for (size_t i = 1; i < id.len; i++)
        n = n * 10 + (uint32_t)(id.ptr[i] - '0');
    return n < subjects.count ? &subjects.list[n] : NULL;
}

void said_note(struct subject *t, const struct said *s)
{
    struct said *copy = arena_alloc(&world.arena, sizeof *copy);

    *copy = *s;
    copy->next = t->said;
    t->said = copy;
}

/* Uses a random bit of the content, to draw nothing else. */
bool subject_meets(const struct subject *t)
{
    return (t->content & 8) != 0;
}

static uint64_t hash_of(const struct subject *t, bool other)
{
    return t->content ^ (other && !subject_meets(t) ? 1 : 0);
}

static uint64_t sha256_of(const struct subject *t, bool other)
{
    return t->content ^ (other ? 1 : 0);
}

struct content subject_content(const struct subject *t, bool other, bool old)
{
    struct content c = {.hash = hash_of(t, other)};

    if (old && (t->content & 16) && !subject_meets(t))
        return c;
    c.sha256 = text_of("%0*" PRIx64, CONTENT_SHA256_LEN, sha256_of(t, other));
    return c;
}

bool subject_says(const struct subject *t, bool other)
{
    if (t->seen.revision == 0)
        return false;
    if (subject_meets(t) || t->seen.sha256 != 0)
        return t->seen.sha256 == sha256_of(t, other);
    return t->seen.content == hash_of(t, other);
}

static bool is_of(const struct said *s, uint32_t step, enum direction d, uint32_t number)
{
    return s->step == step && s->direction == d && s->number == number;
}

const struct said *said_find(const struct subject *t, uint32_t step, enum direction d,
                             uint32_t number, bool failed)
{
    for (const struct said *s = t->said; s; s = s->next)
        if (is_of(s, step, d, number) && s->failed == failed)
            return s;
    return NULL;
}

bool said_effect(const struct subject *t, uint32_t step, enum direction d, uint32_t number,
                 enum effect effect)
{
    for (const struct said *s = t->said; s; s = s->next)
        if (is_of(s, step, d, number) && s->failed && s->effect == effect)
            return true;
    return false;
}

bool said_only_permanent(const struct subject *t, uint32_t step, enum direction d, uint32_t number)
{
    bool any = false;

    for (const struct said *s = t->said; s; s = s->next) {
        if (!is_of(s, step, d, number) || !s->failed)
            continue;
        if (s->retryable)
            return false;
        any = true;
    }
    return any;
}

bool said_permanent(const struct subject *t, uint32_t step, enum direction d, uint32_t number)
{
    for (const struct said *s = t->said; s; s = s->next)
        if (is_of(s, step, d, number) && s->failed && !s->retryable)
            return true;
    return false;
}

bool said_wish(const struct subject *t, uint32_t step, enum direction d, uint32_t number)
{
    for (const struct said *s = t->said; s; s = s->next)
        if (is_of(s, step, d, number) && s->wish_ms > 0)
            return true;
    return false;
}

int64_t said_least_wish(const struct subject *t, uint32_t step, enum direction d, uint32_t number)
{
    int64_t least = INT64_MAX;

    for (const struct said *s = t->said; s; s = s->next)
        if (is_of(s, step, d, number))
            least = min_i64(least, s->wish_ms);
    return least == INT64_MAX ? 0 : least;
}
