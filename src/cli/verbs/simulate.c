/* `intact simulate`: plays a workflow among faults (src/simulation) without a server, and tells
 * every end that it can reach. */

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/log.h"
#include "cli/client/client.h"
#include "cli/client/mistakes.h"
#include "cli/terminal/print.h"
#include "cli/verbs.h"
#include "cli/verbs/test_files.h"
#include "simulation/bare.h"
#include "simulation/keep.h"
#include "simulation/search.h"

enum { FAULTS_MAX = JOB_FAULTS_MAX, RUNS_MAX = 100000000, RUNS_MAX_USUAL = 500000, JOBS_MAX = 256 };

/* What the command line says. */
struct wishes {
    struct search search;
    int64_t runs_max;
    int64_t jobs;
    int64_t end; /* which one is to be kept; 0: none */
    bool all;    /* exhaustive */
};

/* ---- the file ---- */

static struct definition *read_definition(const char *file)
{
    struct mistakes *mistakes = calloc(1, sizeof *mistakes); /* too large for the stack */
    CLEANUP(buf_fini) struct buf text = {0};
    struct definition *d = NULL;

    ASSERT(mistakes);
    if (client_read_file(file, &text)
        && definition_parse(buf_view(&text), format_of_file(file), &d, mistakes, NULL) != ERR_OK)
        mistakes_print(file, "error", mistakes);
    free(mistakes);
    return d;
}

static struct suite *load_bare(const char *file, struct slice input)
{
    CLEANUP(buf_fini) struct buf made = {0};
    const char *slash = strrchr(file, '/');

    struct definition *d = read_definition(file);
    if (!d)
        return NULL;
    bare_write(&made, d, slash ? slash + 1 : file, input);
    definition_free(d);
    return test_text_load(file, buf_view(&made));
}

static struct suite *load(const struct invocation *in, const char *file)
{
    CLEANUP(arena_fini) struct arena a = {0};
    const char *input = given(in, "input");
    struct json_fault fault;
    struct json *j = NULL;

    if (test_file_is(file)) {
        if (input)
            (void)verb_misused(in, "--input is for a definition; the tests of %s have inputs",
                               file);
        return input ? NULL : test_file_load(file, NULL);
    }
    struct slice text = slice_of(input ? input : "null");
    if (json_parse_within(&a, text, JSON_DEPTH_OUTSIDE, &j, &fault) != ERR_OK) {
        (void)verb_misused(in, "--input, column %u: %s", fault.column, fault.what);
        return NULL;
    }
    return load_bare(file, text);
}

/* ---- the command line ---- */

static bool add_rules(const struct invocation *in, struct rules *r, const char *flag)
{
    const char *text = NULL;

    for (size_t at = 0; (text = given_next(in, flag, &at));) {
        struct error e = {0};
        size_t column = 0;
        if (rules_add(r, strcmp(flag, "always") == 0, slice_of(text), &column, &e) == ERR_OK)
            continue;
        (void)verb_misused(in, "--%s, column %zu of \"%s\": %s", flag, column, text, e.text);
        return false;
    }
    return true;
}

static bool read_allowed(const struct invocation *in, unsigned *ret)
{
    const char *text = given(in, "allow");

    for (const char *p = text; p && *p;) {
        size_t len = strcspn(p, ",");
        unsigned bit = 0;
        for (int k = 0; k < FINDING_KINDS; k++) {
            const char *word = finding_word((enum finding_kind)k);
            if (strlen(word) == len && strncmp(word, p, len) == 0)
                bit = 1U << k;
        }
        if (bit == 0) {
            (void)verb_misused(in, "--allow: there is no finding \"%.*s\"", (int)len, p);
            return false;
        }
        *ret |= bit;
        p += len + (p[len] == ',');
    }
    return true;
}

/* The processors that this program may use. */
static int64_t processors(void)
{
    cpu_set_t set;

    if (sched_getaffinity(0, sizeof set, &set) != 0)
        return 1; /* more than the set has room for: somebody who has them says --jobs */
    return min_i64(CPU_COUNT(&set), JOBS_MAX);
}

static bool read_wishes(const struct invocation *in, struct wishes *w)
{
    int64_t seed = 1;
    int64_t runs = 0;
    int64_t depth = 2;

    w->runs_max = RUNS_MAX_USUAL;
    w->jobs = processors();
    w->all = given(in, "exhaustive");
    if (!given_number(in, "seed", 0, INT64_MAX, &seed)
        || !given_number(in, "runs", 1, RUNS_MAX, &runs)
        || !given_number(in, "faults", 0, FAULTS_MAX, &depth)
        || !given_number(in, "runs-max", 1, RUNS_MAX, &w->runs_max)
        || !given_number(in, "jobs", 1, JOBS_MAX, &w->jobs)
        || !given_number(in, "end", 1, 1000000, &w->end))
        return false;
    w->search.seed = (uint64_t)seed;
    w->search.runs = (uint64_t)runs;
    w->search.depth = (unsigned)depth;
    if (w->all && given(in, "runs")) {
        (void)verb_misused(in, "--runs is not for --exhaustive, which plays all: see --runs-max");
        return false;
    }
    if (!w->all && given(in, "faults")) {
        (void)verb_misused(in, "--faults is for --exhaustive");
        return false;
    }
    if (w->end > 0 && !given(in, "keep-as")) {
        (void)verb_misused(in, "--end is for --keep-as");
        return false;
    }
    return true;
}

/* Tests that have faults themselves are stories that were kept. */
static bool choose_tests(const struct invocation *in, struct simulation *v)
{
    const char *name = given(in, "name");

    for (size_t i = 0; i < v->suite->test_count; i++) {
        const struct test_case *t = &v->suite->tests[i];
        if (t->faults.count == 0 && (!name || strstr(t->name, name)))
            v->tests[v->test_count++] = t;
    }
    if (v->test_count > 0)
        return true;
    if (name)
        (void)verb_failed(in, CLI_USAGE, "no test without faults has \"%s\" in its name", name);
    else
        (void)verb_failed(in, CLI_USAGE, "%s: all tests have faults", v->suite->file);
    return false;
}

/* ---- keeping a story ---- */

static bool choose_kept(const struct invocation *in, const struct simulation *v, int64_t end,
                        struct kept *ret)
{
    if (end > 0 && (uint64_t)end > v->end_count) {
        (void)verb_failed(in, CLI_USAGE, "--end %" PRId64 ": there are %zu ends", end,
                          v->end_count);
        return false;
    }
    if (end > 0) {
        const struct reached_end *e = v->ends[end - 1];
        *ret = (struct kept){&e->story, &e->end, false,
                             e->end.is_end ? task_state_text(e->end.state) : "does not end",
                             SLICE_NONE};
        return true;
    }
    for (size_t i = 0; i < v->finding_count; i++) {
        const struct finding *f = &v->findings[i];
        if (!f->story.test)
            continue;
        *ret = (struct kept){&f->story, &f->end, f->rule && f->rule->is_default,
                             finding_text(f->kind), SLICE_NONE};
        return true;
    }
    (void)fprintf(stderr,
                  "nothing is kept: there is no finding with a story; --end N keeps an end\n");
    return false;
}

/* The real path of the folder that a file is in, without a slash at its end; NULL: there is none.
 */
static char *folder_of(const char *file)
{
    CLEANUP(buf_fini) struct buf folder = {0};
    const char *slash = strrchr(file, '/');

    buf_add(&folder, slash ? file : "./", slash ? (size_t)(slash - file) + 1 : 2);
    char *real = realpath(folder.ptr, NULL);
    if (real && strcmp(real, "/") == 0)
        real[0] = '\0';
    return real;
}

/* From the folder of one file to that of another one: "../order/"; empty: they are in one. */
static void find_way(const char *from_file, const char *to_file, struct buf *ret)
{
    char *from = folder_of(from_file);
    char *to = folder_of(to_file);
    size_t common = 0;

    for (size_t i = 0; from && to; i++) {
        if ((from[i] == '/' || !from[i]) && (to[i] == '/' || !to[i]))
            common = i;
        if (from[i] != to[i] || !from[i])
            break;
    }
    for (const char *p = from && to ? from + common : ""; *p; p++)
        buf_str(ret, *p == '/' ? "../" : "");
    if (from && to && to[common])
        buf_fmt(ret, "%s/", to + common + 1);
    free(from);
    free(to);
}

/* What becomes of it when `intact test` plays it. */
static void say_kept(const struct kept *k, const char *file)
{
    const char *then = !k->end->is_end   ? "it fails until the task ends"
                       : k->world_before ? "it fails until the world is as before"
                                         : "it passes while the end stays the same";

    (void)fprintf(stderr, "%s: a test \"simulated: %s\" was added; %s\n", file, k->what, then);
}

static bool keep(const struct invocation *in, const struct simulation *v, int64_t end)
{
    const char *file = given(in, "keep-as");
    CLEANUP(buf_fini) struct buf text = {0};
    CLEANUP(buf_fini) struct buf made = {0};
    CLEANUP(buf_fini) struct buf way = {0};
    struct error e = {0};
    struct kept k;
    struct stat st;
    bool exists = file && stat(file, &st) == 0;

    if (!file)
        return true;
    if (!choose_kept(in, v, end, &k))
        return end == 0;
    if (exists && !client_read_file(file, &text))
        return false;
    find_way(file, v->suite->file, &way);
    k.way = buf_view(&way);
    if (keep_write(v, &k, exists ? buf_view(&text) : SLICE_NONE, &made, &e) != ERR_OK) {
        (void)fprintf(stderr, "%s: nothing is kept: %s\n", file, e.text);
        return false;
    }
    if (!test_file_write(file, buf_view(&made)))
        return false;
    say_kept(&k, file);
    return true;
}

/* ---- running ---- */

/* False: there are too many runs. */
static bool say_beforehand(const struct invocation *in, const struct wishes *w)
{
    uint64_t runs = search_estimate(&w->search);

    if (runs > (uint64_t)w->runs_max) {
        (void)verb_failed(in, CLI_USAGE,
                          "all orders of up to %u faults are about %" PRIu64
                          " runs, more than --runs-max %" PRId64
                          ": allow more, or fewer faults by --faults",
                          w->search.depth, runs, w->runs_max);
        return false;
    }
    (void)fprintf(stderr, "all orders of up to %u faults: about %" PRIu64 " runs\n",
                  w->search.depth, runs);
    return true;
}

static bool write_page(const struct invocation *in, const struct simulation *v)
{
    const char *file = given(in, "html");
    CLEANUP(buf_fini) struct buf b = {0};

    if (!file)
        return true;
    simulation_write_html(v, &b);
    return test_file_write(file, buf_view(&b));
}

static int report(const struct invocation *in, const struct simulation *v, int64_t end)
{
    CLEANUP(buf_fini) struct buf b = {0};

    if (v->broken.ptr) {
        simulation_write_text(v, &b);
        print_text(stderr, buf_view(&b));
        return CLI_USAGE;
    }
    if (given(in, "json"))
        simulation_write_json(v, &b);
    else
        simulation_write_text(v, &b);
    print_text(stdout, buf_view(&b));
    (void)fflush(stdout);
    if (!keep(in, v, end) || !write_page(in, v))
        return CLI_USAGE;
    return simulation_is_wrong(v) ? CLI_NOT_WELL : CLI_OK;
}

static int simulate(const struct invocation *in, const struct suite *s, struct wishes *w)
{
    struct simulation v;
    struct rules rules;
    int end = CLI_USAGE;

    rules_open(&rules, s);
    simulation_open(&v, s, &rules);
    v.is_bare = !test_file_is(in->words[0]);
    w->search.simulation = &v;
    if (add_rules(in, &rules, "always") && add_rules(in, &rules, "at-end")
        && read_allowed(in, &v.allowed) && choose_tests(in, &v)) {
        rules_ready(&rules);
        bool goes_on = !w->all || say_beforehand(in, w);
        w->search.crew = crew_new((unsigned)w->jobs);
        if (goes_on && w->all)
            search_all(&w->search);
        else if (goes_on)
            search_sample(&w->search);
        crew_free(w->search.crew);
        if (goes_on) {
            simulation_finish(&v);
            end = report(in, &v, w->end);
        }
    }
    simulation_close(&v);
    rules_close(&rules);
    return end;
}

static int run(struct invocation *in)
{
    struct wishes w = {0};

    log_level_set(LOG_OFF); /* what a run does to breakers is no news */
    if (!read_wishes(in, &w))
        return CLI_USAGE;
    struct suite *s = load(in, in->words[0]);
    if (!s)
        return CLI_USAGE;
    int end = simulate(in, s, &w);
    suite_free(s);
    return end;
}

static const struct flag flags[] = {
    {.name = "seed", .value = "N", .help = "another seed draws other faults", .initial = "1"},
    {.name = "runs",
     .value = "N",
     .help = "how many runs",
     .initial = "5000, fewer for a large workflow"},
    {.name = "exhaustive", .help = "all orders of up to --faults faults, instead of drawn ones"},
    {.name = "faults", .value = "K", .help = "faults of a run, with --exhaustive", .initial = "2"},
    {.name = "runs-max",
     .value = "N",
     .help = "refuse an exhaustive search of more runs",
     .initial = "500000"},
    {.name = "jobs",
     .value = "N",
     .help = "threads that play runs; what is found does not depend on it",
     .initial = "one for each processor"},
    {.name = "always",
     .value = "EXPR",
     .help = "a rule over .task, .world and .before, for every moment",
     .repeats = true},
    {.name = "at-end",
     .value = "EXPR",
     .help = "a rule for the end of every run, instead of the usual one",
     .repeats = true},
    {.name = "allow", .value = "LIST", .help = "findings that are not reported: fit,holds"},
    {.name = "name", .value = "TEXT", .help = "only tests that have TEXT in their name"},
    {.name = "input", .value = "JSON", .help = "the input, if FILE is a definition"},
    {.name = "keep-as",
     .value = "FILE",
     .kind = WORD_FILE,
     .help = "add the story of the first finding to a test file"},
    {.name = "end", .value = "N", .help = "with --keep-as: the story of end N instead"},
    {.name = "json", .help = "print JSON"},
    {.name = "html", .value = "FILE", .kind = WORD_FILE, .help = "also write a page for a browser"},
    {0},
};

const struct verb verb_simulate = {
    .name = "simulate",
    .summary = "every end that a workflow can reach under faults",
    .about = "Plays the tests of a file, or a definition, again and again among faults: requests "
             "and answers that are lost, late or doubled, services that refuse or are down, "
             "servers that are killed, signals that never come. Nothing runs but this "
             "program.\n\nFaults are drawn from a seed, or all are played in all orders. Tells "
             "what is wrong, every end with its shortest story, and what an operator has to do.",
    .arguments = {{.name = "FILE", .kind = WORD_FILE}},
    .flags = flags,
    .examples = {{"intact simulate order.test.yaml", "among faults that are drawn"},
                 {"intact simulate order.test.yaml --exhaustive", "all orders of two faults"},
                 {"intact simulate order.test.yaml --always '.world.stock >= 0'", "a rule"},
                 {"intact simulate order.test.yaml --keep-as order.test.yaml",
                  "a finding becomes a test"}},
    .exits = "1 if something is wrong",
    .is_local = true,
    .run = run,
};
