#include "cli/operate.h"

#include "cli/client.h"
#include "cli/task_show.h"

static bool add_output(const struct invocation *in, const char *output, struct buf *b)
{
    CLEANUP(arena_fini) struct arena arena = {0};
    struct json_fault fault = {0};
    struct json *j = NULL;

    if (json_parse(&arena, slice_of(output), &j, &fault) != ERR_OK) {
        verb_misused(in, "--output is not JSON: column %u: %s", fault.column, fault.what);
        return false;
    }
    json_key(b, "output");
    json_raw(b, slice_of(output));
    return true;
}

static const char *given_if_any(const struct invocation *in, const char *flag)
{
    return verb_has_flag(in->verb, flag) ? given(in, flag) : NULL;
}

static bool render(const struct invocation *in, struct buf *b)
{
    const char *step = given_if_any(in, "step");
    const char *output = given_if_any(in, "output");

    json_open(b, '{');
    if (step) {
        json_key(b, "step");
        json_string(b, slice_of(step));
    }
    if (output && !add_output(in, output, b))
        return false;
    json_key(b, "reason");
    json_string(b, slice_of(given(in, "reason")));
    json_close(b, '}');
    return true;
}

/* What the server would refuse is told at once, with how to say it. */
static bool is_complete(const struct invocation *in)
{
    const char *reason = given(in, "reason");

    if (verb_has_flag(in->verb, "output") && !given(in, "step")) {
        verb_misused(in, "say which step: --step STEP");
        return false;
    }
    if (!reason || !*reason) {
        verb_misused(in, "say why: --reason TEXT; it stays on record");
        return false;
    }
    return true;
}

static int ask(const struct invocation *in, const struct buf *body)
{
    CLEANUP(arena_fini) struct arena a = {0};
    CLEANUP(buf_fini) struct buf path = {0};
    struct intact_client *c = client_begin(in);
    int end = CLI_OK;

    buf_str(&path, "/v1/tasks/");
    client_escape(&path, slice_of(in->words[0]));
    buf_fmt(&path, "/%s", in->verb->name);
    const struct json *answer = client_ask(c, "POST", path.ptr, body, &a, &end);
    if (answer && given(in, "json"))
        client_print_body(c);
    else if (answer)
        task_show(in, answer);
    intact_client_free(c);
    return end;
}

int operate(struct invocation *in)
{
    CLEANUP(buf_fini) struct buf body = {0};

    return is_complete(in) && render(in, &body) ? ask(in, &body) : CLI_USAGE;
}
