/* Sends an operator's verb (retry, skip, undo, pause and others) for one task or step, with a
 * reason, and shows the task (operate.h). Each verb's own file only describes it. Verbs for many
 * tasks continue in operation_start.c. */

#include "cli/verbs/operate.h"

#include "cli/client/client.h"
#include "cli/verbs/operation_start.h"
#include "cli/verbs/task_show.h"

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
    json_member_raw(b, flag, buf_view(&text));
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
    json_member_text(b, flag, slice_of(text));
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
        json_member_number(b, "attempt", attempt);
    }
    json_member_text(b, "reason", slice_of(given(in, "reason")));
    json_close(b, '}');
    return true;
}

/* Rejects what the server would refuse, with the right usage. */
static bool is_complete(const struct invocation *in)
{
    const char *reason = given(in, "reason");

    bool of_step = verb_has_flag(in->verb, "output") || verb_has_flag(in->verb, "effect");

    if (of_step && !given(in, "step")) {
        verb_misused(in, "--step STEP is required");
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
        verb_misused(in, "--reason TEXT is required");
        return false;
    }
    return true;
}

static void show(const struct invocation *in, const struct intact_client *c,
                 const struct json *task)
{
    if (given(in, "json"))
        client_print_body(c);
    else
        task_show(in, task);
}

/* The state for --wait: the end of the direction in which the task goes after the verb. A task
 * turns back at most once, so one that already goes back ends compensated. False: an error, which
 * was reported. */
static bool find_goal(const struct invocation *in, struct intact_client *c, const char **ret_goal,
                      int *ret_end)
{
    CLEANUP(arena_fini) struct arena a = {0};
    bool undoes = strcmp(in->verb->name, "undo") == 0 || strcmp(in->verb->name, "cancel") == 0;
    enum intact_status status = undoes ? INTACT_OK : intact_client_get(c, in->words[0], 0);
    const struct json *task = undoes || status != INTACT_OK ? NULL : client_answer(c, &a);

    *ret_end = status == INTACT_OK ? CLI_NOT_WELL : client_complain(c, status);
    if (!undoes && !task)
        return false;
    undoes = undoes || slice_is(json_get_text(task, "direction"), "undo");
    *ret_goal = undoes ? "compensated" : "processed";
    return true;
}

static int wait_for(const struct invocation *in, struct intact_client *c, const char *goal,
                    int64_t wait_ms)
{
    CLEANUP(arena_fini) struct arena a = {0};
    enum intact_status status = intact_client_wait(c, in->words[0], wait_ms);

    if (status != INTACT_OK && status != INTACT_TIMEOUT)
        return client_complain(c, status);
    const struct json *task = client_answer(c, &a);
    if (!task)
        return CLI_NOT_WELL;
    show(in, c, task);
    if (status == INTACT_TIMEOUT)
        return verb_failed(in, CLI_NOT_WELL, "%s", intact_client_error(c));
    return slice_is(json_get_text(task, "state"), goal) ? CLI_OK : CLI_NOT_WELL;
}

static int ask(const struct invocation *in, const struct buf *body, int64_t wait_ms)
{
    CLEANUP(arena_fini) struct arena a = {0};
    CLEANUP(buf_fini) struct buf path = {0};
    struct intact_client *c = client_begin(in);
    const struct json *answer = NULL;
    const char *goal = NULL;
    int end = CLI_OK;

    buf_str(&path, "/v1/tasks/");
    client_escape(&path, slice_of(in->words[0]));
    buf_fmt(&path, "/%s", in->verb->name);
    if (wait_ms < 0 || find_goal(in, c, &goal, &end))
        answer = client_ask(c, "POST", path.ptr, body, &a, &end);
    if (answer && goal)
        end = wait_for(in, c, goal, wait_ms);
    else if (answer)
        show(in, c, answer);
    intact_client_free(c);
    return end;
}

/* Either one task is meant, or many with a filter. */
static bool is_clear(const struct invocation *in)
{
    for (const struct flag *f = many_flags; in->word_count > 0 && f->name; f++)
        if (given(in, f->name)) {
            verb_misused(in, "--%s is for many tasks: say --all instead of a task", f->name);
            return false;
        }
    if (in->word_count == 0 && given_if_any(in, "wait")) {
        verb_misused(in, "--wait is of one task; of many, it is waited until the operation is done "
                         "(see --no-wait)");
        return false;
    }
    if (in->word_count == 0 && given_if_any(in, "attempt")) {
        verb_misused(in, "--attempt is of one task; of many, attempts that begin after the "
                         "operation does are not meant");
        return false;
    }
    if (in->word_count == 0 && !given(in, "all")) {
        verb_misused(in, "a TASK is required; or --all, with filters that select the tasks");
        return false;
    }
    return true;
}

int operate(struct invocation *in)
{
    CLEANUP(buf_fini) struct buf body = {0};
    int64_t wait_ms = -1;

    if (!is_clear(in) || !is_complete(in))
        return CLI_USAGE;
    if (verb_has_flag(in->verb, "wait") && !given_duration(in, "wait", &wait_ms))
        return CLI_USAGE;
    if (in->word_count == 0)
        return operation_start(in, in->verb->name);
    return render(in, &body) ? ask(in, &body, wait_ms) : CLI_USAGE;
}
