/* The shape of an encoded message (amqp_shape.h). Proton's decoder recurses (60 000 lists in
 * each other, 540 KB, took it 79 s), and follows counts where the next section is found by sizes.
 * So senders could stop the process of AMQP. The encoding is that of AMQP 1.0, part 1: types. */

#include "amqp/amqp_shape.h"

#include <stdbool.h>
#include <stdint.h>

enum {
    LEVELS_MAX = AMQP_NESTING_MAX + 1, /* a section has a descriptor, which is a level too */
    DESCRIBED = 0x00,
};

/* A value that has others in it. */
struct level {
    size_t end;    /* where the last of them ends; a described value has no size of its own */
    uint32_t left; /* so many are not read yet */
    bool has_end, is_array;
    unsigned char code; /* of each element of an array */
};

struct scan {
    struct slice text;
    size_t at;
    struct level levels[LEVELS_MAX];
    size_t depth;
    uint32_t parts;
};

/* Reads a big-endian number of 1 or 4 bytes. */
static bool read_number(struct scan *s, size_t width, uint32_t *ret)
{
    if (s->text.len - s->at < width)
        return false;
    *ret = 0;
    for (size_t i = 0; i < width; i++)
        *ret = *ret << 8 | (unsigned char)s->text.ptr[s->at++];
    return true;
}

static bool read_code(struct scan *s, unsigned char *ret)
{
    uint32_t code = 0;
    bool ok = read_number(s, 1, &code);

    *ret = (unsigned char)code;
    return ok;
}

static bool skip(struct scan *s, size_t size)
{
    if (s->text.len - s->at < size)
        return false;
    s->at += size;
    return true;
}

/* The lower halves that exist of each upper half, a bit each. Proton stops at any other code, and
 * keeps what it has read: the rest of the message would be missing. */
static bool is_known(unsigned char code)
{
    static const uint16_t lower[16] = {
        [0x4] = 0x3f, [0x5] = 0x7f, [0x6] = 0x03, [0x7] = 0x1f, [0x8] = 0x1f, [0x9] = 0x110,
        [0xa] = 0x0b, [0xb] = 0x0b, [0xc] = 0x03, [0xd] = 0x03, [0xe] = 0x01, [0xf] = 0x01};

    return lower[code >> 4] >> (code & 15) & 1;
}

/* The upper half of a code says how the value is laid out. */
static bool is_compound(unsigned char code)
{
    return code >= 0xc0;
}

static bool skip_scalar(struct scan *s, unsigned char code)
{
    static const unsigned char widths[] = {[4] = 0, [5] = 1, [6] = 2, [7] = 4, [8] = 8, [9] = 16};
    unsigned kind = code >> 4;
    uint32_t size = 0;

    if (!is_known(code))
        return false;
    if (kind >= 4 && kind <= 9)
        return skip(s, widths[kind]);
    if (kind == 0xa || kind == 0xb)
        return read_number(s, kind == 0xa ? 1 : 4, &size) && skip(s, size);
    return false;
}

/* The elements of an array share their constructor. As in Proton, its descriptors are scalars. Each
 * counts as a part, because Proton keeps it as one. */
static enum amqp_shape read_element_code(struct scan *s, unsigned char *ret)
{
    unsigned char code = 0;
    bool ok = read_code(s, ret);

    while (ok && *ret == DESCRIBED) {
        if (++s->parts > AMQP_PARTS_MAX)
            return AMQP_SHAPE_LARGE;
        ok = read_code(s, &code) && skip_scalar(s, code) && read_code(s, ret);
    }
    return ok && is_known(*ret) ? AMQP_SHAPE_SOUND : AMQP_SHAPE_BROKEN;
}

static enum amqp_shape open_level(struct scan *s, struct level l)
{
    if (s->depth == LEVELS_MAX)
        return AMQP_SHAPE_DEEP;
    s->levels[s->depth++] = l;
    return AMQP_SHAPE_SOUND;
}

static enum amqp_shape open_compound(struct scan *s, unsigned char code)
{
    size_t width = (code >> 4) % 2 == 0 ? 1 : 4; /* of its size and of its count */
    struct level l = {.has_end = true, .is_array = code >= 0xe0};
    uint32_t size = 0;

    if (!is_known(code))
        return AMQP_SHAPE_BROKEN;
    if (!read_number(s, width, &size) || size > s->text.len - s->at)
        return AMQP_SHAPE_BROKEN;
    l.end = s->at + size;
    if (!read_number(s, width, &l.left))
        return AMQP_SHAPE_BROKEN;
    enum amqp_shape shape = l.is_array ? read_element_code(s, &l.code) : AMQP_SHAPE_SOUND;
    return shape == AMQP_SHAPE_SOUND ? open_level(s, l) : shape;
}

/* Reads a scalar, or the head of a value that has others in it. */
static enum amqp_shape read_part(struct scan *s)
{
    struct level *in = s->depth > 0 ? &s->levels[s->depth - 1] : NULL;
    unsigned char code = 0;

    if (++s->parts > AMQP_PARTS_MAX)
        return AMQP_SHAPE_LARGE;
    if (in)
        in->left--;
    if (in && in->is_array)
        code = in->code;
    else if (!read_code(s, &code))
        return AMQP_SHAPE_BROKEN;
    if (code == DESCRIBED)
        return open_level(s, (struct level){.left = 2});
    if (is_compound(code))
        return open_compound(s, code);
    return skip_scalar(s, code) ? AMQP_SHAPE_SOUND : AMQP_SHAPE_BROKEN;
}

/* Leaves each level that is read whole. */
static bool close_levels(struct scan *s)
{
    while (s->depth > 0 && s->levels[s->depth - 1].left == 0) {
        const struct level *l = &s->levels[--s->depth];
        if (l->has_end && l->end != s->at)
            return false;
    }
    return true;
}

enum amqp_shape amqp_shape(struct slice text)
{
    struct scan s = {.text = text};
    enum amqp_shape shape = text.len > 0 ? AMQP_SHAPE_SOUND : AMQP_SHAPE_BROKEN;

    while (shape == AMQP_SHAPE_SOUND && (s.at < text.len || s.depth > 0)) {
        shape = read_part(&s);
        if (shape == AMQP_SHAPE_SOUND && !close_levels(&s))
            shape = AMQP_SHAPE_BROKEN;
    }
    return shape;
}
