/* Tests of fields as they are declared (field.c): which values each kind accepts, and what the
 * mistake says otherwise. The sections of real configurations are tested beside their readers. */

#include "base/test.h"

#include "config/config_reader.h"

enum colour { RED, GREEN, BLUE };

struct target {
    const char *any, *brief;
    enum colour colour;
    bool loud;
    uint32_t count;
    int64_t long_count, size;
    int items;
};

static void count_item(struct reader *r, const struct json *j, const struct path *path,
                       void *target)
{
    struct target *t = target;

    if (j->type != JSON_NUMBER)
        mistake_in(r, path, j, "a number");
    else
        t->items++;
}

static const char *const colours[] = {[RED] = "red", [GREEN] = "green", [BLUE] = "blue", NULL};
static const char *const volumes[] = {"quiet", "loud", NULL};

static const struct field fields[] = {
    TEXT_FIELD("any", struct target, any, 0),
    TEXT_FIELD("brief", struct target, brief, 3),
    WORD_FIELD("colour", 0, struct target, colour, colours, NULL),
    WORD_FIELD("loud", 0, struct target, loud, volumes, "not a sound"),
    NUMBER_FIELD("count", struct target, count, 1, UINT32_MAX),
    NUMBER_FIELD("long_count", struct target, long_count, 0, INT64_MAX),
    SIZE_FIELD("size", struct target, size, 2048, "a size of at most 2KiB"),
    LIST_FIELD("items", false, count_item, 2, "numbers"),
    LIST_FIELD("more", false, count_item, 0, "an array of numbers"),
};

/* Reads `text`; *ret_mistakes: "PATH: EXPECTED" of each mistake, a line each. */
static struct target read_it(const char *text, struct buf *ret_mistakes)
{
    static struct mistakes mistakes;
    struct target t = {.any = "", .brief = "", .colour = BLUE, .count = 7};
    struct path root = {0};
    struct json *tree = NULL;
    static struct arena arena;
    struct reader r = {.arena = &arena, .mistakes = &mistakes};

    arena_fini(&arena);
    arena = (struct arena){0};
    mistakes.count = 0;
    assert_int_equal(read_source(&r, arena_copy(&arena, slice_of(text)), SOURCE_YAML, &tree),
                     ERR_OK);
    read_object(&r, tree, &root, fields, COUNT_OF(fields), &t);
    buf_clear(ret_mistakes);
    for (size_t i = 0; i < mistakes.count; i++)
        buf_fmt(ret_mistakes, "%s: %s\n", mistakes.list[i].path, mistakes.list[i].expected);
    return t;
}

static void each_kind_takes_its_values(void **state)
{
    CLEANUP(buf_fini) struct buf b = {0};
    struct target t = read_it("any: a long text\nbrief: abc\ncolour: green\nloud: loud\n"
                              "count: 4294967295\nlong_count: 9223372036854775807\nsize: 2KiB\n"
                              "items: [1, 2]\nmore: [3, 4, 5]\n",
                              &b);

    (void)state;
    assert_int_equal(b.len, 0);
    assert_string_equal(t.any, "a long text");
    assert_string_equal(t.brief, "abc");
    assert_int_equal(t.colour, GREEN);
    assert_true(t.loud);
    assert_int_equal(t.count, UINT32_MAX);
    assert_true(t.long_count == INT64_MAX);
    assert_int_equal(t.size, 2048);
    assert_int_equal(t.items, 5);
}

static void each_kind_says_what_it_expects(void **state)
{
    CLEANUP(buf_fini) struct buf b = {0};
    struct target t = read_it("any: ''\nbrief: abcd\ncolour: black\nloud: 1\ncount: 0\n"
                              "long_count: -1\nsize: 2049\nitems: [1, 2, 3]\nmore: [1, x]\n",
                              &b);

    (void)state;
    assert_string_equal(b.ptr, "any: a text\n"
                               "brief: a text of 1 to 3 bytes\n"
                               "colour: red, green or blue\n"
                               "loud: not a sound\n"
                               "count: a whole number from 1 to 4294967295\n"
                               "long_count: a whole number from 0 to 9223372036854775807\n"
                               "size: a size of at most 2KiB\n"
                               "items: an array of at most 2 numbers\n"
                               "more[1]: a number\n");
    assert_string_equal(t.any, "");
    assert_string_equal(t.brief, "");
    assert_int_equal(t.colour, BLUE);
    assert_false(t.loud);
    assert_int_equal(t.count, 7);
    assert_true(t.long_count == 0 && t.size == 0);
    assert_int_equal(t.items, 1);
    (void)read_it("more: 1\n", &b);
    assert_string_equal(b.ptr, "more: an array of numbers\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_kind_takes_its_values),
        cmocka_unit_test(each_kind_says_what_it_expects),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
