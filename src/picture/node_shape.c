/* Draws one step or undo of a picture (node_shape.h). The outline says what kind of step it is, a
 * sign and the outline's style what was reached of it. */

#include "picture/node_shape.h"

#include "base/when.h"
#include "definition/definition.h"
#include "definition/expression/node.h"
#include "picture/xml.h"

enum {
    WIDTH = 220,
    HEIGHT = 42, /* name, and what it does */
    LINE = 15,
    CUT = 10,      /* the corner that is cut off a step that waits */
    NAME_MAX = 25, /* characters */
    TEXT_MAX = 33,
    LINES_MAX = 8,
    DOT = 10,
};

static const struct workflow_step *step_of(const struct node_shape *n)
{
    return &n->workflow->steps[n->step];
}

bool node_has_undo(const struct workflow_step *ws)
{
    return ws->undo_kind == UNDO_CALL || ws->undo_kind == UNDO_CHILD;
}

/* ---- texts ---- */

static void write_names(struct buf *b, const struct slice *names, uint16_t count)
{
    for (uint16_t i = 0; i < count; i++)
        buf_fmt(b, "%s%.*s", i > 0 ? ", " : "", SLICE_ARG(names[i]));
}

static void write_call(struct buf *b, const struct call_spec *c)
{
    buf_fmt(b, "%.*s.%.*s", SLICE_ARG(c->agent), SLICE_ARG(c->action));
}

static void write_kind(struct buf *b, const struct workflow_step *ws)
{
    switch (ws->kind) {
    case KIND_CALL:
        write_call(b, &ws->call);
        break;
    case KIND_WAIT:
        buf_str(b, "wait");
        if (ws->wait_ms > 0) {
            buf_byte(b, ' ');
            duration_write(b, ws->wait_ms);
        }
        break;
    case KIND_SIGNAL:
        buf_str(b, "signal ");
        write_names(b, ws->signal.names, ws->signal.count);
        break;
    case KIND_APPROVE:
        buf_str(b, "approval by ");
        write_names(b, ws->approve.by, ws->approve.by_count);
        break;
    case KIND_TASK:
        buf_fmt(b, "task %.*s", SLICE_ARG(ws->child.workflow));
        break;
    case KIND_EACH:
        buf_str(b, "for each: ");
        if (ws->call.agent.ptr)
            write_call(b, &ws->call);
        else
            buf_fmt(b, "task %.*s", SLICE_ARG(ws->child.workflow));
        break;
    }
}

static void write_about(struct buf *b, const struct node_shape *n)
{
    const struct workflow_step *ws = step_of(n);

    if (n->is_undo && ws->undo_kind == UNDO_CHILD)
        buf_str(b, "undo of its child");
    else if (n->is_undo)
        write_call(b, &ws->undo);
    else
        write_kind(b, ws);
    if (!n->is_undo && step_is_repeated(ws))
        buf_str(b, ", repeated");
    if (!n->is_undo && ws->undo_kind == UNDO_PIVOT)
        buf_str(b, ", pivot");
}

/* At most so many characters. */
static struct slice shortened(struct slice s, size_t max, bool *ret_cut)
{
    size_t characters = 0;
    size_t end = 0;

    *ret_cut = false;
    for (; end < s.len; end++) {
        if (((unsigned char)s.ptr[end] & 0xc0) == 0x80)
            continue;
        if (++characters > max) {
            *ret_cut = true;
            break;
        }
    }
    return (struct slice){s.ptr, end};
}

static void write_line(struct buf *b, const char *class, int x, int y, struct slice text,
                       size_t max)
{
    bool cut = false;
    struct slice part = shortened(text, max, &cut);

    buf_fmt(b, "<text class=\"%s\" x=\"%d\" y=\"%d\">", class, x, y);
    xml_text(b, part);
    buf_fmt(b, "%s</text>", cut ? "\xe2\x80\xa6" : "");
}

/* ---- sizes ---- */

static int line_count(struct slice lines)
{
    int count = lines.len > 0;

    for (size_t i = 0; i < lines.len; i++)
        count += lines.ptr[i] == '\n';
    return count > LINES_MAX ? LINES_MAX : count;
}

void node_shape_measure(const struct node_shape *n, int *ret_width, int *ret_height)
{
    *ret_width = WIDTH;
    *ret_height = HEIGHT;
    if (!n->is_undo && n->marks->lines.ptr)
        *ret_height += LINE * line_count(n->marks->lines) + 4;
    if (n->is_undo && !node_has_undo(step_of(n)))
        *ret_height = DOT;
}

/* ---- marks ---- */

const char *node_mark_class(enum picture_mark mark)
{
    static const char *const classes[] = {"plain", "reached", "partly", "missed"};

    return classes[mark];
}

void node_mark_draw(enum picture_mark mark, int x, int y, struct buf *b)
{
    switch (mark) {
    case PICTURE_PLAIN:
        break;
    case PICTURE_REACHED:
        buf_fmt(b, "<path class=\"k\" d=\"M%d %dl4 4l7 -8\"/>", x - 5, y);
        break;
    case PICTURE_PARTLY:
        buf_fmt(b,
                "<circle class=\"k\" cx=\"%d\" cy=\"%d\" r=\"5\"/>"
                "<path class=\"d\" d=\"M%d %da5 5 0 0 0 0 10z\"/>",
                x, y, x, y - 5);
        break;
    case PICTURE_MISSED:
        buf_fmt(b, "<path class=\"x\" d=\"M%d %dl8 8m0 -8l-8 8\"/>", x - 4, y - 4);
        break;
    }
}

/* ---- outlines ---- */

static void draw_rect(struct buf *b, const char *class, int x, int y, int width, int height,
                      int round)
{
    buf_fmt(b, "<rect class=\"%s\" x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\" rx=\"%d\"/>", class,
            x, y, width, height, round);
}

/* A call is a box, a list a pile of them, a child a box in a box, and what waits has no corners. */
static void draw_outline(const struct node_shape *n, int x, int height, struct buf *b)
{
    enum step_kind kind = n->is_undo ? KIND_CALL : step_of(n)->kind;
    bool waits = kind == KIND_WAIT || kind == KIND_SIGNAL || kind == KIND_APPROVE;

    if (waits) {
        buf_fmt(b, "<path class=\"s\" d=\"M%d %dh%dl%d %dv%dl-%d %dh-%dl-%d -%dv-%dz\"/>", x + CUT,
                n->y, WIDTH - 2 * CUT, CUT, CUT, height - 2 * CUT, CUT, CUT, WIDTH - 2 * CUT, CUT,
                CUT, height - 2 * CUT);
        return;
    }
    if (kind == KIND_EACH)
        draw_rect(b, "s", x + 5, n->y + 5, WIDTH, height, 6);
    draw_rect(b, "s", x, n->y, WIDTH, height, 6);
    if (kind == KIND_TASK)
        draw_rect(b, "s", x + 4, n->y + 4, WIDTH - 8, height - 8, 4);
}

static void draw_extras(const struct node_shape *n, int x, int height, struct buf *b)
{
    const struct definition *d = definition_of(n->workflow);

    if (!n->is_undo && d && d->steps[n->step].condition)
        buf_fmt(b, "<path class=\"i\" d=\"M%d %dl8 8l-8 8l-8 -8z\"/>", x, n->y + 8);
    if (!n->is_undo && step_of(n)->undo_kind == UNDO_PIVOT)
        buf_fmt(b, "<path class=\"p\" d=\"M%d %dh%d\"/>", x, n->y + height, WIDTH);
}

static void write_lines(const struct node_shape *n, int x, struct buf *b)
{
    struct slice rest = n->is_undo ? SLICE_NONE : n->marks->lines;
    int y = n->y + HEIGHT + LINE - 6;

    for (int i = 0; rest.len > 0 && i < LINES_MAX; i++, y += LINE) {
        const char *end = memchr(rest.ptr, '\n', rest.len);
        size_t len = end ? (size_t)(end - rest.ptr) : rest.len;
        write_line(b, "w", x, y, (struct slice){rest.ptr, len}, TEXT_MAX);
        rest = (struct slice){rest.ptr + len, rest.len - len};
        if (rest.len > 0)
            rest = (struct slice){rest.ptr + 1, rest.len - 1};
    }
}

/* What a pointer shows, and a screen reader reads. */
static void write_title(const struct node_shape *n, struct slice name, struct slice about,
                        struct buf *b)
{
    const struct definition *d = definition_of(n->workflow);
    const struct expression *condition = d && !n->is_undo ? d->steps[n->step].condition : NULL;

    buf_str(b, "<title>");
    xml_text(b, name);
    buf_str(b, ": ");
    xml_text(b, about);
    if (condition) {
        buf_str(b, ", if ");
        xml_text(b, slice_cut(condition->text, 200));
    }
    if (n->marks->about.ptr) {
        buf_str(b, "\n");
        xml_text(b, n->marks->about);
    }
    buf_str(b, "</title>");
}

static void draw_box(const struct node_shape *n, struct buf *b)
{
    CLEANUP(buf_fini) struct buf name = {0};
    CLEANUP(buf_fini) struct buf about = {0};
    enum picture_mark mark = n->is_undo ? n->marks->undo_mark : n->marks->mark;
    int x = n->x - WIDTH / 2;
    int width = 0;
    int height = 0;

    node_shape_measure(n, &width, &height);
    buf_str(&name, n->is_undo ? "undo " : "");
    buf_slice(&name, step_of(n)->name);
    write_about(&about, n);
    buf_fmt(b, "<g class=\"%s\">", node_mark_class(mark));
    write_title(n, buf_view(&name), buf_view(&about), b);
    draw_outline(n, x, height, b);
    draw_extras(n, x, height, b);
    write_line(b, "n", x + 14, n->y + 18, buf_view(&name), NAME_MAX);
    write_line(b, "f", x + 14, n->y + 33, buf_view(&about), TEXT_MAX);
    write_lines(n, x + 14, b);
    node_mark_draw(mark, x + WIDTH - 16, n->y + 14, b);
    buf_str(b, "</g>\n");
}

void node_shape_draw(const struct node_shape *n, struct buf *b)
{
    if (n->is_undo && !node_has_undo(step_of(n)))
        buf_fmt(b, "<circle class=\"t\" cx=\"%d\" cy=\"%d\" r=\"3\"/>\n", n->x, n->y + DOT / 2);
    else
        draw_box(n, b);
}
