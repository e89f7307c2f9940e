/* Random expressions, evaluated by Intact and by jq 1.6: the same values in the same order, or a
 * failure of both. generate.c makes them. Usage: against-jq [--seed N] [--cases N] [--verbose];
 * exit status 77 without jq 1.6. */

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "definition/expression/expression.h"
#include "generate.h"

enum { BATCH = 80 };

struct one {
    struct buf text, input;
    bool has_failed; /* for us */
    struct buf value;
    struct buf why;
};

struct counts {
    uint64_t cases, values, failures, skipped, apart;
};

static void one_fini(struct one *c)
{
    buf_fini(&c->text);
    buf_fini(&c->input);
    buf_fini(&c->value);
    buf_fini(&c->why);
}

/* ---- ours ---- */

/* What says more about our limits than about the language; and an object as an index, which jq
 * takes for a slice. */
static bool is_limit(const char *why)
{
    static const char *const words[] = {" steps",      " bytes",
                                        "64 bits",     "too large",
                                        "too deeply",  "too long",
                                        "with object", "be parsed as a number"};

    for (size_t i = 0; i < COUNT_OF(words); i++)
        if (strstr(why, words[i]))
            return true;
    return false;
}

/* False: not to be compared. */
static bool evaluate(struct one *c)
{
    CLEANUP(arena_fini) struct arena a = {0};
    CLEANUP(buf_fini) struct buf text = {0};
    struct expression *x = NULL;
    const struct json *j = NULL;
    struct json *input = NULL;
    struct error e = {0};
    size_t column = 0;

    buf_fmt(&text, "[%.*s]", SLICE_ARG(buf_view(&c->text)));
    enum err err = json_parse(&a, buf_view(&c->input), &input, NULL);
    ASSERT(err == ERR_OK);
    if (expression_compile(buf_view(&text), &a, &x, &column, &e) != ERR_OK) {
        if (is_limit(e.text))
            return false;
        (void)fprintf(stderr, "the generator made %s\ncolumn %zu: %s\n", text.ptr, column, e.text);
        exit(1);
    }
    c->has_failed = expression_eval(x, input, &a, &j, &e) != ERR_OK;
    if (c->has_failed)
        buf_str(&c->why, e.text);
    else
        buf_slice(&c->value, j->raw);
    return !c->has_failed || !is_limit(e.text);
}

/* ---- jq's ---- */

static void write_file(char path[32], struct one *const *cases, size_t count)
{
    (void)snprintf(path, 32, "/tmp/against-jq-XXXXXX");
    int fd = mkstemp(path);
    FILE *f = fd >= 0 ? fdopen(fd, "w") : NULL;

    ASSERT(f);
    for (size_t i = 0; i < count; i++)
        (void)fprintf(f, "%s(%s | try [%s] catch \"failed\")\n", i ? "," : "", cases[i]->input.ptr,
                      cases[i]->text.ptr);
    (void)fclose(f);
}

/* Lines of jq for so many cases; false: it did not take the program. */
static bool ask_jq(struct one *const *cases, size_t count, struct buf *answers)
{
    char path[32];
    char command[100];
    char some[4096];
    size_t len = 0;

    write_file(path, cases, count);
    (void)snprintf(command, sizeof command, "timeout 10 jq -nc -f %s 2>%s.err", path, path);
    FILE *out = popen(command, "r");
    ASSERT(out);
    while ((len = fread(some, 1, sizeof some, out)) > 0)
        buf_add(answers, some, len);
    int status = pclose(out);
    (void)unlink(path);
    (void)snprintf(some, sizeof some, "%s.err", path);
    (void)unlink(some);
    return status == 0;
}

/* ---- are they the same? ---- */

static double number(const struct json *j)
{
    char text[64];

    (void)snprintf(text, sizeof text, "%.*s", SLICE_ARG(slice_cut(j->text, sizeof text - 1)));
    return strtod(text, NULL);
}

static bool same(const struct json *a, const struct json *b)
{
    if (a->type != b->type || a->count != b->count)
        return false;
    if (a->type == JSON_NUMBER)
        return number(a) == number(b);
    if (a->type == JSON_STRING)
        return slice_eq(a->text, b->text);
    const struct json *y = b->child;
    for (const struct json *x = a->child; x; x = x->next, y = y->next)
        if (!slice_eq(x->key, y->key) || !same(x, y))
            return false;
    return true;
}

/* Without the minus signs: jq's "-0" is our "0", as a number and in texts. */
static void drop_minus(struct buf *b)
{
    size_t to = 0;

    for (size_t i = 0; i < b->len; i++)
        if (b->ptr[i] != '-')
            b->ptr[to++] = b->ptr[i];
    b->len = to;
}

static bool is_same(struct one *c, const char *line, size_t len)
{
    CLEANUP(arena_fini) struct arena a = {0};
    CLEANUP(buf_fini) struct buf theirs = {0};
    struct json *x = NULL;
    struct json *y = NULL;

    if (line[0] == '"')
        return c->has_failed;
    if (c->has_failed)
        return false;
    buf_add(&theirs, line, len);
    if (memmem(line, len, "-0", 2)) {
        drop_minus(&theirs);
        drop_minus(&c->value);
    }
    return json_parse(&a, buf_view(&c->value), &x, NULL) == ERR_OK
           && json_parse(&a, buf_view(&theirs), &y, NULL) == ERR_OK && same(x, y);
}

static void judge(struct one *c, const char *line, size_t len, struct counts *n, bool is_verbose)
{
    n->cases++;
    n->failures += c->has_failed;
    n->values += !c->has_failed;
    if (is_verbose)
        printf("%s\t%s\t%.*s\n", c->input.ptr, c->text.ptr, (int)len, line);
    if (is_same(c, line, len))
        return;
    n->apart++;
    printf("expression: %s\ninput:      %s\nours:       %.*s%s%s\njq:         %.*s\n\n",
           c->text.ptr, c->input.ptr, SLICE_ARG(buf_view(&c->value)),
           c->has_failed ? "failed: " : "", c->why.ptr ? c->why.ptr : "", (int)len, line);
}

static void judge_all(struct one *const *cases, size_t count, struct counts *n, bool is_verbose)
{
    CLEANUP(buf_fini) struct buf answers = {0};

    if (!ask_jq(cases, count, &answers)) {
        if (count == 1) { /* does not compile, or crashes: it fails */
            judge(cases[0], "\"failed\"", 8, n, is_verbose);
            return;
        }
        judge_all(cases, count / 2, n, is_verbose);
        judge_all(cases + count / 2, count - count / 2, n, is_verbose);
        return;
    }
    const char *line = buf_view(&answers).ptr;
    for (size_t i = 0; i < count; i++) {
        size_t len = strcspn(line, "\n");
        judge(cases[i], line, len, n, is_verbose);
        line += len + (line[len] == '\n');
    }
}

static void batch(struct prng *p, size_t count, struct counts *n, bool is_verbose)
{
    struct one all[BATCH] = {0};
    struct one *cases[BATCH];
    size_t compared = 0;

    ASSERT(count <= BATCH);
    for (size_t i = 0; i < count; i++) {
        generate_input(p, &all[i].input);
        generate_expression(p, &all[i].text);
        if (evaluate(&all[i]))
            cases[compared++] = &all[i];
        else
            n->skipped++;
    }
    if (compared > 0)
        judge_all(cases, compared, n, is_verbose);
    for (size_t i = 0; i < count; i++)
        one_fini(&all[i]);
}

int main(int argc, char **argv)
{
    struct prng p = {1};
    struct counts n = {0};
    uint64_t wanted = 2000;
    bool is_verbose = false;

    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--verbose") == 0)
            is_verbose = true;
        else if (i + 1 < argc && strcmp(argv[i], "--seed") == 0)
            p.state = strtoull(argv[++i], NULL, 10);
        else if (i + 1 < argc && strcmp(argv[i], "--cases") == 0)
            wanted = strtoull(argv[++i], NULL, 10);
        else
            return 2;
    }
    (void)setvbuf(stdout, NULL, _IOLBF, 0);
    if (system("jq --version 2>/dev/null | grep -q '^jq-1.6'") != 0)
        return 77;
    for (uint64_t left = wanted; left > 0;) {
        size_t count = left < BATCH ? (size_t)left : BATCH;
        batch(&p, count, &n, is_verbose);
        left -= count;
    }
    printf("%" PRIu64 " cases, %" PRIu64 " values, %" PRIu64 " failures, %" PRIu64
           " not compared, %" PRIu64 " apart\n",
           n.cases, n.values, n.failures, n.skipped, n.apart);
    return n.apart > 0 || n.values < wanted / 4;
}
