/* Tests of pictures: layers, edges and places of a layout, marks and shapes of steps, and text that
 * XML cannot hold. tests/e2e/workflow_tests_test.py reads whole pictures with a parser. */

#include "base/prng.h"
#include "base/test.h"
#include "definition/definition.h"
#include "picture/layout.h"
#include "picture/picture.h"
#include "picture/xml.h"

enum { WIDTH = 100, HEIGHT = 40 };

/* ---- layouts ---- */

/* Node i comes after the nodes of its text: "", "0", "0 1". */
static struct layout laid_out(const char *const *texts, uint16_t count, struct arena *a)
{
    struct layout l = {.nodes = arena_alloc(a, count * sizeof *l.nodes), .node_count = count};

    for (uint16_t i = 0; i < count; i++) {
        uint16_t *before = arena_alloc(a, 20 * sizeof *before);
        l.nodes[i] = (struct layout_node){.before = before, .width = WIDTH, .height = HEIGHT};
        for (const char *c = texts[i]; *c; c++)
            if (*c != ' ')
                before[l.nodes[i].before_count++] = (uint16_t)(*c - '0');
    }
    layout_find(&l, a);
    return l;
}

static void check_distances(const struct layout *l)
{
    for (uint16_t i = 0; i < l->node_count; i++) {
        const struct layout_node *n = &l->nodes[i];
        CHECK(n->x >= n->width / 2 && n->x + n->width / 2 <= l->width, "node %u is within", i);
        for (uint16_t k = 0; k < i; k++) {
            int gap = n->x - l->nodes[k].x;
            CHECK(n->layer != l->nodes[k].layer || gap >= WIDTH || gap <= -WIDTH,
                  "nodes %u and %u overlap", k, i);
        }
        for (uint16_t k = 0; k < n->before_count; k++)
            CHECK(l->nodes[n->before[k]].layer < n->layer, "node %u is below its predecessors", i);
    }
}

static void a_sequence_is_one_column(void **state)
{
    static const char *const texts[] = {"", "0", "1", "2"};
    CLEANUP(arena_fini) struct arena a = {0};
    (void)state;

    struct layout l = laid_out(texts, 4, &a);
    check_distances(&l);
    assert_int_equal(l.layer_count, 4);
    assert_int_equal(l.edge_count, 3);
    for (uint16_t i = 0; i < 4; i++) {
        assert_int_equal(l.nodes[i].layer, i);
        assert_int_equal(l.nodes[i].x, l.nodes[0].x);
    }
    assert_true(l.layers[3].y > l.layers[2].y + HEIGHT);
    assert_int_equal(l.height, l.layers[3].y + HEIGHT);
}

static void implied_edges_are_left_out(void **state)
{
    static const char *const texts[] = {"", "0", "01", "0", "3 0 2"};
    CLEANUP(arena_fini) struct arena a = {0};
    (void)state;

    struct layout l = laid_out(texts, 5, &a);
    check_distances(&l);
    assert_int_equal(l.edge_count, 5); /* 0-1, 1-2, 0-3, 3-4, 2-4 */
    size_t bends = 0;
    for (size_t i = 0; i < l.edge_count; i++)
        bends += l.edges[i].bend_count;
    assert_int_equal(bends, 1); /* 3-4 goes past 2 */
}

static void branches_do_not_cross(void **state)
{
    static const char *const texts[] = {"", "0", "0", "2", "1", "3", "4"};
    CLEANUP(arena_fini) struct arena a = {0};
    (void)state;

    struct layout l = laid_out(texts, 7, &a);
    check_distances(&l);
    assert_int_equal(l.nodes[1].x < l.nodes[2].x, l.nodes[4].x < l.nodes[3].x);
    assert_int_equal(l.nodes[4].x < l.nodes[3].x, l.nodes[6].x < l.nodes[5].x);
}

static void any_graph_has_a_layout(void **state)
{
    struct prng r = {7};
    (void)state;

    for (int round = 0; round < 60; round++) {
        CLEANUP(arena_fini) struct arena a = {0};
        uint16_t count = (uint16_t)(1 + prng_below(&r, 120));
        struct layout l = {.nodes = arena_alloc(&a, count * sizeof *l.nodes), .node_count = count};
        for (uint16_t i = 0; i < count; i++) {
            uint16_t *before = arena_alloc(&a, count * sizeof *before);
            l.nodes[i] = (struct layout_node){.before = before, .width = WIDTH, .height = HEIGHT};
            for (uint16_t k = 0; k < i; k++)
                if (prng_below(&r, 1 + count / 2) == 0)
                    before[l.nodes[i].before_count++] = k;
        }
        layout_find(&l, &a);
        check_distances(&l);
        assert_int_equal(l.left_out, 0);
    }
}

/* More bends than there may be: edges go straight, and nothing is lost. */
static void a_thousand_nodes_of_any_shape(void **state)
{
    enum { COUNT = 1000, CHAIN = 400, ENDS = 300 };
    CLEANUP(arena_fini) struct arena a = {0};
    struct layout l = {.nodes = arena_alloc(&a, COUNT * sizeof *l.nodes), .node_count = COUNT};
    (void)state;

    for (uint16_t i = 0; i < COUNT; i++) {
        uint16_t *before = arena_alloc(&a, COUNT * sizeof *before);
        l.nodes[i] = (struct layout_node){.before = before, .width = WIDTH, .height = HEIGHT};
        if (i > 0 && i < CHAIN)
            before[l.nodes[i].before_count++] = (uint16_t)(i - 1);
        for (uint16_t k = CHAIN; k < COUNT - ENDS && i >= COUNT - ENDS; k++)
            before[l.nodes[i].before_count++] = k;
        if (i >= COUNT - ENDS)
            before[l.nodes[i].before_count++] = CHAIN - 1;
    }
    layout_find(&l, &a);
    assert_int_equal(l.edge_count, LAYOUT_EDGES_MAX);
    assert_int_equal(l.left_out, CHAIN - 1 + ENDS * (COUNT - CHAIN - ENDS + 1) - LAYOUT_EDGES_MAX);
    for (size_t i = 0; i < l.edge_count; i++)
        assert_int_equal(l.edges[i].bend_count, 0);
}

/* ---- pictures ---- */

static const char trip[] = "intact: 1\n"
                           "workflow: trip\n"
                           "steps:\n"
                           "  - {name: room, agent: a, action: book, undo: {action: release}}\n"
                           "  - {name: rest, wait: 2d}\n"
                           "  - {name: pay, agent: a, action: pay, pivot: true, if: .input.n < 2}\n"
                           "  - {name: tell, agent: m, action: tell, undo: none, after: [pay]}\n"
                           "on_undo:\n"
                           "  - {name: sorry, agent: m, action: sorry, undo: none}\n";

static struct definition *definition(const char *text)
{
    static struct mistakes mistakes;
    struct definition *d = NULL;

    enum err err = definition_parse(slice_of(text), DEFINITION_YAML, &d, &mistakes, NULL);
    CHECK(err == ERR_OK, "%s", mistakes.list[0].expected);
    return d;
}

static void draw(const struct workflow *w, const struct picture_step *steps, struct buf *b)
{
    CLEANUP(picture_fini) struct picture p = {0};
    const struct picture_graph g = {.workflow = w, .steps = steps, .note = SLICE("a <note>")};

    picture_add(&p, &g);
    picture_write(&p, SLICE("t & u"), b);
}

static size_t count(const struct buf *b, const char *text)
{
    size_t n = 0;

    for (const char *at = b->ptr; (at = strstr(at, text)); at++)
        n++;
    return n;
}

static void each_kind_has_its_shape(void **state)
{
    CLEANUP(buf_fini) struct buf b = {0};
    struct definition *d = definition(trip);
    (void)state;

    draw(&d->workflow, NULL, &b);
    assert_int_equal(count(&b, "<g class=\"plain\">"), 6); /* 5 steps and an undo */
    assert_int_equal(count(&b, "<path class=\"s\""), 1);   /* it waits */
    assert_int_equal(count(&b, "<path class=\"p\""), 1);   /* the pivot */
    assert_int_equal(count(&b, "<path class=\"i\""), 1);   /* the condition */
    assert_int_equal(count(&b, "if .input.n &lt; 2"), 1);
    assert_int_equal(count(&b, "<circle class=\"t\""), 3); /* steps without an undo */
    assert_int_equal(count(&b, "class=\"e\""), 3);
    assert_int_equal(count(&b, "class=\"e b\""), 3);
    assert_int_equal(count(&b, "class=\"e o\""), 1); /* from the last undo to on_undo */
    assert_int_equal(count(&b, "wait 2d"), 2);       /* and for screen readers */
    assert_int_equal(count(&b, "a &lt;note&gt;"), 1);
    assert_int_equal(count(&b, "<title>t &amp; u</title>"), 1);
    assert_int_equal(count(&b, "never reached"), 0);
    definition_free(d);
}

static void marks_are_shown_where_they_belong(void **state)
{
    CLEANUP(buf_fini) struct buf b = {0};
    struct definition *d = definition(trip);
    const struct picture_step steps[5] = {{.mark = PICTURE_REACHED, .undo_mark = PICTURE_MISSED},
                                          {.mark = PICTURE_PARTLY,
                                           .lines = SLICE("missed: one\nmissed: two"),
                                           .about = SLICE("x>y")},
                                          {.mark = PICTURE_MISSED},
                                          {.mark = PICTURE_MISSED},
                                          {.mark = PICTURE_MISSED}};
    (void)state;

    draw(&d->workflow, steps, &b);
    assert_int_equal(count(&b, "<g class=\"reached\"><title>room: a.book"), 1);
    assert_int_equal(count(&b, "<g class=\"missed\"><title>undo room: a.release"), 1);
    assert_int_equal(count(&b, "<g class=\"partly\"><title>rest: wait 2d\nx&gt;y"), 1);
    assert_int_equal(count(&b, ">missed: one</text>"), 1);
    assert_int_equal(count(&b, ">missed: two</text>"), 1);
    assert_int_equal(count(&b, "<g class=\"missed\">"), 5); /* with the legend */
    definition_free(d);
}

/* ---- text ---- */

static void expect_text(struct slice text, const char *wanted)
{
    CLEANUP(buf_fini) struct buf b = {0};

    xml_text(&b, text);
    assert_string_equal(b.ptr, wanted);
}

static void any_text_is_text(void **state)
{
    (void)state;
    expect_text(SLICE("a <b> & \"c\" 'd'"), "a &lt;b&gt; &amp; &quot;c&quot; &#39;d&#39;");
    expect_text(SLICE("1\n2\t3\r"), "1&#10;2&#9;3&#13;");
    expect_text(SLICE("\x01|\x1b|\x7f"), "\xef\xbf\xbd|\xef\xbf\xbd|\x7f");
    expect_text(SLICE("\xef\xbf\xbe\xef\xbf\xbf\xef\xbf\xbd"),
                "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd");
    expect_text(SLICE("\xff"
                      "a\xc3"),
                "\xef\xbf\xbd"
                "a\xef\xbf\xbd");
    expect_text(SLICE("\xc3\xa9\xf0\x9f\x98\x80"), "\xc3\xa9\xf0\x9f\x98\x80");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_sequence_is_one_column),
        cmocka_unit_test(implied_edges_are_left_out),
        cmocka_unit_test(branches_do_not_cross),
        cmocka_unit_test(any_graph_has_a_layout),
        cmocka_unit_test(a_thousand_nodes_of_any_shape),
        cmocka_unit_test(each_kind_has_its_shape),
        cmocka_unit_test(marks_are_shown_where_they_belong),
        cmocka_unit_test(any_text_is_text),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
