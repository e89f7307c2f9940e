#include "cli/operate.h"

#include "cli/client.h"
#include "cli/operation_start.h"
#include "cli/task_show.h"

bool operate_value(const struct invocation *in, const char *flag, const char *value, struct buf *b)
{
    CLEANUP(arena_fini) struct arena arena = {0};
    CLEANUP(buf_fini) struct buf text = {0};
    struct json_fault fault = {0};
    struct json *j = NULL;
    bool is_file = value[0] == '@' || strcmp(value, "-") == 0;

    if (is_file && !client_read_file(value[0] == '@' ? value + 1 : value, &text))
        return false;
    if (!is_file)
        buf_str(&text, value);
    if (json_parse(&arena, buf_view(&text), &j, &fault) != ERR_OK) {
        verb_misused(in, "--%s is not JSON: line %u, column %u: %s", flag, fault.line, fault.column,
                     fault.what);
        return false;
    }
    json_key(b, flag);
    json_raw(b, buf_view(&text));
    return true;
}

bool operate_effect_ok(const struct invocation *in)
{
    const char *effect = given(in, "effect");

    if (effect && strcmp(effect, "none") == 0)
        return true;
    verb_misused(in, "say that the step did not take effect: --effect none; for one that did there "
                     "is intact supply, with its output");
    return false;
}

static const struct flag many_flags[] = {MANY_FLAGS, {0}};

static const char *given_if_any(const struct invocation *in, const char *flag)
{
    return verb_has_flag(in->verb, flag) ? given(in, flag) : NULL;
}

static void add_text(struct buf *b, const char *flag, const char *text)
{
    if (!text)
        return;
    json_key(b, flag);
    json_string(b, slice_of(text));
}

static bool render(const struct invocation *in, struct buf *b)
{
    static const char *const values[] = {"input", "output"};
    int64_t attempt = 0;

    if (verb_has_flag(in->verb, "attempt") && !given_number(in, "attempt", 1, UINT32_MAX, &attempt))
        return false;
    json_open(b, '{');
    add_text(b, "step", given_if_any(in, "step"));
    add_text(b, "from", given_if_any(in, "from"));
    for (size_t i = 0; i < COUNT_OF(values); i++) {
        const char *value = given_if_any(in, values[i]);
        if (value && !operate_value(in, values[i], value, b))
            return false;
    }
    add_text(b, "effect", given_if_any(in, "effect"));
    if (attempt) {
        json_key(b, "attempt");
        json_number(b, attempt);
    }
    json_key(b, "reason");
    json_string(b, slice_of(given(in, "reason")));
    json_close(b, '}');
    return true;
}

/* What the server would refuse is told at once, with how to say it. */
static bool is_complete(const struct invocation *in)
{
    const char *reason = given(in, "reason");

    bool of_step = verb_has_flag(in->verb, "output") || verb_has_flag(in->verb, "effect");

    if (of_step && !given(in, "step")) {
        verb_misused(in, "say which step: --step STEP");
        return false;
    }
    if (strcmp(in->verb->name, "supply") == 0 && !given(in, "output")) {
        verb_misused(in, "say what the step would have answered: --output JSON");
        return false;
    }
    if (verb_has_flag(in->verb, "effect") && !operate_effect_ok(in))
        return false;
    if (verb_has_flag(in->verb, "input") && !given(in, "input")) {
        verb_misused(in, "say the right input: --input JSON");
        return false;
    }
    if (given_if_any(in, "from") && given(in, "step")) {
        verb_misused(in, "say either --step, to try that one again, or --from, to start it and all "
                         "after it anew");
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

/* One task is meant, or many, and it was said which of them. */
static bool is_clear(const struct invocation *in)
{
    for (const struct flag *f = many_flags; in->word_count > 0 && f->name; f++)
        if (given(in, f->name)) {
            verb_misused(in, "--%s is for many tasks: say --all instead of a task", f->name);
            return false;
        }
    if (in->word_count == 0 && given_if_any(in, "attempt")) {
        verb_misused(in, "--attempt is of one task; of many, attempts that begin after the "
                         "operation does are not meant");
        return false;
    }
    if (in->word_count == 0 && !given(in, "all")) {
        verb_misused(in, "say which TASK; or --all, and what the tasks have in common");
        return false;
    }
    return true;
}

int operate(struct invocation *in)
{
    CLEANUP(buf_fini) struct buf body = {0};

    if (!is_clear(in) || !is_complete(in))
        return CLI_USAGE;
    if (in->word_count == 0)
        return operation_start(in, in->verb->name);
    return render(in, &body) ? ask(in, &body) : CLI_USAGE;
}
