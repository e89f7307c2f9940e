/* Expressions: results, mistakes, comparison with jq if it is installed, any bytes, exact
 * numbers, and the tables of docs/expressions.md. The cases are in expression_cases.h and
 * expression_mistakes.h. */
#include "base/test.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/prng.h"
#include "definition/expression/expression.h"
#include "definition/expression/expression_cases.h"
#include "definition/expression/expression_mistakes.h"

static const struct json *parsed(struct arena *a, const char *text)
{
    struct json *j = NULL;
    struct json_fault f = {0};

    CHECK(json_parse(a, slice_of(text), &j, &f) == ERR_OK, "%s: %s", text, f.what);
    return j;
}

static enum err evaluate(struct arena *a, const char *text, const char *input,
                         const struct json **ret, struct error *e)
{
    struct expression *x = NULL;
    size_t column = 0;

    CHECK(expression_compile(slice_of(text), a, &x, &column, e) == ERR_OK, "%s: column %zu: %s",
          text, column, e->text);
    return expression_eval(x, parsed(a, input), a, ret, e);
}

static void an_expression_gives_what_the_table_says(void **state)
{
    (void)state;
    assert_true(COUNT_OF(cases) >= 500);
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        const struct expression_case *c = &cases[i];
        CLEANUP(arena_fini) struct arena a = {0};
        const struct json *j = NULL;
        struct error e = {0};
        enum err err = evaluate(&a, c->text, c->input, &j, &e);
        if (c->result[0] == '!') {
            CHECK(err == ERR_INVALID, "%s gives %.*s", c->text, SLICE_ARG(j->raw));
            CHECK(strstr(e.text, c->result + 1), "%s: %s", c->text, e.text);
            continue;
        }
        CHECK(err == ERR_OK, "%s: %s", c->text, e.text);
        CHECK(slice_is(j->raw, c->result) || json_hash(j) == json_hash(parsed(&a, c->result)),
              "%s gives %.*s", c->text, SLICE_ARG(j->raw));
        (void)parsed(&a, arena_copy(&a, j->raw).ptr); /* the result is valid JSON */
    }
}

static void numbers_are_written_as_jq_does_and_passed_on_as_they_are(void **state)
{
    static const struct {
        const char *text, *result;
    } exact[] = {
        {"[1e16+0.0, 1e15+0.0, 1.5e16+0, 1e17*1.0, 1.25e17+0]",
         "[1e+16,1000000000000000,15000000000000000,1e+17,125000000000000000]"},
        {"[1e-4+0, 1e-5+0, 1.25e-5*1, 2.5e-7+0]", "[0.0001,1e-05,1.25e-05,2.5e-07]"},
        {"[-0.5+0, 1.5*2, 100*1.0, 123.456+0, 5e-324*1]", "[-0.5,3,100,123.456,5e-324]"},
        {"[1.50, 1E2, 0.10, -0]", "[1.50,1E2,0.10,-0]"},
        {"[1, 1.0] | [min, max]", "[1,1.0]"},
        {"[1.0, 1] | unique", "[1.0]"},
        {"[2, 1, 1.0, 2.0] | sort", "[1,1.0,2,2.0]"},
    };
    (void)state;
    for (size_t i = 0; i < COUNT_OF(exact); i++) {
        CLEANUP(arena_fini) struct arena a = {0};
        const struct json *j = NULL;
        struct error e = {0};
        CHECK(evaluate(&a, exact[i].text, "null", &j, &e) == ERR_OK, "%s: %s", exact[i].text,
              e.text);
        CHECK(slice_is(j->raw, exact[i].result), "%s gives %.*s", exact[i].text, SLICE_ARG(j->raw));
    }
}

static void what_is_no_expression_is_refused_at_its_column(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(mistakes); i++) {
        const struct mistake_case *c = &mistakes[i];
        CLEANUP(arena_fini) struct arena a = {0};
        struct expression *x = NULL;
        struct error e = {0};
        size_t column = 0;
        CHECK(expression_compile(slice_of(c->text), &a, &x, &column, &e) == ERR_INVALID, "%s",
              c->text);
        CHECK(!x, "%s", c->text);
        CHECK(column == c->column, "%s: column %zu: %s", c->text, column, e.text);
        CHECK(strstr(e.text, c->what), "%s: %s", c->text, e.text);
    }
}

static void a_failure_names_its_column(void **state)
{
    static const struct {
        const char *text;
        const char *story;
    } at[] = {
        {".a.b", "column 3: cannot index number with \"b\""},
        {"1 + (2 | .x)", "column 10: cannot index number with \"x\""},
        {"[1, \"a\" * {}]", "column 9: string (\"a\") and object ({}) cannot be multiplied"},
        {".a | keys", "column 6: number (1) has no keys"},
        {"map(1)[0] | map(.)", "column 13: cannot iterate over number (1)"},
        {"\"x\\(.a.b)\"", "column 7: cannot index number with \"b\""},
        {"{a: (1 | length + {})}", "column 17: number (1) and object ({}) cannot be added"},
    };
    (void)state;
    for (size_t i = 0; i < COUNT_OF(at); i++) {
        CLEANUP(arena_fini) struct arena a = {0};
        const struct json *j = NULL;
        struct error e = {0};
        CHECK(evaluate(&a, at[i].text, "{\"a\":1}", &j, &e) == ERR_INVALID, "%s", at[i].text);
        CHECK(strcmp(e.text, at[i].story) == 0, "%s: %s", at[i].text, e.text);
    }
}

/* ---- against jq ---- */

static void write_program(FILE *f)
{
    for (size_t i = 0; i < COUNT_OF(cases); i++)
        if (!cases[i].no_jq)
            fprintf(f, "%s(try [%s | %s] catch \"failed\")", i ? ",\n" : "", cases[i].input,
                    cases[i].text);
}

/* Runs jq on all cases at once and removes the file. */
static void ask_jq(struct buf *answers)
{
    char program[] = "/tmp/expressions-XXXXXX";
    char command[200];
    char line[4096];
    int fd = mkstemp(program);
    FILE *f = fd >= 0 ? fdopen(fd, "w") : NULL;

    assert_non_null(f);
    write_program(f);
    assert_int_equal(fclose(f), 0);
    (void)snprintf(command, sizeof command, "jq -nc -f %s", program);
    FILE *out = popen(command, "r");
    assert_non_null(out);
    while (fgets(line, sizeof line, out))
        buf_str(answers, line);
    int status = pclose(out);
    assert_int_equal(unlink(program), 0);
    assert_int_equal(status, 0);
}

static void jq_says_the_same(void **state)
{
    CLEANUP(buf_fini) struct buf answers = {0};
    (void)state;

    if (system("jq --version 2>/dev/null | grep -q '^jq-1.6'") != 0) {
        print_message("jq 1.6 is not installed: skipped\n");
        skip();
    }
    ask_jq(&answers);
    char *line = answers.ptr;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        const struct expression_case *c = &cases[i];
        CLEANUP(arena_fini) struct arena a = {0};
        if (c->no_jq)
            continue;
        CHECK(line && *line, "%s: jq says nothing more", c->text);
        size_t len = strcspn(line, "\n");
        line[len] = 0;
        const struct json *j = parsed(&a, line);
        if (c->result[0] == '!')
            CHECK(j->type == JSON_STRING, "%s: jq says %s", c->text, line);
        else
            CHECK(j->count == 1 && json_hash(j->child) == json_hash(parsed(&a, c->result)),
                  "%s: jq says %s", c->text, line);
        line += len + 1;
    }
    CHECK(*line == 0, "jq says more: %s", line);
}

/* ---- any bytes ---- */

static void try_bytes(const char *ptr, size_t len)
{
    CLEANUP(arena_fini) struct arena a = {0};
    char *copy = malloc(len ? len : 1); /* exact size: the sanitizer finds reads beyond the end */
    struct expression *x = NULL;
    const struct json *j = NULL;
    struct error e = {0};
    size_t column = 0;

    assert_non_null(copy);
    memcpy(copy, ptr, len);
    if (expression_compile((struct slice){copy, len}, &a, &x, &column, &e) != ERR_OK)
        CHECK(column >= 1 && column <= len + 1, "%.*s: column %zu", (int)len, ptr, column);
    else if (expression_eval(x, parsed(&a, "{\"a\":[1,{\"b\":\"x\"}],\"b\":2.5}"), &a, &j, &e)
             == ERR_OK)
        CHECK(j->raw.ptr, "%.*s", (int)len, ptr);
    free(copy);
}

static void no_bytes_break_it(void **state)
{
    static const char *const bits[] = {
        ".",    ".a",      ".b",         "[",    "]",    "{",        "}",      "(",     ")",
        "|",    ",",       ":",          ";",    "?",    "+",        "-",      "*",     "/",
        "%",    "//",      "==",         "<",    "\"",   "\\(",      "\\",     "1",     "0.5",
        "1e9",  "and",     "or",         "not",  "if ",  " then ",   " else ", " end",  "elif ",
        "map(", "select(", "length",     "keys", "add",  "first(",   "error",  "empty", "\xc3\xa9",
        "a",    " ",       "null",       "true", "sort", "tostring", "$",      "@",     "[]",
        "[0]",  "any(",    "join(\"\")", ".[]",
    };
    struct prng p = {5};
    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++)
        for (size_t len = 0; len <= strlen(cases[i].text); len++)
            try_bytes(cases[i].text, len);
    for (int i = 0; i < 20000; i++) {
        CLEANUP(buf_fini) struct buf b = {0};
        for (uint32_t n = prng_below(&p, 12); n > 0; n--)
            buf_str(&b, bits[prng_below(&p, COUNT_OF(bits))]);
        try_bytes(buf_view(&b).ptr, b.len);
    }
    for (int i = 0; i < 20000; i++) {
        const char *text = cases[prng_below(&p, COUNT_OF(cases))].text;
        char copy[256];
        size_t len = strlen(text);
        if (len == 0 || len >= sizeof copy)
            continue;
        memcpy(copy, text, len);
        copy[prng_below(&p, (uint32_t)len)] = (char)prng_below(&p, 256);
        try_bytes(copy, len);
    }
}

/* ---- the manual ---- */

static const char *manual; /* the path of docs/expressions.md */
static const char *more; /* that of expression_examples.md: those that the manual can do without */

/* The next cell of a table row: up to a "|" that is not escaped, without blanks and backquotes. */
static char *next_cell(char **row)
{
    char *cell = *row;
    char *to = cell;
    char *from = cell;

    while (*from && *from != '|') {
        if (from[0] == '\\' && from[1] == '|')
            from++;
        *to++ = *from++;
    }
    *row = *from ? from + 1 : from;
    *to = 0;
    while (to > cell && (to[-1] == ' ' || to[-1] == '`'))
        *--to = 0;
    while (*cell == ' ' || *cell == '`')
        cell++;
    return cell;
}

static bool check_row(char *row, size_t number)
{
    CLEANUP(arena_fini) struct arena a = {0};
    const struct json *j = NULL;
    struct error e = {0};

    if (strncmp(row, "| `", 3) != 0)
        return false;
    row++;
    row[strcspn(row, "\n")] = 0;
    const char *text = next_cell(&row);
    const char *input = next_cell(&row);
    const char *result = next_cell(&row);
    if (input[0] == 0 || result[0] == 0)
        return false; /* another table */
    enum err err = evaluate(&a, text, input, &j, &e);
    if (strncmp(result, "error: ", 7) == 0) {
        CHECK(err == ERR_INVALID && strstr(e.text, result + 7), "line %zu: %s: %s", number, text,
              e.text);
        return true;
    }
    CHECK(err == ERR_OK, "line %zu: %s: %s", number, text, e.text);
    CHECK(json_hash(j) == json_hash(parsed(&a, result)), "line %zu: %s gives %.*s", number, text,
          SLICE_ARG(j->raw));
    return true;
}

static size_t check_rows(const char *path)
{
    FILE *f = fopen(path, "r");
    char line[1024];
    size_t number = 0;
    size_t examples = 0;

    CHECK(f, "%s", path);
    while (fgets(line, sizeof line, f))
        examples += check_row(line, ++number);
    (void)fclose(f);
    return examples;
}

static void every_example_of_the_manual_is_true(void **state)
{
    (void)state;
    CHECK(check_rows(manual) >= 50, "%s has few examples", manual);
    CHECK(check_rows(more) >= 120, "%s has few examples", more);
}

/* A decimal as people write it: with few digits or many, large or small. */
static void random_decimal(struct prng *p, char *to, size_t size)
{
    double v = 0;
    uint64_t bits = prng_next(p);

    if (prng_chance(p, 60)) {
        uint64_t limit = (uint64_t)pow(10, 1 + prng_below(p, 17));
        double value = (double)(bits % limit) / pow(10, prng_below(p, 16));
        int digits = 1 + (int)prng_below(p, 9);
        (void)snprintf(to, size, "%s%.*f", prng_chance(p, 20) ? "-" : "", digits, value);
        return;
    }
    memcpy(&v, &bits, sizeof v);
    if (!isfinite(v))
        v = 1e300;
    if (prng_chance(p, 50))
        v = ldexp(frexp(v, &(int){0}), (int)prng_below(p, 120) - 60);
    (void)snprintf(to, size, "%.*e", (int)prng_below(p, 17), v);
}

/* The number of significant digits: without leading and trailing zeros. */
static size_t digits_in(const char *text)
{
    size_t count = 0;
    size_t zeros = 0;

    for (; *text && *text != 'e'; text++) {
        if (*text < '0' || *text > '9' || (*text == '0' && count == 0))
            continue;
        zeros = *text == '0' ? zeros + 1 : 0;
        count++;
    }
    return count - zeros;
}

/* Numbers with few digits bypass strtod and printf and must have the same value and text. */
static void a_double_is_read_and_written_to_its_last_digit(void **state)
{
    struct prng p = {21};
    size_t tried = 0;
    (void)state;
    for (int i = 0; i < 20000; i++) {
        CLEANUP(arena_fini) struct arena a = {0};
        char text[80];
        char shortest[40];
        const struct json *j = NULL;
        struct error e = {0};
        random_decimal(&p, text, sizeof text);
        if (evaluate(&a, ". * 1.0", text, &j, &e) != ERR_OK) {
            CHECK(digits_in(text) > 15 || strchr(text, 'e'), "%s: %s", text, e.text);
            continue;
        }
        tried++;
        double v = strtod(text, NULL);
        int precision = 0;
        do
            (void)snprintf(shortest, sizeof shortest, "%.*e", precision, v);
        while (strtod(shortest, NULL) != v && ++precision < 17);
        const char *got = arena_copy(&a, j->raw).ptr;
        CHECK(strtod(got, NULL) == v, "%s became %s", text, got);
        /* jq prints more digits than needed for tiny numbers and beyond 2^53 */
        bool is_usual = fabs(v) >= 2.3e-308 && fabs(v) < 9e15;
        CHECK(!is_usual || digits_in(got) == digits_in(shortest), "%s became %s, not %s", text, got,
              shortest);
    }
    CHECK(tried > 10000, "%zu", tried);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_expression_gives_what_the_table_says),
        cmocka_unit_test(numbers_are_written_as_jq_does_and_passed_on_as_they_are),
        cmocka_unit_test(what_is_no_expression_is_refused_at_its_column),
        cmocka_unit_test(a_failure_names_its_column),
        cmocka_unit_test(jq_says_the_same),
        cmocka_unit_test(a_double_is_read_and_written_to_its_last_digit),
        cmocka_unit_test(no_bytes_break_it),
        cmocka_unit_test(every_example_of_the_manual_is_true),
    };

    manual = argc > 1 ? argv[1] : "docs/expressions.md";
    more = argc > 2 ? argv[2] : "src/definition/expression/expression_examples.md";
    return cmocka_run_group_tests(tests, NULL, NULL);
}
