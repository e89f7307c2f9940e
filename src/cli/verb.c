/* Reads a command line by a verb's description (verb.h): words, flags and their values, with an
 * error for everything that is wrong; then runs the verb. Offers the verbs what was given. cli.c
 * finds the verb. */

#include "cli/verb.h"

#include <getopt.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "base/log.h"
#include "base/when.h"
#include "cli/help.h"
#include "cli/terminal/print.h"
#include "config/config_reader.h"

enum { FIRST_CODE = 256 }; /* of getopt_long for flags without a letter: beyond any letter */

const struct flag *verb_flag(const struct verb *v, size_t i)
{
    size_t own = 0;

    for (; v->flags && v->flags[own].name; own++)
        if (own == i)
            return &v->flags[i];
    if (v->is_local)
        return NULL;
    for (size_t k = 0; client_flag_list[k].name; k++)
        if (own + k == i)
            return &client_flag_list[k];
    return NULL;
}

const char *verb_words(const struct verb *v, char *ret, size_t size)
{
    (void)snprintf(ret, size, "intact%s%s%s%s", v->noun ? " " : "", v->noun ? v->noun : "",
                   *v->name ? " " : "", v->name);
    return ret;
}

PRINTF(2, 0) static void print_problem(const struct verb *v, const char *fmt, va_list args)
{
    char words[64];

    fprintf(stderr, "%s: ", verb_words(v, words, sizeof words));
    print_line_of(stderr, fmt, args);
}

int verb_misused(const struct invocation *in, const char *fmt, ...)
{
    char words[64];
    va_list args;

    va_start(args, fmt);
    print_problem(in->verb, fmt, args);
    va_end(args);
    fprintf(stderr, "; see %s --help\n", verb_words(in->verb, words, sizeof words));
    return CLI_USAGE;
}

int verb_failed(const struct invocation *in, int status, const char *fmt, ...)
{
    va_list args;

    va_start(args, fmt);
    print_problem(in->verb, fmt, args);
    va_end(args);
    fputc('\n', stderr);
    return status;
}

/* ---- given flags ---- */

bool verb_has_flag(const struct verb *v, const char *name)
{
    for (size_t i = 0; verb_flag(v, i); i++)
        if (strcmp(verb_flag(v, i)->name, name) == 0)
            return true;
    return false;
}

const char *given_next(const struct invocation *in, const char *flag, size_t *at)
{
    ASSERT(verb_has_flag(in->verb, flag));
    while (*at < in->given_count) {
        const struct given_flag *g = &in->given[(*at)++];
        if (strcmp(g->flag->name, flag) == 0)
            return g->value;
    }
    return NULL;
}

const char *given(const struct invocation *in, const char *flag)
{
    const char *last = NULL;
    const char *value = NULL;

    for (size_t at = 0; (value = given_next(in, flag, &at));)
        last = value;
    return last;
}

void given_log_level(const struct invocation *in)
{
    static const char *const names[] = {"debug", "info", "warn", "error"};
    const char *text = given(in, "log");

    for (size_t i = 0; text && i < COUNT_OF(names); i++)
        if (strcmp(text, names[i]) == 0)
            log_level_set((enum log_level)i);
}

bool given_duration(const struct invocation *in, const char *flag, int64_t *ret_ms)
{
    const char *text = given(in, flag);

    if (!text || duration_parse(slice_of(text), ret_ms))
        return true;
    verb_misused(in, "--%s is \"%s\", expected a duration such as 200ms, 30s or 15m", flag, text);
    return false;
}

bool given_color(const struct invocation *in, enum term_color *ret)
{
    const char *when = given(in, "color");

    if (!when || strcmp(when, "auto") == 0) {
        *ret = TERM_AUTO;
    } else if (strcmp(when, "always") == 0) {
        *ret = TERM_ALWAYS;
    } else if (strcmp(when, "never") == 0) {
        *ret = TERM_NEVER;
    } else {
        verb_misused(in, "--color is \"%s\", expected auto, always or never", when);
        return false;
    }
    return true;
}

bool given_moment(const struct invocation *in, const char *flag)
{
    const char *text = given(in, flag);
    int64_t at = 0;

    if (!text || time_parse(slice_of(text), &at))
        return true;
    verb_misused(in, "--%s is \"%s\", expected a date and time such as 2026-01-31T10:00:00Z", flag,
                 text);
    return false;
}

bool number_read(const struct invocation *in, const char *what, const char *text, int64_t min,
                 int64_t max, int64_t *ret)
{
    char *end = NULL;
    bool plain = text[0] == '-' || (text[0] >= '0' && text[0] <= '9');
    long long n = strtoll(text, &end, 10); /* an overflow is also beyond max */

    if (plain && !*end && n >= min && n <= max) {
        *ret = n;
        return true;
    }
    verb_misused(in, "%s is \"%s\", expected a number from %lld to %lld", what, text,
                 (long long)min, (long long)max);
    return false;
}

bool given_number(const struct invocation *in, const char *flag, int64_t min, int64_t max,
                  int64_t *ret)
{
    const char *text = given(in, flag);
    char what[40];

    (void)snprintf(what, sizeof what, "--%s", flag);
    return !text || number_read(in, what, text, min, max, ret);
}

/* ---- reading ---- */

struct reading {
    struct option longs[VERB_FLAGS_MAX + 2];
    char letters[2 * VERB_FLAGS_MAX + 4];
};

static int code_of(const struct flag *f, size_t i)
{
    return f->letter ? f->letter : FIRST_CODE + (int)i;
}

static void describe(struct reading *r, const struct verb *v)
{
    size_t n = 0;
    size_t letters = 0;

    r->letters[letters++] = ':';
    r->letters[letters++] = 'h';
    for (const struct flag *f = verb_flag(v, 0); f; f = verb_flag(v, ++n)) {
        ASSERT(n < VERB_FLAGS_MAX);
        r->longs[n] = (struct option){f->name, f->value ? required_argument : no_argument, NULL,
                                      code_of(f, n)};
        if (!f->letter)
            continue;
        r->letters[letters++] = f->letter;
        if (f->value)
            r->letters[letters++] = ':';
    }
    r->longs[n] = (struct option){"help", no_argument, NULL, 'h'};
}

static const struct flag *flag_of_code(const struct verb *v, int code)
{
    for (size_t i = 0; verb_flag(v, i); i++)
        if (code_of(verb_flag(v, i), i) == code)
            return verb_flag(v, i);
    return NULL;
}

static const char *flag_near(const struct verb *v, struct slice name)
{
    const struct flag *f = NULL;

    for (size_t i = 0; (f = verb_flag(v, i)); i++)
        if (name_is_near(name, slice_of(f->name)))
            return f->name;
    return NULL;
}

/* "--wiat" or "--wiat=30s": no flag, or the beginning of several. */
static int refuse_name(const struct invocation *in, const char *word)
{
    struct slice name = {word + 2, strcspn(word + 2, "=")};
    const char *near = flag_near(in->verb, name);

    if (near)
        return verb_misused(in, "there is no flag --%.*s, did you mean --%s?", SLICE_ARG(name),
                            near);
    return verb_misused(in, "there is no flag --%.*s", SLICE_ARG(name));
}

/* getopt permutes: after an unknown flag, argv[optind - 1] is the word that contains it. */
static int refuse(const struct invocation *in, int code, char **argv)
{
    const char *word = argv[optind - 1];

    if (code == ':')
        return verb_misused(in, "%s needs a value", word);
    if (word[0] == '-' && word[1] != '-')
        return verb_misused(in, "there is no flag -%c", optopt);
    if (optopt)
        return verb_misused(in, "%s: this flag takes no value", word);
    return refuse_name(in, word);
}

static bool is_choice(const char *choices, struct slice value)
{
    for (const char *at = choices; *at; at += strspn(at, " ")) {
        size_t len = strcspn(at, " ");
        if (len == value.len && memcmp(at, value.ptr, len) == 0)
            return true;
        at += len;
    }
    return false;
}

static void write_choices(const char *choices, struct slice value, struct buf *b)
{
    struct slice near = SLICE_NONE;

    for (const char *at = choices; *at; at += strspn(at, " ")) {
        struct slice one = {at, strcspn(at, " ")};
        bool last = !strchr(at, ' ');
        buf_fmt(b, "%s%.*s", b->len == 0 ? "" : last ? " or " : ", ", SLICE_ARG(one));
        near = name_is_near(value, one) ? one : near;
        at += one.len;
    }
    if (near.len)
        buf_fmt(b, "; did you mean %.*s?", SLICE_ARG(near));
}

/* `what`: the name of the flag or argument. */
static int check_choice(const struct invocation *in, const char *what, const char *choices,
                        struct slice value)
{
    CLEANUP(buf_fini) struct buf list = {0};

    if (is_choice(choices, value))
        return CLI_OK;
    write_choices(choices, value, &list);
    return verb_misused(in, "%s is \"%.*s\", expected %s", what, SLICE_ARG(value), list.ptr);
}

static int check_value(const struct invocation *in, const struct given_flag *g)
{
    char what[40];
    int bad = CLI_OK;

    ASSERT(g->flag);
    if (g->flag->kind != WORD_CHOICE && g->flag->kind != WORD_CHOICES)
        return CLI_OK;
    (void)snprintf(what, sizeof what, "--%s", g->flag->name);
    for (const char *at = g->value;; at++) {
        size_t len = g->flag->kind == WORD_CHOICES ? strcspn(at, ",") : strlen(at);
        bad = check_choice(in, what, g->flag->choices, (struct slice){at, len});
        at += len;
        if (bad || !*at)
            return bad;
    }
}

/* CLI_OK; -1: --help was printed; CLI_USAGE: an error, which was reported. */
static int read_flags(struct invocation *in, int argc, char **argv)
{
    struct reading r = {0};
    int code = 0;

    describe(&r, in->verb);
    opterr = 0;
    optind = 0; /* glibc: restart, without the permutation of an earlier run */
    while ((code = getopt_long(argc, argv, r.letters, r.longs, NULL)) != -1) {
        if (code == 'h') {
            help_print(in->verb, stdout);
            return -1;
        }
        if (code == '?' || code == ':')
            return refuse(in, code, argv);
        in->given[in->given_count++] =
            (struct given_flag){flag_of_code(in->verb, code), optarg ? optarg : ""};
        int bad = check_value(in, &in->given[in->given_count - 1]);
        if (bad)
            return bad;
    }
    in->words = argv + optind;
    in->word_count = (size_t)(argc - optind);
    return CLI_OK;
}

static int check_words(const struct invocation *in)
{
    size_t least = 0;
    size_t most = 0;
    const struct argument *a = in->verb->arguments;

    for (; most < VERB_ARGUMENTS_MAX && a[most].name; most++)
        least += a[most].optional ? 0 : 1;
    if (in->word_count < least)
        return verb_misused(in, "%s is missing", a[in->word_count].name);
    if (in->word_count > most && !(most && a[most - 1].repeats))
        return verb_misused(in, "\"%s\" is one word too many", in->words[most]);
    for (size_t i = 0; i < in->word_count && i < most; i++) {
        int bad = a[i].kind == WORD_CHOICE
                      ? check_choice(in, a[i].name, a[i].choices, slice_of(in->words[i]))
                      : CLI_OK;
        if (bad)
            return bad;
    }
    return CLI_OK;
}

static const struct invocation *current;

const struct invocation *verb_current(void)
{
    return current;
}

int verb_run(const struct verb *v, int argc, char **argv)
{
    struct invocation in = {.verb = v};

    size_t flag_max = 1;
    for (int i = 0; i < argc; i++) /* each flag has at least one letter: -abc is three */
        flag_max += strlen(argv[i]);
    in.given = calloc(flag_max, sizeof(*in.given));
    if (!in.given)
        return verb_failed(&in, CLI_UNREACHED, "there is no memory");
    int end = read_flags(&in, argc, argv);
    if (end == CLI_OK)
        end = check_words(&in);
    if (end == CLI_OK) {
        current = &in;
        end = v->run(&in);
        current = NULL;
    }
    free(in.given);
    return end < 0 ? CLI_OK : end;
}
