#ifndef CLI_VERB_H
#define CLI_VERB_H

/*
 * A verb of the program, described once, as data. Reading the command line, --help, completion,
 * manual pages and the page of the documentation all come out of this description, so they cannot
 * disagree.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "cli/cli.h"

/* What a word on the command line stands for: completion offers accordingly. */
enum word_kind {
    WORD_ANY,
    WORD_FILE,
    WORD_FOLDER,
    WORD_CHOICE,  /* one of the description's `choices`; all else is refused */
    WORD_CHOICES, /* several of them, with commas between */
    WORD_HINTS,   /* they are offered, but others may do as well */
    WORD_WORKFLOW,
    WORD_TASK,
    WORD_AGENT,
    WORD_TOKEN,
    WORD_LIMIT, /* of a server */
    WORD_VERB,
};

struct flag {
    const char *name;    /* "wait": without the dashes */
    const char *value;   /* "TIME": what it takes, as --help names it; NULL: nothing */
    const char *help;    /* what it does; further lines after '\n'. No dot at the end */
    const char *initial; /* what holds without it, as --help shows it; NULL: nothing to say */
    enum word_kind kind; /* of the value */
    const char *choices; /* WORD_CHOICE: with blanks between */
    char letter;         /* "-f" as well; 0: none */
    bool repeats;        /* may be given several times; of another the last one counts */
};

struct argument {
    const char *name; /* "TASK" */
    enum word_kind kind;
    const char *choices;
    bool optional, repeats; /* only the last one of a verb may be so */
};

struct example {
    const char *command; /* a line to copy: "intact get o-17 --wait 30s" */
    const char *what;    /* what it does */
};

enum { VERB_ARGUMENTS_MAX = 4, VERB_EXAMPLES_MAX = 6, VERB_FLAGS_MAX = 40 };

struct invocation;

struct verb {
    const char *noun;    /* "workflow", for "intact workflow put"; NULL: there is none */
    const char *name;    /* "put" */
    const char *summary; /* half a line, without a dot */
    const char *about;   /* paragraphs, with "\n\n" between; wrapped by whoever shows them */
    struct argument arguments[VERB_ARGUMENTS_MAX];
    const struct flag *flags; /* its own; ends with one without a name; NULL: none */
    struct example examples[VERB_EXAMPLES_MAX];
    const char *exits; /* what exit status 1 means here; NULL: as everywhere (enum cli_status) */
    bool is_hidden;    /* for programs: --help and the manual do not name it */
    bool is_local;     /* talks to no server: it does not have the flags of those that do */
    int (*run)(struct invocation *in); /* returns the exit status */
    const char *more_title;            /* what --help shows behind the flags; NULL: nothing */
    void (*more)(struct buf *b);       /* the lines below that title, NAME and text in columns */
};

/* One command line, read. */
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

/* All of them, in the order in which they are shown. */
extern const struct verb *const verbs[];
extern const size_t verb_count;

/* The flags of all verbs that talk to a server; ends with one without a name. */
extern const struct flag client_flag_list[];

/* By the first word, or the first two, which are *ret_taken then. NULL: there is none. */
const struct verb *verb_find(char *const *words, size_t count, int *ret_taken);

/* The flags of a verb: its own, then the common ones. NULL behind the last one. */
const struct flag *verb_flag(const struct verb *v, size_t i);
bool verb_has_flag(const struct verb *v, const char *name);
/* "intact workflow put" */
const char *verb_words(const struct verb *v, char *ret, size_t size);

/* Reads a command line (argv[0] is the verb's name) and runs the verb. Handles --help. */
int verb_run(const struct verb *v, int argc, char **argv);

/* The last value of a flag, "" for one that takes none; NULL if it was not given. The name has to
 * be one of the verb's. */
const char *given(const struct invocation *in, const char *flag);
/* The next value of a repeated flag: for (size_t at = 0; (v = given_next(in, "tag", &at));) */
const char *given_next(const struct invocation *in, const char *flag, size_t *at);
/* A duration such as 30s. False: it has been said what is wrong with it. Without the flag *ret is
 * left alone. */
bool given_duration(const struct invocation *in, const char *flag, int64_t *ret_ms);
/* Sets what is logged, by the flag "log". */
void given_log_level(const struct invocation *in);
/* A moment in RFC 3339 form is what was given, or nothing was; the same. */
bool given_moment(const struct invocation *in, const char *flag);
/* A whole number from min to max; the same. */
bool given_number(const struct invocation *in, const char *flag, int64_t min, int64_t max,
                  int64_t *ret);
/* The same of a word, which `what` is the name of. */
bool number_read(const struct invocation *in, const char *what, const char *text, int64_t min,
                 int64_t max, int64_t *ret);

/* The command line that is being carried out; NULL: none yet. */
const struct invocation *verb_current(void);

/* "intact VERB: what" on standard error, and a hint at --help; CLI_USAGE. */
int verb_misused(const struct invocation *in, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
/* "intact VERB: what" on standard error; `status`. */
int verb_failed(const struct invocation *in, int status, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

#endif
