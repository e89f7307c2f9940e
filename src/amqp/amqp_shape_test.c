/* Which encoded messages Proton may decode (amqp_shape.h): shapes by hand, and at each limit one
 * that is just accepted and one that is not. */

#include "amqp/amqp_message.h"
#include "amqp/amqp_shape.h"
#include "base/buf.h"
#include "base/test.h"

#define BYTES(text)            \
    {                          \
        text, sizeof(text) - 1 \
    }

static void shapes_are_told_apart(void **state)
{
    static const struct {
        const char *what;
        struct slice text;
        enum amqp_shape wanted;
    } cases[] = {
        {"nothing", BYTES(""), AMQP_SHAPE_BROKEN},
        {"a value", BYTES("\0\x53\x77\x54\7"), AMQP_SHAPE_SOUND},
        {"without a section", BYTES("\x54\7"), AMQP_SHAPE_SOUND},
        {"two sections", BYTES("\0\x53\x75\xa0\2{}\0\x53\x75\xb0\0\0\0\1x"), AMQP_SHAPE_SOUND},
        {"half a section", BYTES("\0\x53\x75"), AMQP_SHAPE_BROKEN},
        {"half a number", BYTES("\0\x53\x77\x71\0\0\0"), AMQP_SHAPE_BROKEN},
        {"half a text", BYTES("\0\x53\x77\xa1\3xy"), AMQP_SHAPE_BROKEN},
        {"half a length", BYTES("\0\x53\x77\xb1\0\0"), AMQP_SHAPE_BROKEN},
        {"a code of no kind", BYTES("\0\x53\x77\x31"), AMQP_SHAPE_BROKEN},
        {"an empty list", BYTES("\0\x53\x77\x45"), AMQP_SHAPE_SOUND},
        {"a list of none", BYTES("\0\x53\x77\xc0\1\0"), AMQP_SHAPE_SOUND},
        {"a list of two", BYTES("\0\x53\x77\xc0\3\2\x41\x42"), AMQP_SHAPE_SOUND},
        {"a long map", BYTES("\0\x53\x77\xd1\0\0\0\x9\0\0\0\2\xa1\1k\x54\1"), AMQP_SHAPE_SOUND},
        {"more than its size", BYTES("\0\x53\x77\xc0\2\2\x41\x42"), AMQP_SHAPE_BROKEN},
        {"less than its size", BYTES("\0\x53\x77\xc0\4\2\x41\x42\x41"), AMQP_SHAPE_BROKEN},
        {"a size beyond the end", BYTES("\0\x53\x77\xc0\7\2\x41\x42"), AMQP_SHAPE_BROKEN},
        {"a size without a count", BYTES("\0\x53\x77\xc0\0"), AMQP_SHAPE_BROKEN},
        {"one that outgrows its list", BYTES("\0\x53\x77\xc0\4\1\xc0\3\1\x54\1"),
         AMQP_SHAPE_BROKEN},
        {"an array of two", BYTES("\0\x53\x77\xe0\4\2\x54\7\x8"), AMQP_SHAPE_SOUND},
        {"an array of texts", BYTES("\0\x53\x77\xe0\6\2\xa3\1x\1y"), AMQP_SHAPE_SOUND},
        {"a described array", BYTES("\0\x53\x77\xe0\6\1\0\x53\1\x54\7"), AMQP_SHAPE_SOUND},
        {"an array described by a list", BYTES("\0\x53\x77\xe0\5\1\0\x45\x31\x54"),
         AMQP_SHAPE_BROKEN},
        {"an array of no kind", BYTES("\0\x53\x77\xe0\3\1\x31\7"), AMQP_SHAPE_BROKEN},
        {"4 billion nulls in 10 bytes", BYTES("\0\x53\x77\xf0\0\0\0\5\xff\xff\xff\xff\x40"),
         AMQP_SHAPE_LARGE},
    };
    (void)state;

    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        enum amqp_shape shape = amqp_shape(cases[i].text);
        CHECK(shape == cases[i].wanted, "%s: %d", cases[i].what, (int)shape);
    }
}

/* A null in so many values in each other, all of one code. That of a described value is 0, and its
 * descriptor too. */
static void nest(struct buf *b, unsigned char code, size_t levels)
{
    buf_clear(b);
    buf_add(b, "\0\x53\x77", 3);
    for (size_t i = levels; i > 0; i--) {
        size_t size = (i - 1) * 9 + 5; /* of what follows: a count, other heads, and the null */
        unsigned char head[9] = {code, [8] = 1};
        for (size_t k = 0; k < 4; k++)
            head[1 + k] = (unsigned char)(size >> (24 - k * 8));
        if (code == 0)
            buf_add(b, "\0\x44", 2);
        else
            buf_add(b, (const char *)head, sizeof head);
    }
    buf_add(b, "\x40", 1);
}

static void nesting_has_a_limit(void **state)
{
    static const unsigned char codes[] = {0, 0xd0, 0xd1, 0xf0};
    CLEANUP(buf_fini) struct buf b = {0};
    (void)state;

    for (size_t i = 0; i < COUNT_OF(codes); i++)
        for (size_t levels = AMQP_NESTING_MAX - 1; levels <= AMQP_NESTING_MAX + 1; levels++) {
            nest(&b, codes[i], levels);
            enum amqp_shape shape = amqp_shape(buf_view(&b));
            enum amqp_shape wanted =
                levels <= AMQP_NESTING_MAX ? AMQP_SHAPE_SOUND : AMQP_SHAPE_DEEP;
            CHECK(shape == wanted, "code %02x, %zu levels: %d", (unsigned)codes[i], levels,
                  (int)shape);
        }
}

/* Proton would read it in more than a minute, and almost to the end of the stack. */
static void a_deep_message_is_refused_at_once(void **state)
{
    CLEANUP(arena_fini) struct arena a = {0};
    CLEANUP(buf_fini) struct buf b = {0};
    struct amqp_message m;
    struct error e = {0};
    (void)state;

    nest(&b, 0xd0, 65000);
    CHECK(amqp_message_decode(&a, buf_view(&b), &m, &e) == ERR_PARSE, "it was read");
    CHECK(strstr(e.text, "nested deeper than 40 levels"), "%s", e.text);
}

/* Part 1 of the standard has these, with as many bytes after the code as are given here. Proton
 * leaves out what follows another one. */
static void every_code_is_judged(void **state)
{
    static const char widths[256] = {
        [0x40] = 1, [0x41] = 1, [0x42] = 1, [0x43] = 1, [0x44] = 1,  [0x45] = 1,  [0x50] = 2,
        [0x51] = 2, [0x52] = 2, [0x53] = 2, [0x54] = 2, [0x55] = 2,  [0x56] = 2,  [0x60] = 3,
        [0x61] = 3, [0x70] = 5, [0x71] = 5, [0x72] = 5, [0x73] = 5,  [0x74] = 5,  [0x80] = 9,
        [0x81] = 9, [0x82] = 9, [0x83] = 9, [0x84] = 9, [0x94] = 17, [0x98] = 17, [0xa0] = 2,
        [0xa1] = 2, [0xa3] = 2, [0xb0] = 5, [0xb1] = 5, [0xb3] = 5,
    };
    static const struct slice compounds[] = {
        BYTES("\xc0\1\0"),
        BYTES("\xc1\1\0"),
        BYTES("\xd0\0\0\0\4\0\0\0\0"),
        BYTES("\xd1\0\0\0\4\0\0\0\0"),
        BYTES("\xe0\2\0\x54"),
        BYTES("\xf0\0\0\0\5\0\0\0\0\x54"),
    };
    (void)state;

    for (unsigned code = 1; code < 0xc0; code++) {
        char text[17] = {(char)code};
        size_t size = widths[code] ? (size_t)widths[code] : 1;
        enum amqp_shape shape = amqp_shape((struct slice){text, size});
        CHECK((shape == AMQP_SHAPE_SOUND) == (widths[code] > 0), "%02x: %d", code, (int)shape);
    }
    for (size_t i = 0; i < COUNT_OF(compounds); i++) {
        char text[16];
        memcpy(text, compounds[i].ptr, compounds[i].len);
        struct slice whole = {text, compounds[i].len};
        CHECK(amqp_shape(whole) == AMQP_SHAPE_SOUND, "%zu", i);
        text[0] = (char)(text[0] + 2);
        CHECK(amqp_shape(whole) == AMQP_SHAPE_BROKEN, "%zu, another code", i);
    }
}

/* Proton keeps a node for each. */
static void descriptors_of_an_array_are_parts(void **state)
{
    CLEANUP(buf_fini) struct buf b = {0};
    (void)state;

    for (size_t count = AMQP_PARTS_MAX - 1; count <= AMQP_PARTS_MAX; count++) {
        size_t size = 4 + count * 2 + 1;
        const unsigned char head[] = {0xf0,
                                      (unsigned char)(size >> 24),
                                      (unsigned char)(size >> 16),
                                      (unsigned char)(size >> 8),
                                      (unsigned char)size,
                                      0,
                                      0,
                                      0,
                                      0};
        buf_clear(&b);
        buf_add(&b, (const char *)head, sizeof head);
        for (size_t i = 0; i < count; i++)
            buf_add(&b, "\0\x44", 2);
        buf_add(&b, "\x40", 1);
        enum amqp_shape shape = amqp_shape(buf_view(&b));
        CHECK(shape == (count < AMQP_PARTS_MAX ? AMQP_SHAPE_SOUND : AMQP_SHAPE_LARGE), "%zu: %d",
              count, (int)shape);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(shapes_are_told_apart),
        cmocka_unit_test(every_code_is_judged),
        cmocka_unit_test(descriptors_of_an_array_are_parts),
        cmocka_unit_test(nesting_has_a_limit),
        cmocka_unit_test(a_deep_message_is_refused_at_once),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
