/* What the end of a command means for its attempt, by its exit status or signal, its output, and
 * the error that it printed itself. See outcome.h. */

#include "agents/exec/outcome.h"

#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>

#include "agents/exec/surroundings.h"
#include "base/when.h"
#include "json/json.h"

enum { MESSAGE_MAX = 500, CODE_MAX = 64 };

struct verdict {
    char code[CODE_MAX];
    struct buf message, resume;
    unsigned flags;
    int64_t after_ms;
};

/* clang-format off */
static const struct { int status; unsigned flags; } meanings[] = {
    {64, INTACT_PERMANENT | INTACT_EFFECT_NONE}, /* EX_USAGE */
    {65, INTACT_PERMANENT | INTACT_EFFECT_NONE}, /* EX_DATAERR */
    {66, INTACT_PERMANENT | INTACT_EFFECT_NONE}, /* EX_NOINPUT */
    {67, INTACT_PERMANENT | INTACT_EFFECT_NONE}, /* EX_NOUSER */
    {68, INTACT_PERMANENT | INTACT_EFFECT_NONE}, /* EX_NOHOST */
    {69, INTACT_RETRYABLE | INTACT_EFFECT_NONE}, /* EX_UNAVAILABLE */
    {76, INTACT_PERMANENT | INTACT_EFFECT_NONE}, /* EX_PROTOCOL */
    {77, INTACT_PERMANENT | INTACT_EFFECT_NONE}, /* EX_NOPERM */
    {78, INTACT_PERMANENT | INTACT_EFFECT_NONE}, /* EX_CONFIG */
};
/* clang-format on */

static unsigned flags_of(int status)
{
    for (size_t i = 0; i < COUNT_OF(meanings); i++)
        if (meanings[i].status == status)
            return meanings[i].flags;
    return INTACT_RETRYABLE | INTACT_EFFECT_UNKNOWN;
}

/* The last lines of standard error, as one. */
static void add_tail(const struct command *c, struct buf *message)
{
    CLEANUP(buf_fini) struct buf clean = {0};

    surroundings_clean_tail(c, &clean);
    struct slice s = buf_view(&clean);
    while (s.len > 0 && s.ptr[s.len - 1] == ' ')
        s.len--;
    size_t room = message->len < MESSAGE_MAX ? MESSAGE_MAX - message->len : 0;
    bool is_cut = s.len > room;
    if (is_cut) {
        s.ptr += s.len - room;
        s.len = room;
        while (s.len > 0 && ((unsigned char)*s.ptr & 0xc0) == 0x80) {
            s.ptr++;
            s.len--;
        }
    }
    if (s.len > 0)
        buf_fmt(message, ": %s%.*s", is_cut ? "..." : "", SLICE_ARG(s));
}

static void conclude(struct verdict *v, unsigned flags, const char *code, const char *message)
{
    ASSERT(*code && strlen(code) < sizeof v->code && *message);
    (void)snprintf(v->code, sizeof v->code, "%s", code);
    buf_clear(&v->message);
    buf_str(&v->message, message);
    v->flags = flags;
}

static void judge_end(const struct command *c, struct verdict *v)
{
    const unsigned unknown = INTACT_RETRYABLE | INTACT_EFFECT_UNKNOWN;
    int status = c->report.value;
    char code[CODE_MAX];
    char text[120];

    ASSERT(c->report.what == KEEPER_ENDED);
    if (WIFSIGNALED(status)) {
        (void)snprintf(code, sizeof code, "signal_%d", WTERMSIG(status));
        (void)snprintf(text, sizeof text, "the command was killed by signal %d (%s)",
                       WTERMSIG(status), strsignal(WTERMSIG(status)));
        conclude(v, unknown, code, text);
        return;
    }
    (void)snprintf(code, sizeof code, "exit_%d", WEXITSTATUS(status));
    (void)snprintf(text, sizeof text, "the command ended with status %d", WEXITSTATUS(status));
    conclude(v, flags_of(WEXITSTATUS(status)), code, text);
}

static void judge_failure(const struct command *c, struct verdict *v)
{
    char text[200];

    ASSERT(c->report.what == KEEPER_NOT_RUN);
    (void)snprintf(text, sizeof text, "the command could not be run: %.15s: %s", c->report.stage,
                   strerror(c->report.value));
    conclude(v, INTACT_RETRYABLE | INTACT_EFFECT_NONE, "cannot_run", text);
}

/* The error that it reports itself takes precedence over its status. */
static void read_own_error(const struct command *c, struct verdict *v)
{
    CLEANUP(arena_fini) struct arena a = {0};
    struct json *j = NULL;

    if (c->output.len == 0 || c->output.overflow
        || json_parse(&a, buf_view(&c->output), &j, NULL) != ERR_OK)
        return;
    const struct json *e = json_get(j, "error");
    struct slice code = json_get_text(e, "code");
    struct slice message = json_get_text(e, "message");
    struct slice effect = json_get_text(e, "effect");
    struct slice resume = json_get_raw(e, "resume");
    bool is_retryable = json_get_bool(e, "retryable", v->flags & INTACT_RETRYABLE);
    if (code.len > 0) {
        CLEANUP(buf_fini) struct buf clean = {0};
        surroundings_clean(c, code, &clean);
        (void)snprintf(v->code, sizeof v->code, "%.*s",
                       SLICE_ARG(slice_cut(buf_view(&clean), CODE_MAX - 1)));
    }
    if (message.len > 0) {
        CLEANUP(buf_fini) struct buf clean = {0};
        surroundings_clean(c, message, &clean); /* first: half a secret is not found */
        buf_clear(&v->message);
        buf_slice(&v->message, slice_cut(buf_view(&clean), MESSAGE_MAX));
    }
    if (json_get(e, "retryable")) /* then the effect is as it is for such an error */
        v->flags = is_retryable ? INTACT_RETRYABLE : INTACT_PERMANENT;
    if (slice_is(effect, "none") || slice_is(effect, "unknown"))
        v->flags = (v->flags & INTACT_RETRYABLE)
                   | (slice_is(effect, "none") ? INTACT_EFFECT_NONE : INTACT_EFFECT_UNKNOWN);
    if (!duration_parse(json_get_text(e, "retry_after"), &v->after_ms))
        v->after_ms = 0;
    surroundings_clean_json(c, resume, &v->resume);
}

static void judge_interruption(const struct command *c, struct verdict *v)
{
    const unsigned unknown = INTACT_RETRYABLE | INTACT_EFFECT_UNKNOWN;

    switch (c->end) {
    case COMMAND_STOPPED:
        conclude(v, unknown, "stopped", "the command was told to stop, and ended");
        break;
    case COMMAND_OUT_OF_TIME:
        conclude(v, unknown, "out_of_time", "the command took longer than it may, and was ended");
        break;
    case COMMAND_FLOODS:
        conclude(v, INTACT_EFFECT_UNKNOWN, "output_too_long",
                 "the command's output was longer than it may be, and it was killed");
        break;
    case COMMAND_BY_ITSELF:
        conclude(v, unknown, "lost", "the command was killed together with its keeper");
        break;
    }
}

static bool is_killed(const struct command *c)
{
    return c->report.what == 0
           || (c->report.what == KEEPER_ENDED && WIFSIGNALED(c->report.value)
               && c->end != COMMAND_BY_ITSELF);
}

static void judge(const struct command *c, struct verdict *v)
{
    if (c->report.what == KEEPER_NOT_RUN) {
        judge_failure(c, v);
        return;
    }
    if (is_killed(c) || c->end == COMMAND_FLOODS) {
        judge_interruption(c, v);
        add_tail(c, &v->message);
        return;
    }
    judge_end(c, v); /* also one that was terminated, and answered */
    add_tail(c, &v->message);
    read_own_error(c, v);
}

/* False: there are no secrets, or it is no sound JSON, which the library refuses. */
static bool hide_in_json(const struct command *c, struct slice out, struct buf *ret)
{
    CLEANUP(arena_fini) struct arena a = {0};
    struct json *j = NULL;

    if (c->secrets.count == 0 || json_parse(&a, out, &j, NULL) != ERR_OK)
        return false;
    surroundings_clean_json(c, out, ret);
    return true;
}

/* What is stored as the output is read by many. */
static void complete(struct command *c)
{
    CLEANUP(buf_fini) struct buf text = {0};
    CLEANUP(buf_fini) struct buf hidden = {0};
    struct slice out = buf_view(&c->output);

    if (c->what->output == EXEC_TEXT) {
        while (out.len > 0 && (out.ptr[out.len - 1] == '\n' || out.ptr[out.len - 1] == '\r'))
            out.len--;
        surroundings_hide(c, out, &hidden);
        json_string(&text, buf_view(&hidden));
        intact_answer(c->request, text.ptr);
        return;
    }
    if (out.len > 0 && memchr(out.ptr, 0, out.len)) { /* what follows it would be lost */
        intact_answer_error(c->request, "output_not_json", "the command's output has a NUL in it",
                            INTACT_PERMANENT | INTACT_EFFECT_UNKNOWN);
        return;
    }
    size_t blank = strspn(out.ptr, " \t\r\n");
    if (blank < out.len && hide_in_json(c, out, &hidden))
        out = buf_view(&hidden);
    intact_answer(c->request, blank == out.len ? NULL : out.ptr);
}

void outcome_answer(struct command *c, char ret_code[64])
{
    struct verdict v = {0};

    ASSERT(c->is_over && c->request);
    ret_code[0] = 0;
    if (c->report.what == KEEPER_ENDED && WIFEXITED(c->report.value)
        && WEXITSTATUS(c->report.value) == 0 && c->end != COMMAND_FLOODS) {
        complete(c);
        return;
    }
    judge(c, &v);
    ASSERT(!(v.flags & INTACT_EFFECT_NONE) || !(v.flags & INTACT_EFFECT_UNKNOWN));
    (void)snprintf(ret_code, CODE_MAX, "%s", v.code);
    intact_answer_error_resume(c->request, v.code, v.message.ptr, v.flags, v.after_ms,
                               v.resume.len > 0 ? v.resume.ptr : NULL);
    buf_fini(&v.message);
    buf_fini(&v.resume);
}

void outcome_not_started(struct intact_request *r, const char *why)
{
    CLEANUP(buf_fini) struct buf message = {0};

    buf_fmt(&message, "the command could not be run: %s", why);
    intact_answer_error(r, "cannot_run", message.ptr, INTACT_RETRYABLE | INTACT_EFFECT_NONE);
}
