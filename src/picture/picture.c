/* Draws workflows as SVG (picture.h). layout.c finds where the steps are; node_shape.c draws one of
 * them. The lane of the undos has the same layout as the steps, with arrows that go back. */

#include "picture/picture.h"

#include "base/arena.h"
#include "picture/layout.h"
#include "picture/node_shape.h"
#include "picture/xml.h"

enum {
    MARGIN = 24,
    LANE_GAP = 64,   /* between the steps and the undos */
    HEAD = 44,       /* the name of the workflow, and the heads of the lanes */
    FOOT = 40,       /* the legend */
    JOINTS_MAX = 50, /* arrows from the undos to on_undo */
};

/* Some steps of a workflow, as a graph of their own. */
struct lane {
    struct layout layout;
    uint16_t *steps; /* the step of each node */
    int x, y;        /* where its upper left corner is */
    bool is_upward;  /* on_undo: the first layer is the lowest one */
    bool is_undo;    /* the undo of each step instead of the step */
};

struct drawing {
    struct buf *b;
    const struct picture_graph *graph;
    struct arena arena;
    struct lane forward, undo, after;
};

/* ---- lanes ---- */

static const struct workflow *workflow_of(const struct drawing *d)
{
    return d->graph->workflow;
}

static const struct picture_step *marks_of(const struct drawing *d, uint16_t step)
{
    static const struct picture_step none;

    return d->graph->steps ? &d->graph->steps[step] : &none;
}

static struct node_shape shape_of(const struct drawing *d, const struct lane *lane, uint16_t step)
{
    return (struct node_shape){.workflow = workflow_of(d),
                               .step = step,
                               .is_undo = lane->is_undo,
                               .marks = marks_of(d, step)};
}

/* Takes the steps of on_undo, or all others. */
static void lay_out(struct drawing *d, struct lane *lane, bool on_undo)
{
    const struct workflow *w = workflow_of(d);
    struct layout *l = &lane->layout;
    uint16_t *node_of = arena_alloc(&d->arena, (w->step_count + 1U) * sizeof *node_of);

    l->nodes = arena_alloc(&d->arena, (w->step_count + 1U) * sizeof *l->nodes);
    lane->steps = arena_alloc(&d->arena, (w->step_count + 1U) * sizeof *lane->steps);
    for (uint16_t i = 0; i < w->step_count; i++) {
        const struct workflow_step *ws = &w->steps[w->order[i]];
        struct layout_node *n = &l->nodes[l->node_count];
        uint16_t *before = NULL;
        if (ws->on_undo != on_undo)
            continue;
        before = arena_alloc(&d->arena, (ws->before_count + 1U) * sizeof *before);
        for (uint16_t k = 0; k < ws->before_count; k++)
            if (w->steps[ws->before[k]].on_undo == on_undo)
                before[n->before_count++] = node_of[ws->before[k]];
        n->before = before;
        lane->steps[l->node_count] = w->order[i];
        struct node_shape shape = shape_of(d, lane, w->order[i]);
        node_shape_measure(&shape, &n->width, &n->height);
        node_of[w->order[i]] = l->node_count++;
    }
    if (l->node_count > 0)
        layout_find(l, &d->arena);
}

static int layer_top(const struct lane *lane, uint32_t layer)
{
    const struct layout_layer *at = &lane->layout.layers[layer];

    return lane->y + (lane->is_upward ? lane->layout.height - at->y - at->height : at->y);
}

static int layer_bottom(const struct lane *lane, uint32_t layer)
{
    return layer_top(lane, layer) + lane->layout.layers[layer].height;
}

/* Upper edge of what is drawn for a node; it is in the middle of its layer. */
static int node_top(const struct drawing *d, const struct lane *lane, uint16_t node,
                    int *ret_height)
{
    const struct layout_node *n = &lane->layout.nodes[node];
    struct node_shape shape = shape_of(d, lane, lane->steps[node]);
    int width = 0;

    node_shape_measure(&shape, &width, ret_height);
    return layer_top(lane, n->layer) + (lane->layout.layers[n->layer].height - *ret_height) / 2;
}

/* ---- edges ---- */

/* A curve from (x1, y1) to (x2, y2), which begins and ends upright. */
static void curve(struct buf *b, int x1, int y1, int x2, int y2)
{
    int middle = (y1 + y2) / 2;

    if (x1 == x2)
        buf_fmt(b, "V%d", y2);
    else
        buf_fmt(b, "C%d %d %d %d %d %d", x1, middle, x2, middle, x2, y2);
}

static void draw_edge(struct drawing *d, const struct lane *lane, const struct layout_edge *e)
{
    const struct layout *l = &lane->layout;
    bool up = lane->is_upward;
    int height = 0;
    int x = lane->x + l->nodes[e->from].x;
    int y = node_top(d, lane, e->from, &height);

    y += up ? 0 : height;
    buf_fmt(d->b, "<path class=\"%s\" d=\"M%d %d", lane->is_undo ? "e b" : up ? "e o" : "e", x, y);
    for (uint32_t i = 0; i < e->bend_count; i++) {
        uint32_t layer = l->nodes[e->from].layer + 1 + i;
        int in = up ? layer_bottom(lane, layer) : layer_top(lane, layer);
        int out = up ? layer_top(lane, layer) : layer_bottom(lane, layer);
        curve(d->b, x, y, lane->x + e->bends[i], in);
        buf_fmt(d->b, "V%d", out);
        x = lane->x + e->bends[i];
        y = out;
    }
    int end = node_top(d, lane, e->to, &height) + (up ? height : 0);
    curve(d->b, x, y, lane->x + l->nodes[e->to].x, end);
    buf_str(d->b, "\"/>\n");
}

/* From the undo of a step without predecessors to what runs after all undos. */
static void draw_joints(struct drawing *d)
{
    const struct layout *from = &d->undo.layout;
    const struct layout *to = &d->after.layout;
    int joints = 0;
    int height = 0;

    for (uint16_t i = 0; i < from->node_count && joints < JOINTS_MAX; i++)
        for (uint16_t k = 0; from->nodes[i].layer == 0 && k < to->node_count; k++) {
            if (to->nodes[k].layer != 0)
                continue;
            int x = d->undo.x + from->nodes[i].x;
            int y = node_top(d, &d->undo, i, &height);
            int end = node_top(d, &d->after, k, &height) + height;
            buf_fmt(d->b, "<path class=\"e o\" d=\"M%d %d", x, y);
            curve(d->b, x, y, d->after.x + to->nodes[k].x, end);
            buf_str(d->b, "\"/>\n");
            joints++;
        }
}

static void draw_lane(struct drawing *d, const struct lane *lane)
{
    const struct layout *l = &lane->layout;
    int height = 0;

    for (size_t i = 0; i < l->edge_count; i++)
        draw_edge(d, lane, &l->edges[i]);
    for (uint16_t i = 0; i < l->node_count; i++) {
        struct node_shape shape = shape_of(d, lane, lane->steps[i]);
        shape.x = lane->x + l->nodes[i].x;
        shape.y = node_top(d, lane, i, &height);
        node_shape_draw(&shape, d->b);
    }
}

/* ---- a workflow ---- */

static void write_text(struct buf *b, const char *class, int x, int y, struct slice text)
{
    buf_fmt(b, "<text class=\"%s\" x=\"%d\" y=\"%d\">", class, x, y);
    xml_text(b, text);
    buf_str(b, "</text>\n");
}

static bool has_undo(const struct workflow *w)
{
    for (uint16_t i = 0; i < w->step_count; i++)
        if (node_has_undo(&w->steps[i]) || w->steps[i].on_undo)
            return true;
    return false;
}

static int wider(int a, int b)
{
    return a > b ? a : b;
}

/* What is missing is said in the picture. */
static void write_left_out(struct drawing *d, int y)
{
    CLEANUP(buf_fini) struct buf text = {0};
    size_t count = d->forward.layout.left_out;

    if (count == 0)
        return;
    buf_fmt(&text, "%zu more arrows are not drawn", count);
    write_text(d->b, "f", MARGIN, y, buf_view(&text));
}

static void write_heads(struct drawing *d, int y, bool both)
{
    write_text(d->b, "h", MARGIN, y + 16, workflow_of(d)->name);
    if (d->graph->note.ptr)
        write_text(d->b, "f", MARGIN, y + 32, d->graph->note);
    if (both)
        write_text(d->b, "f", d->undo.x, y + 16, SLICE("undo, from below"));
}

static void place_lanes(struct drawing *d, int y, bool both)
{
    int after = d->after.layout.node_count > 0 ? d->after.layout.height + 34 : 0;

    d->forward.x = MARGIN;
    d->forward.y = y + HEAD + after;
    d->undo = d->forward;
    d->undo.is_undo = true;
    d->undo.x = MARGIN + d->forward.layout.width + LANE_GAP;
    d->after.x = d->undo.x;
    d->after.y = y + HEAD;
    d->after.is_upward = true;
    if (!both)
        d->undo.layout = (struct layout){0};
}

void picture_add(struct picture *p, const struct picture_graph *g)
{
    struct drawing d = {.b = &p->body, .graph = g};
    bool both = has_undo(g->workflow);
    int y = p->height + MARGIN;

    lay_out(&d, &d.forward, false);
    lay_out(&d, &d.after, true);
    place_lanes(&d, y, both);
    buf_str(d.b, "<g>\n");
    write_heads(&d, y, both);
    draw_lane(&d, &d.forward);
    draw_lane(&d, &d.undo);
    draw_joints(&d);
    draw_lane(&d, &d.after);
    int bottom = d.forward.y + d.forward.layout.height;
    write_left_out(&d, bottom + 16);
    buf_str(d.b, "</g>\n");
    int lanes = both ? d.undo.x + wider(d.undo.layout.width, d.after.layout.width)
                     : MARGIN + d.forward.layout.width;
    p->width = wider(p->width, wider(lanes, 400) + MARGIN);
    p->height = bottom + (d.forward.layout.left_out > 0 ? 20 : 0);
    p->has_marks |= g->steps != NULL;
    arena_fini(&d.arena);
}

/* ---- the document ---- */

static const char style[] =
    "<style>\n"
    ".intact-picture{--p:#fff;--i:#192024;--f:#566067;--l:#7c878d;--n:#f5f6f6;--g:#1b7742;"
    "--gs:#e8f4ec;--m:#8c5a00;--ms:#fbf2df;--v:#7541b8;font:13px system-ui,sans-serif}\n"
    "@media (prefers-color-scheme:dark){.intact-picture{--p:#151a1d;--i:#e3e8ea;--f:#98a4ab;"
    "--l:#6c7880;--n:#1f262a;--g:#5cc587;--gs:#14291c;--m:#e5b350;--ms:#2b2210;--v:#bd97f2}}\n"
    ".intact-picture .g{fill:var(--p)}\n"
    ".intact-picture text{fill:var(--i)}\n"
    ".intact-picture .h{font-size:15px;font-weight:600}\n"
    ".intact-picture .n{font-weight:600}\n"
    ".intact-picture .f{fill:var(--f);font-size:11px}\n"
    ".intact-picture .w{fill:var(--m);font-size:11px}\n"
    ".intact-picture .s{fill:var(--n);stroke:var(--l)}\n"
    ".intact-picture .reached .s{fill:var(--gs);stroke:var(--g)}\n"
    ".intact-picture .partly .s{fill:var(--n);stroke:var(--g)}\n"
    ".intact-picture .missed .s{fill:var(--ms);stroke:var(--m);stroke-dasharray:5 4;"
    "stroke-width:1.5}\n"
    ".intact-picture .k{fill:none;stroke:var(--g);stroke-width:2}\n"
    ".intact-picture .d{fill:var(--g)}\n"
    ".intact-picture .x{fill:none;stroke:var(--m);stroke-width:2}\n"
    ".intact-picture .e{fill:none;stroke:var(--l);marker-end:url(#intact-arrow)}\n"
    ".intact-picture .o{stroke:var(--v);marker-end:url(#intact-back)}\n"
    ".intact-picture .b{stroke:var(--v);marker-end:none;marker-start:url(#intact-back)}\n"
    ".intact-picture .t{fill:var(--l);stroke:none}\n"
    ".intact-picture .i{fill:var(--p);stroke:var(--l)}\n"
    ".intact-picture .p{fill:none;stroke:var(--i);stroke-width:3}\n"
    "</style>\n"
    "<defs>\n"
    "<marker id=\"intact-arrow\" viewBox=\"0 0 8 8\" refX=\"7\" refY=\"4\" markerWidth=\"7\" "
    "markerHeight=\"7\" orient=\"auto-start-reverse\"><path d=\"M0 0L8 4L0 8z\" "
    "style=\"fill:var(--l)\"/></marker>\n"
    "<marker id=\"intact-back\" viewBox=\"0 0 8 8\" refX=\"7\" refY=\"4\" markerWidth=\"7\" "
    "markerHeight=\"7\" orient=\"auto-start-reverse\"><path d=\"M0 0L8 4L0 8z\" "
    "style=\"fill:var(--v)\"/></marker>\n"
    "</defs>\n";

static const struct picture_legend usual_legend = {
    "all of it was reached", "a part was", "never reached",
    "A solid border means that all of it was reached, a dashed one that it never was."};

static void write_legend(const struct picture_legend *l, struct buf *b, int y)
{
    const struct {
        enum picture_mark mark;
        const char *text;
    } entries[] = {{PICTURE_REACHED, l->reached},
                   {PICTURE_PARTLY, l->partly},
                   {PICTURE_MISSED, l->missed}};
    int x = MARGIN;

    for (size_t i = 0; i < COUNT_OF(entries); i++, x += 150) {
        buf_fmt(b, "<g class=\"%s\">", node_mark_class(entries[i].mark));
        node_mark_draw(entries[i].mark, x + 8, y, b);
        buf_str(b, "</g>\n");
        write_text(b, "f", x + 22, y + 4, slice_of(entries[i].text));
    }
}

void picture_write(const struct picture *p, struct slice title, struct buf *b)
{
    int width = wider(p->width, 1);
    int height = p->height + (p->has_marks ? FOOT : 0) + MARGIN;
    const struct picture_legend *legend = p->legend ? p->legend : &usual_legend;

    buf_fmt(b,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"intact-picture\" role=\"img\" "
            "width=\"%d\" height=\"%d\" viewBox=\"0 0 %d %d\">\n<title>",
            width, height, width, height);
    xml_text(b, title);
    buf_str(b, "</title>\n<desc>The steps of the workflow in layers by their order, and the undos "
               "beside them, from the last one back to the first.");
    if (p->has_marks)
        buf_fmt(b, " %s", legend->borders);
    buf_str(b, "</desc>\n");
    buf_str(b, style);
    buf_fmt(b, "<rect class=\"g\" width=\"%d\" height=\"%d\" fill=\"white\"/>\n", width, height);
    buf_slice(b, buf_view(&p->body));
    if (p->has_marks)
        write_legend(legend, b, p->height + FOOT);
    buf_str(b, "</svg>\n");
}

void picture_fini(struct picture *p)
{
    buf_fini(&p->body);
}
