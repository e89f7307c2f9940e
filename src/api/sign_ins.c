/*
 * Counts sign-ins by token for one day (sign_ins.h). The next day all of them are forgotten, so
 * there are never more than tokens that signed in on one day.
 */

#include "api/sign_ins.h"

#include <stdlib.h>

#include "base/arena.h"
#include "base/map.h"

#define DAY_MS INT64_C(86400000)

struct sign_ins {
    int64_t day;
    struct arena arena;
    struct map counts; /* of unsigned, by token */
};

struct sign_ins *sign_ins_new(void)
{
    struct sign_ins *s = calloc(1, sizeof *s);

    ASSERT(s);
    return s;
}

static void forget(struct sign_ins *s)
{
    map_fini(&s->counts);
    arena_fini(&s->arena);
    s->counts = (struct map){0};
    s->arena = (struct arena){0};
}

void sign_ins_free(struct sign_ins *s)
{
    if (!s)
        return;
    forget(s);
    free(s);
}

bool sign_ins_told(struct sign_ins *s, struct slice token, int64_t now)
{
    if (now / DAY_MS != s->day) {
        forget(s);
        s->day = now / DAY_MS;
    }
    unsigned *count = map_get(&s->counts, token);
    if (!count) {
        count = arena_alloc(&s->arena, sizeof *count);
        *count = 0;
        map_put(&s->counts, arena_copy(&s->arena, token), count);
    }
    if (*count >= SIGN_INS_TOLD)
        return false;
    ++*count;
    return true;
}
