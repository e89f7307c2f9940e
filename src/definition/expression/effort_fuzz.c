/* Fuzz target that searches for expressions whose steps cost more than MACHINE_WORK_MAX allows,
 * as counted by effort.c: bytes select an expression and the value on which it is evaluated. */

#include "base/fuzz.h"

#include <stdio.h>

#include "definition/expression/effort.h"
#include "definition/expression/node.h"
#include "definition/function/list.h"

/*
 * The bytes select an expression. It is evaluated once on values read from a recorded text, then
 * repeatedly on large strings and arrays until its budget is spent. No step may cost more than
 * MACHINE_WORK_MAX (effort.h). An input with a more expensive step than all before is kept as if it
 * had reached new code, which directs the search towards expensive expressions.
 */

/* libFuzzer treats each counter here that is set for the first time as new coverage. */
static uint8_t rates[MACHINE_WORK_MAX + 1] __attribute__((section("__libfuzzer_extra_counters")));

struct writer {
    struct fuzz *bytes;
    struct buf *out;
    int depth;
};

static const struct {
    const char *name;
    uint32_t args;
} functions[] = {
#define ANY(name, count, fn) {name, count},
    FUNCTION_LIST(ANY, ANY, ANY)
#undef ANY
};

static const char *const inputs[] = {".quotes",  ".plain",   ".accents", ".controls", ".json",
                                     ".many",    ".nulls",   ".texts",   ".mixed",    ".decimals",
                                     ".lists",   ".objects", ".entries", ".object",   ".digits",
                                     ".decimal", ".far",     ".tiny",    ".long",     ".n",
                                     ".deep",    "."};

static const char *const literals[] = {"1",
                                       "0",
                                       "-1",
                                       "0.1",
                                       "1e300",
                                       "1e-310",
                                       "\"\"",
                                       "\"a\"",
                                       "\"baa\"",
                                       "\"name99999\"",
                                       "null",
                                       "[]",
                                       "[1]",
                                       "{}",
                                       "{a:1}",
                                       "\"\\\"\" * 9999",
                                       "\"a\" * 99999",
                                       "99999"};

static const char *const operators[] = {"+", "-",  "*",   "/",  "%", "==",
                                        "<", "//", "and", "or", ",", "|"};

/* Paths into the recorded text. */
static const char *const looks[] = {".input",
                                    ".input.nothing",
                                    ".input.quotes",
                                    ".input.plain",
                                    ".input.accents",
                                    ".input.controls",
                                    ".input.many",
                                    ".input.texts",
                                    ".input.decimals",
                                    ".input.lists",
                                    ".input.objects",
                                    ".input.object",
                                    ".input.digits",
                                    ".input.deep",
                                    ".input.brackets",
                                    ".input.spaces",
                                    ".input.empties",
                                    ".input.names",
                                    ".input.slashes",
                                    ".input.names.nothing",
                                    ".input.n",
                                    ".input.names.a01999.a",
                                    ".input.object.nothing",
                                    ".input.plain.a",
                                    "[.input.object.a, .input.object.b, .input.object.name00000]"};

#define PICK(w, list) (list)[fuzz_byte((w)->bytes) % COUNT_OF(list)]

static void expression(struct writer *w);

static void in_two(struct writer *w, const char *before, const char *between, const char *after)
{
    buf_str(w->out, before);
    expression(w);
    buf_str(w->out, between);
    expression(w);
    buf_str(w->out, after);
}

static void in_one(struct writer *w, const char *before, const char *after)
{
    buf_str(w->out, before);
    expression(w);
    buf_str(w->out, after);
}

static void call(struct writer *w)
{
    size_t i = fuzz_byte(w->bytes) % COUNT_OF(functions);

    buf_str(w->out, functions[i].name);
    for (uint32_t k = 0; k < functions[i].args; k++)
        in_one(w, k ? ";" : "(", k + 1 < functions[i].args ? "" : ")");
}

static void operation(struct writer *w)
{
    buf_byte(w->out, '(');
    expression(w);
    buf_fmt(w->out, " %s ", PICK(w, operators));
    expression(w);
    buf_byte(w->out, ')');
}

/* Writes an expression no longer than its bytes. Beyond their end every term is `.`. */
static void expression(struct writer *w)
{
    if (w->depth > 12 || w->bytes->left == 0) {
        buf_byte(w->out, '.');
        return;
    }
    w->depth++;
    switch (fuzz_byte(w->bytes) % 13) {
    case 0:
    case 1:
    case 2:
        call(w);
        break;
    case 3:
    case 4:
        operation(w);
        break;
    case 5:
        buf_str(w->out, PICK(w, inputs));
        break;
    case 6:
        buf_str(w->out, PICK(w, literals));
        break;
    case 7:
        in_one(w, "(", ")?");
        break;
    case 8:
        in_one(w, "[", "]");
        break;
    case 9:
        buf_str(w->out, ".[]");
        break;
    case 10:
        in_two(w, "{(", "): ", "}");
        break;
    case 11:
        in_two(w, "\"\\(", ")\\(", ")\"");
        break;
    default:
        in_two(w, ".[", ":", "]");
    }
    w->depth--;
}

static void must_be_paid(const struct effort *effort, const char *text)
{
    size_t rate = effort_rate(effort);

    if (rate > MACHINE_WORK_MAX)
        (void)fprintf(stderr, "%zu blocks for each step: %s\n", rate, text);
    ASSERT(rate <= MACHINE_WORK_MAX);
    rates[rate] = 1;
}

/* The last byte selects the path that is read; the same expression is evaluated on it. */
static void from_the_root(const uint8_t *bytes, size_t len, struct slice recorded)
{
    CLEANUP(buf_fini) struct buf text = {0};
    struct fuzz f = {bytes, len > 0 ? len - 1 : 0};
    struct writer w = {&f, &text, 0};
    struct effort effort;

    (void)fuzz_byte(&f);
    buf_fmt(&text, "%s | (", looks[len > 0 ? bytes[len - 1] % COUNT_OF(looks) : 0]);
    expression(&w);
    buf_str(&text, ")?");
    if (effort_take_recorded(text.ptr, recorded, &effort))
        must_be_paid(&effort, text.ptr);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    static struct arena kept; /* the document is the same for all inputs */
    static const struct json *document;
    static struct slice recorded;
    CLEANUP(buf_fini) struct buf text = {0};
    struct fuzz f = {bytes, len};
    struct writer w = {&f, &text, 0};
    struct effort effort;

    if (!document) {
        document = effort_document(&kept);
        recorded = effort_recorded(&kept);
    }
    from_the_root(bytes, len, recorded);
    buf_fmt(&text, "[%s | select(range(1000000000) >= 0) | (", PICK(&w, inputs));
    expression(&w);
    buf_str(&text, ")? | empty]");
    if (!effort_take(text.ptr, document, &effort))
        return 0; /* too long, or nested too deeply */
    must_be_paid(&effort, text.ptr);
    return 0;
}
