/* The key of the process: keys chosen to collide do not, and the order differs in another process.
 * The key is drawn once, so this is a program of its own. */

#include "base/test.h"

#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "base/meets.h"
#include "base/siphash.h"

enum { PARTS = 12, KEYS = 1 << PARTS, PART = sizeof MEETS_ONE - 1 };

static char keys[KEYS][PARTS * PART];

static struct slice key_at(size_t i)
{
    return (struct slice){keys[i], sizeof keys[i]};
}

static void make_keys(void)
{
    for (size_t i = 0; i < KEYS; i++)
        for (size_t k = 0; k < PARTS; k++)
            memcpy(keys[i] + k * PART, i >> k & 1 ? MEETS_ONE : MEETS_OTHER, PART);
}

/* The longest run of adjacent entries: the cost of a failed lookup. */
static size_t longest_row(const struct map *m)
{
    size_t longest = 0;
    size_t row = 0;

    for (size_t i = 0; i < m->cap * 2; i++) {
        row = m->entries[i % m->cap].value ? row + 1 : 0;
        longest = row > longest ? row : longest;
    }
    return longest;
}

/* With the fixed key and a drawn one: 4096 keys in 8192 slots have runs of about 50. */
static void chosen_keys_do_not_meet(void)
{
    struct map m = {0};

    for (size_t i = 0; i < KEYS; i++)
        map_put(&m, key_at(i), keys[i]);
    CHECK(m.len == KEYS, "%zu", m.len);
    CHECK(longest_row(&m) < 500, "%zu entries in a row", longest_row(&m));
    for (size_t i = 0; i < KEYS; i++)
        CHECK(map_get(&m, key_at(i)) == keys[i], "%zu", i);
    map_fini(&m);
}

static uint64_t hash_of_one(void)
{
    struct map m = {0};
    uint64_t hash = 0;

    map_put(&m, SLICE("one"), keys);
    for (size_t i = 0; i < m.cap; i++)
        hash |= m.entries[i].hash;
    map_fini(&m);
    return hash;
}

static void the_key_is_drawn(void **state)
{
    const struct siphash_key fixed = {0};
    (void)state;

    make_keys();
    for (size_t i = 1; i < KEYS; i++)
        CHECK(hash_stable(keys[i], sizeof keys[i]) == hash_stable(keys[0], sizeof keys[0]),
              "%zu: it was chosen", i);
    CHECK(!map_key_is_drawn(), "not yet");
    map_key_draw();
    CHECK(map_key_is_drawn(), "now");
    CHECK(hash_of_one() != siphash(&fixed, "one", 3, 1, 3), "it is not the fixed one");
    chosen_keys_do_not_meet();
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(the_key_is_drawn)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
