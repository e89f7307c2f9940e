/* Builds definitions from short texts, and a task's values to evaluate them on: see
 * definition_test_kit.h. Part of the tests. */
#include "definition/definition_test_kit.h"

#include "base/buf.h"

const char order_text[] =
    "{\n"
    "  \"intact\": 1,\n"
    "  \"workflow\": \"order\",\n"
    "  \"complete_by\": \"2h\",\n"
    "  \"on_failure\": \"undo\",\n"
    "  \"inputs\": {\n"
    "    \"sku\": {\"type\": \"string\", \"required\": true},\n"
    "    \"quantity\": {\"type\": \"integer\", \"default\": 1}\n"
    "  },\n"
    "  \"steps\": [\n"
    "    {\"name\": \"reserve\", \"agent\": \"inventory\", \"action\": \"reserve\",\n"
    "     \"input\": {\"sku\": \"${ .input.sku }\", \"quantity\": \"${ .input.quantity }\"},\n"
    "     \"complete_by\": \"30s\",\n"
    "     \"retry\": {\"attempts\": 5, \"wait\": \"200ms\", \"factor\": 2, \"max_wait\": \"10s\",\n"
    "               \"defer\": \"15m\", \"defers\": 2},\n"
    "     \"undo\": {\"action\": \"release\",\n"
    "              \"input\": {\"reservation\": \"${ .steps.reserve.output.id }\"}}},\n"
    "    {\"name\": \"charge\", \"agent\": \"payment\", \"action\": \"charge\",\n"
    "     \"if\": \".input.total > 0\", \"undo\": {\"action\": \"refund\"}},\n"
    "    {\"name\": \"ship\", \"after\": [\"reserve\", \"charge\"], \"agent\": \"shipping\",\n"
    "     \"action\": \"ship\", \"pivot\": true}\n"
    "  ],\n"
    "  \"output\": {\"parcel\": \"${ .steps.ship.output.id }\"}\n"
    "}\n";

struct definition *defined(const char *text)
{
    static struct mistakes m;
    struct definition *d = NULL;
    enum err err = definition_parse(slice_of(text), DEFINITION_JSON, &d, &m, NULL);

    CHECK(err == ERR_OK, "%s: %u:%u %s: %s, expected %s", text, m.list[0].line, m.list[0].column,
          m.list[0].path, m.list[0].found, m.list[0].expected);
    return d;
}

struct definition *graph_of(const char *shape)
{
    CLEANUP(buf_fini) struct buf b = {0};
    bool inside = false;

    buf_str(&b, "{\"intact\":1,\"workflow\":\"w\",\"steps\":[");
    for (const char *p = shape; *p; p++) {
        if (*p == ' ') {
            buf_str(&b, inside ? "]}," : "},");
            inside = false;
        } else if (*p == '<') {
            buf_str(&b, ",\"after\":[");
            inside = true;
        } else if (inside && *p != ',') {
            buf_fmt(&b, "\"%c\"", *p);
        } else if (inside) {
            buf_byte(&b, ',');
        } else {
            buf_fmt(&b, "{\"name\":\"%c\",\"agent\":\"x\",\"action\":\"y\",\"undo\":\"none\"", *p);
        }
    }
    buf_str(&b, inside ? "]}]}" : "}]}");
    return defined(b.ptr);
}

bool begins(const char *text, const char *with)
{
    return strncmp(text, with, strlen(with)) == 0;
}

static struct slice world_input(void *arg, int step)
{
    struct world *w = arg;

    w->asked++;
    return slice_of(w->input[step]);
}

static struct slice world_output(void *arg, int step)
{
    struct world *w = arg;

    w->asked++;
    return slice_of(w->output[step]);
}

static enum step_state world_state(void *arg, int step)
{
    struct world *w = arg;

    w->asked++;
    return w->state[step];
}

static struct fault_note world_error(void *arg, int step)
{
    struct world *w = arg;

    w->asked++;
    if (!w->code[step])
        return (struct fault_note){0};
    return (struct fault_note){slice_of(w->code[step]), SLICE("it was said \"so\"")};
}

static struct slice world_task(void *arg, struct arena *a)
{
    CLEANUP(buf_fini) struct buf b = {0};
    const struct world *w = arg;

    buf_str(&b, "{\"id\":\"o-17\",\"workflow\":\"order\"");
    if (w->error)
        buf_fmt(&b, ",\"error\":%s", w->error);
    buf_str(&b, "}");
    return arena_copy(a, buf_view(&b));
}

static struct slice world_signal_url(void *arg, struct slice name, struct arena *a)
{
    CLEANUP(buf_fini) struct buf b = {0};
    struct world *w = arg;

    w->urls++;
    buf_fmt(&b, "https://x/%.*s", SLICE_ARG(name));
    return arena_copy(a, buf_view(&b));
}

struct scope scope_of(const struct definition *d, const char *input, struct world *w)
{
    return (struct scope){.definition = d,
                          .input = slice_of(input),
                          .task = world_task,
                          .signal_url = world_signal_url,
                          .step_input = world_input,
                          .step_output = world_output,
                          .step_state = world_state,
                          .step_error = world_error,
                          .arg = w};
}

static void expect_mistake(const struct mistake_case *c)
{
    static struct mistakes m;
    struct definition *d = NULL;
    const struct mistake *k = &m.list[0];

    /* a text that is no JSON has no path */
    enum err err = definition_parse(slice_of(c->text), DEFINITION_JSON, &d, &m, NULL);
    CHECK(err == ERR_INVALID || (err == ERR_PARSE && !*c->path), "%s: %s", c->text, err_text(err));
    CHECK(!d && m.count == 1, "%s: %zu mistakes, the second %u:%u %s: %s, expected %s", c->text,
          m.count, m.list[1].line, m.list[1].column, m.list[1].path, m.list[1].found,
          m.list[1].expected);
    CHECK(k->line == c->line && k->column == c->column, "%s: %u:%u %s", c->text, k->line, k->column,
          k->found);
    CHECK(strcmp(k->path, c->path) == 0, "%s: path %s", c->text, k->path);
    CHECK(begins(k->found, c->found), "%s: found %s", c->text, k->found);
    CHECK(begins(k->expected, c->expected), "%s: expected %s", c->text, k->expected);
}

void expect_mistakes(const struct mistake_case *list, size_t count)
{
    for (size_t i = 0; i < count; i++)
        expect_mistake(&list[i]);
}
