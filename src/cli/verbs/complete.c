/*
 * `intact complete`: candidates for the word at the cursor, one a line, with a tab and their
 * meaning, for the scripts of `intact completion`. ":files" and ":folders" leave it to the shell.
 *
 * A shell puts candidates into a command line as they are, so a name from the server is offered
 * only if every shell takes it for a plain word.
 */

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "cli/client/client.h"
#include "cli/verbs.h"

enum { SERVER_TIMEOUT_S = 2 };

struct completion {
    struct invocation in; /* the command line so far */
    struct slice prefix;  /* of the word at the cursor: put before every candidate */
    struct slice current; /* the rest of the word, with which a candidate must begin */
};

static void offer(const struct completion *c, struct slice word, const char *meaning)
{
    if (word.len < c->current.len
        || (c->current.len && memcmp(word.ptr, c->current.ptr, c->current.len) != 0))
        return;
    printf("%.*s%.*s", SLICE_ARG(c->prefix), SLICE_ARG(word));
    if (meaning)
        printf("\t%.*s", (int)strcspn(meaning, "\n"), meaning);
    putchar('\n');
}

static bool is_plain(struct slice word)
{
    static const char allowed[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._:-";

    for (size_t i = 0; i < word.len; i++)
        if (!word.ptr[i] || !strchr(allowed, word.ptr[i]))
            return false;
    return word.len > 0 && word.ptr[0] != '-';
}

static void give_up(int signal)
{
    (void)signal;
    _exit(CLI_OK);
}

/* Names from the server, which has only a moment to answer; errors are silent. */
static void offer_names(struct completion *c, const char *path, const char *list, const char *key,
                        const char *meaning_key)
{
    CLEANUP(arena_fini) struct arena a = {0};
    int end = CLI_OK;

    if (c->in.verb->is_local)
        return;
    (void)signal(SIGALRM, give_up);
    (void)alarm(SERVER_TIMEOUT_S);
    struct intact_client *client = client_begin(&c->in);
    const struct json *answer = client_ask(client, "GET", path, NULL, &a, &end);
    const struct json *rows = answer ? json_get(answer, list) : NULL;
    for (const struct json *j = rows ? rows->child : NULL; j; j = j->next) {
        struct slice meaning = meaning_key ? json_get_text(j, meaning_key) : SLICE_NONE;
        if (is_plain(json_get_text(j, key)))
            offer(c, json_get_text(j, key), is_plain(meaning) ? meaning.ptr : NULL);
    }
    (void)alarm(0);
    intact_client_free(client);
}

static void offer_choices(const struct completion *c, const char *choices)
{
    for (const char *at = choices; *at; at += strspn(at, " ")) {
        size_t len = strcspn(at, " ");
        offer(c, (struct slice){at, len}, NULL);
        at += len;
    }
}

/* The last element of a comma-separated list. */
static void offer_list(struct completion *c, const char *choices)
{
    size_t done = c->current.len;

    while (done > 0 && c->current.ptr[done - 1] != ',')
        done--;
    c->prefix =
        (struct slice){c->prefix.len ? c->prefix.ptr : c->current.ptr, c->prefix.len + done};
    c->current = (struct slice){c->current.ptr + done, c->current.len - done};
    offer_choices(c, choices);
}

static void offer_verbs(const struct completion *c, const char *noun)
{
    const char *last = "";

    for (size_t i = 0; i < verb_count; i++) {
        const struct verb *v = verbs[i];
        if (v->is_hidden)
            continue;
        if ((noun && v->noun && strcmp(v->noun, noun) == 0) || (!noun && !v->noun))
            offer(c, slice_of(v->name), v->summary);
        else if (!noun && strcmp(v->noun, last) != 0)
            offer(c, slice_of(v->noun), NULL);
        last = v->noun ? v->noun : last;
    }
}

/* "    body            body of a request [4MiB]" */
static void offer_limits(const struct completion *c)
{
    CLEANUP(buf_fini) struct buf b = {0};

    if (!c->in.verb->more)
        return;
    c->in.verb->more(&b);
    for (char *at = b.ptr; at && *at;) {
        CLEANUP(buf_fini) struct buf word = {0};
        at += strspn(at, " ");
        size_t len = strcspn(at, " \n");
        buf_add(&word, at, len);
        buf_byte(&word, '=');
        offer(c, buf_view(&word), at + len + strspn(at + len, " "));
        at += strcspn(at, "\n");
        at += *at == '\n';
    }
}

static void offer_kind(struct completion *c, enum word_kind kind, const char *choices)
{
    switch (kind) {
    case WORD_ANY:
        break;
    case WORD_FILE:
        puts(":files");
        break;
    case WORD_FOLDER:
        puts(":folders");
        break;
    case WORD_CHOICE:
    case WORD_HINTS:
        offer_choices(c, choices);
        break;
    case WORD_CHOICES:
        offer_list(c, choices);
        break;
    case WORD_WORKFLOW:
        offer_names(c, "/v1/workflows", "workflows", "name", NULL);
        break;
    case WORD_TASK:
        offer_names(c, "/v1/tasks?limit=500", "tasks", "id", "state");
        break;
    case WORD_AGENT:
        offer_names(c, "/v1/agents", "agents", "agent", NULL);
        break;
    case WORD_TOKEN:
        offer_names(c, "/v1/tokens", "tokens", "name", NULL);
        break;
    case WORD_LIMIT:
        offer_limits(c);
        break;
    case WORD_VERB:
        offer_verbs(c, c->in.word_count > 0 ? c->in.words[0] : NULL);
        break;
    }
}

static bool was_given(const struct invocation *in, const struct flag *f)
{
    for (size_t i = 0; i < in->given_count; i++)
        if (in->given[i].flag == f)
            return true;
    return false;
}

static void offer_flags(const struct completion *c)
{
    char name[64];

    for (size_t i = 0; verb_flag(c->in.verb, i); i++) {
        const struct flag *f = verb_flag(c->in.verb, i);
        (void)snprintf(name, sizeof name, "--%s", f->name);
        if (f->repeats || !was_given(&c->in, f))
            offer(c, slice_of(name), f->help);
    }
    offer(c, SLICE("--help"), "what this does, with examples");
}

static const struct flag *flag_called(const struct verb *v, const char *word)
{
    size_t len = strcspn(word, "=");

    for (size_t i = 0; verb_flag(v, i); i++) {
        const struct flag *f = verb_flag(v, i);
        bool is_letter = f->letter && word[0] == '-' && word[1] == f->letter && !word[2];
        if (is_letter
            || (len > 2 && strncmp(word, "--", 2) == 0 && strlen(f->name) == len - 2
                && strncmp(word + 2, f->name, len - 2) == 0))
            return f;
    }
    return NULL;
}

/* Reads the words before the cursor. Returns the flag whose value is at the cursor, or NULL. */
static const struct flag *read_words(struct completion *c, char **words, size_t count)
{
    const struct flag *open = NULL;

    for (size_t i = 0; i < count; i++) {
        const char *equals = strchr(words[i], '=');
        const struct flag *f = open ? open : flag_called(c->in.verb, words[i]);
        const char *value = open ? words[i] : f && equals ? equals + 1 : "";
        bool opens = f && !open && f->value && !equals;
        if (f && !opens)
            c->in.given[c->in.given_count++] = (struct given_flag){f, value};
        else if (!f && words[i][0] != '-')
            c->in.words[c->in.word_count++] = words[i];
        open = opens ? f : NULL;
    }
    return open;
}

static void offer_argument(struct completion *c)
{
    const struct argument *a = c->in.verb->arguments;
    size_t i = 0;

    while (i < c->in.word_count && a[i].name && !a[i].repeats)
        i++;
    if (i < VERB_ARGUMENTS_MAX && a[i].name)
        offer_kind(c, a[i].kind, a[i].choices);
}

static void complete_of(struct completion *c, char **words, size_t count)
{
    const char *current = words[count - 1];
    const char *equals = strchr(current, '=');

    c->in.given = calloc(count, sizeof *c->in.given);
    c->in.words = calloc(count, sizeof *c->in.words);
    ASSERT(c->in.given && c->in.words);
    const struct flag *open = read_words(c, words, count - 1);
    c->current = slice_of(current);
    if (!open && strncmp(current, "--", 2) == 0 && equals) {
        open = flag_called(c->in.verb, current);
        c->prefix = (struct slice){current, (size_t)(equals - current) + 1};
        c->current = slice_of(equals + 1);
    }
    if (open)
        offer_kind(c, open->kind, open->choices);
    else if (current[0] == '-')
        offer_flags(c);
    else
        offer_argument(c);
    free(c->in.given);
    free((void *)c->in.words);
}

static int run(struct invocation *in)
{
    struct completion c = {0};
    int words = 0;

    if (in->word_count == 0 || !freopen("/dev/null", "w", stderr))
        return CLI_OK;
    char *last = in->words[in->word_count - 1];
    c.current = slice_of(last);
    const struct verb *v = verb_find(in->words, in->word_count - 1, &words);
    if (v) {
        c.in.verb = v;
        complete_of(&c, in->words + words, in->word_count - (size_t)words);
    } else if (in->word_count == 1 && last[0] == '-') {
        offer(&c, SLICE("--help"), "all verbs");
        offer(&c, SLICE("--version"), NULL);
    } else if (in->word_count <= 2) {
        offer_verbs(&c, in->word_count == 2 ? in->words[0] : NULL);
    }
    return CLI_OK;
}

const struct verb verb_complete = {
    .name = "complete",
    .summary = "say what may stand at the end of a command line",
    .about = "For the scripts of intact completion.",
    .arguments = {{.name = "WORD", .optional = true, .repeats = true}},
    .is_local = true,
    .is_hidden = true,
    .run = run,
};
