#ifndef CLI_VERB_H
#define CLI_VERB_H

/*
 * A verb of the program, described once, as data. Command-line parsing, --help, completion, manual
 * pages and the documentation are all made from this description, so they agree.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "cli/cli.h"
#include "cli/terminal/term.h"

/* What a word on the command line means, for completion. */
enum word_kind {
    WORD_ANY,
    WORD_FILE,
    WORD_FOLDER,
    WORD_CHOICE,  /* one of the description's `choices`; others are refused */
    WORD_CHOICES, /* several of them, separated by commas */
    WORD_HINTS,   /* offered, but others are allowed */
    WORD_WORKFLOW,
    WORD_TASK,
    WORD_AGENT,
    WORD_TOKEN,
    WORD_LIMIT, /* of a server */
    WORD_VERB,
};

struct flag {
    const char *name;    /* "wait", without dashes */
    const char *value;   /* "TIME": its value, as in --help; NULL: takes none */
    const char *help;    /* what it does; more lines after '\n'. No final dot */
    const char *initial; /* the default, as in --help; NULL: not shown */
    enum word_kind kind; /* of the value */
    const char *choices; /* WORD_CHOICE: separated by blanks */
    char letter;         /* also "-f"; 0: none */
    bool repeats;        /* may be given several times; otherwise the last value applies */
};

struct argument {
    const char *name; /* "TASK" */
    enum word_kind kind;
    const char *choices;
    bool optional, repeats; /* only for a verb's last argument */
};

struct example {
    const char *command; /* a line to copy: "intact get o-17 --wait 30s" */
    const char *what;    /* what it does */
};

enum { VERB_ARGUMENTS_MAX = 4, VERB_EXAMPLES_MAX = 6, VERB_FLAGS_MAX = 40 };

struct invocation;

struct verb {
    const char *noun;    /* "workflow", for "intact workflow put"; NULL: none */
    const char *name;    /* "put" */
    const char *summary; /* half a line, without a final dot */
    const char *about;   /* paragraphs separated by "\n\n"; wrapped when shown */
    struct argument arguments[VERB_ARGUMENTS_MAX];
    const struct flag *flags; /* its own; ends with one without a name; NULL: none */
    struct example examples[VERB_EXAMPLES_MAX];
    const char *exits; /* meaning of exit status 1; NULL: the usual one (enum cli_status) */
    bool is_hidden;    /* for programs: not in --help and the manual */
    bool is_local;     /* calls no server: does not have the flags for servers */
    int (*run)(struct invocation *in); /* returns the exit status */
    const char *more_title;            /* title of a further part of --help; NULL: none */
    void (*more)(struct buf *b);       /* its lines: names and texts in columns */
};

/* A parsed command line. */
struct given_flag {
    const struct flag *flag;
    const char *value;
};

struct invocation {
    const struct verb *verb;
    char **words; /* the arguments, without flags */
    size_t word_count;
    struct given_flag *given; /* in the order of the command line */
    size_t given_count;
};

/* All verbs, in the order in which they are shown. */
extern const struct verb *const verbs[];
extern const size_t verb_count;

/* The flags of all verbs that call a server; ends with one without a name. */
extern const struct flag client_flag_list[];

/* Finds a verb by its first one or two words; *ret_taken: how many. NULL: none. */
const struct verb *verb_find(char *const *words, size_t count, int *ret_taken);

/* The i-th flag of a verb: its own, then the common ones. NULL after the last one. */
const struct flag *verb_flag(const struct verb *v, size_t i);
bool verb_has_flag(const struct verb *v, const char *name);
/* "intact workflow put" */
const char *verb_words(const struct verb *v, char *ret, size_t size);

/* Parses a command line (argv[0] is the verb's name) and runs the verb. Handles --help. */
int verb_run(const struct verb *v, int argc, char **argv);

/* The last value of a flag, "" if it takes none; NULL if it was not given. The verb must have the
 * flag. */
const char *given(const struct invocation *in, const char *flag);
/* The next value of a repeated flag: for (size_t at = 0; (v = given_next(in, "tag", &at));) */
const char *given_next(const struct invocation *in, const char *flag, size_t *at);
/* A duration such as 30s. False: invalid, which was reported. Without the flag *ret is
 * unchanged. */
bool given_duration(const struct invocation *in, const char *flag, int64_t *ret_ms);
/* Sets the log level from the flag "log". */
void given_log_level(const struct invocation *in);
/* Reads --color; default TERM_AUTO. False: invalid, which was reported. */
bool given_color(const struct invocation *in, enum term_color *ret);
/* Is the flag's value, if given, an RFC 3339 time? Reports if not. */
bool given_moment(const struct invocation *in, const char *flag);
/* A whole number from min to max; like given_duration. */
bool given_number(const struct invocation *in, const char *flag, int64_t min, int64_t max,
                  int64_t *ret);
/* The same for a word, named `what` in messages. */
bool number_read(const struct invocation *in, const char *what, const char *text, int64_t min,
                 int64_t max, int64_t *ret);

/* The running command line; NULL: none yet. */
const struct invocation *verb_current(void);

/* Prints "intact VERB: what" and a hint at --help on standard error; returns CLI_USAGE. */
int verb_misused(const struct invocation *in, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
/* Prints "intact VERB: what" on standard error; returns `status`. */
int verb_failed(const struct invocation *in, int status, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

#endif
