/* The definitions, workflows and expressions that benches share (sample.h), with a given number
 * of steps. Changing them makes results incomparable with those that are recorded in bench/. */

#include "sample.h"

static void write_step(struct buf *b, int i)
{
    buf_fmt(b, "  - name: step-%d\n    agent: agent-%d\n    action: do-this\n", i, i % 7);
    buf_str(b, "    if: .input.total > 0 and (.input.kind // \"plain\") != \"none\"\n"
               "    input:\n"
               "      order: ${ .input.id }\n"
               "      lines: ${ .input.lines | map(select(.quantity > 0)) }\n");
    if (i > 0)
        buf_fmt(b, "      before: ${ .steps[\"step-%d\"].output.id }\n", i - 1);
    buf_str(
        b,
        "      text: |\n"
        "        Dear ${ .input.name },\n"
        "        this is about order ${ .input.id }.\n"
        "    complete_by: 30s\n"
        "    retry: {attempts: 5, wait: 200ms, factor: 2, max_wait: 10s, defer: 15m, defers: 2}\n"
        "    undo:\n"
        "      action: undo-this\n");
    buf_fmt(b, "      input: {id: '${ .steps[\"step-%d\"].output.id // null }'}\n", i);
    buf_str(b, "      retry: {attempts: 20, max_wait: 10m}\n");
}

void sample_definition(struct buf *b, int steps)
{
    buf_str(b, "intact: 1\nworkflow: bench\ncomplete_by: 2h\n"
               "inputs:\n"
               "  id: {type: string, required: true}\n"
               "  name: {type: string, default: somebody}\n"
               "  kind: {type: string}\n"
               "  total: {type: number, default: 0}\n"
               "  lines: {type: array, default: []}\n"
               "steps:\n");
    for (int i = 0; i < steps; i++)
        write_step(b, i);
    buf_fmt(b, "output: '${ .steps[\"step-%d\"].output }'\n", steps - 1);
}

static void add_step(struct buf *b, long i, bool last, enum sample_shape shape)
{
    const char *action = last && shape == SHAPE_UNDONE ? "fail" : "do";

    buf_fmt(b, "%s{\"name\":\"step-%ld\",\"agent\":\"%c\",\"action\":\"%s\",%s", i ? "," : "", i,
            (int)('a' + i % 3), action, shape == SHAPE_WIDE ? "\"after\":[]," : "");
    buf_str(b, "\"undo\":{\"action\":\"undo\"}}");
}

void sample_workflow(struct buf *b, long steps, enum sample_shape shape)
{
    buf_str(b, "{\"intact\":1,\"workflow\":\"bench\",\"steps\":[");
    for (long i = 0; i < steps; i++)
        add_step(b, i, i + 1 == steps, shape);
    buf_fmt(b, "],\"output\":\"${ .steps[\\\"step-%ld\\\"].output }\"}", steps - 1);
}

void sample_items(struct buf *b, long concurrency, enum sample_shape shape)
{
    buf_str(b, "{\"intact\":1,\"workflow\":\"bench\",\"steps\":[{\"name\":\"each\","
               "\"for_each\":\"${ .input.lines }\",\"max_items\":10000,\"agent\":\"a\","
               "\"action\":\"do\",\"input\":{\"sku\":\"${ .item.sku }\"},");
    buf_fmt(b, "\"concurrency\":%ld,\"undo\":{\"action\":\"undo\"}}", concurrency);
    if (shape == SHAPE_UNDONE)
        buf_str(b, ",{\"name\":\"last\",\"agent\":\"b\",\"action\":\"fail\",\"undo\":\"none\"}");
    buf_str(b, "]}");
}

const char sample_root[] =
    "{\"a\":{\"b\":{\"c\":1}},\"list\":[1,2,3,4,5],\"input\":{\"order\":{\"id\":\"o-17\",\"items\":"
    "[{\"sku\":\"A-1\",\"price\":250,\"quantity\":2},{\"sku\":\"B-2\",\"price\":125,\"quantity\":1}"
    "]},"
    "\"customer\":{\"name\":\"Ann\",\"country\":\"DE\"}}}";

const char *const sample_expressions[SAMPLE_EXPRESSIONS] = {
    ".a.b.c",
    ".list | map(. + 1) | add",
    "[.input.order.items[] | .price * .quantity] | add > 500",
    "\"order \\(.input.order.id): \\(.input.order.items | length) items\"",
    "{id: .input.order.id, to: .input.customer.name, skus: [.input.order.items[].sku]}",
    "if .input.customer.country == \"DE\" then .input.order.id else null end",
};
