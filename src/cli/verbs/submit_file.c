/*
 * Many tasks from a file, or from a pipe without end.
 *
 * This thread reads lines into batches; senders, each with its own connection, send them; outcomes
 * are reported in the order of the file. The number of batches is fixed, so memory is bounded and
 * the reader waits for the senders.
 */

#include "cli/verbs/submit_file.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "cli/client/client.h"
#include "cli/terminal/print.h"
#include "cli/terminal/term.h"
#include "cli/verbs/submit_batch.h"
#include "json/text.h"

enum {
    WAKE_MS = 100, /* how often the progress is drawn at least */
    SENDERS = 4,
    SENDERS_THAT_WAIT = 16, /* for tasks to end: they are mostly idle */
    SENDERS_MAX = SENDERS_THAT_WAIT,
    BATCHES_MAX = 2 * SENDERS_MAX,
    READ_SIZE = 256 << 10,
    LINE_MAX_SIZE = 64 << 20, /* no server accepts more */
    LINGER_MS = 50,           /* how long an incomplete batch waits for more lines */
    TOLD_MAX = 20,            /* refused lines that are reported; --rejects has all */
};

enum batch_state { BATCH_FREE, BATCH_READY, BATCH_AT_WORK, BATCH_DONE };

struct tally {
    size_t fresh, existing, refused, processed, compensated, error, open;
};

struct bulk {
    const struct invocation *in;
    struct line_rules rules;
    const char *name; /* of the file */
    int fd;
    FILE *rejects;
    off_t rejects_size; /* size of complete batches in it */
    char run_id[40];

    pthread_mutex_t lock; /* for all fields below that senders use */
    pthread_cond_t changed;
    struct batch *batches[BATCHES_MAX];
    enum batch_state states[BATCHES_MAX];
    size_t batch_count, sender_count;
    size_t made, told;   /* batches read, and reported */
    bool ended, stopped; /* no more is read; nothing more is sent */
    struct tally tally;
    size_t failures_told;
    bool made_ids;
    int end;
    char error[300];
    size_t stopped_at; /* the first line that may not be submitted; 0: none */

    /* used by the reading thread only: */
    struct term_progress progress;
    struct batch *filling;
    struct buf input;    /* read, but not split into lines yet */
    size_t parsed;       /* part of it that was split */
    size_t line_number;  /* of the latest line */
    size_t first_line;   /* --from-line */
    int64_t size, bytes; /* of the file, 0 if unknown; bytes read */
};

static volatile sig_atomic_t interrupts;

static void count_interrupt(int signal)
{
    (void)signal;
    interrupts++;
}

static bool is_interrupted(void)
{
    return interrupts > 0;
}

/* ---- reporting ---- */

/* JSON cannot contain invalid UTF-8. */
static void add_text(struct buf *b, struct slice text)
{
    CLEANUP(buf_fini) struct buf clean = {0};

    while (text.len > 0) {
        size_t good = text_utf8_end(text);
        buf_slice(&clean, (struct slice){text.ptr, good});
        if (good < text.len)
            buf_byte(&clean, '?');
        good += good < text.len;
        text = (struct slice){text.ptr + good, text.len - good};
    }
    json_string(b, buf_view(&clean));
}

static void reject(struct bulk *k, const struct batch *b, size_t i)
{
    CLEANUP(buf_fini) struct buf line = {0};
    const struct line_outcome *o = &b->lines[i].outcome;

    json_open(&line, '{');
    json_member_number(&line, "line", (int64_t)b->lines[i].number);
    json_member_number(&line, "status", o->status);
    json_member_text(&line, "reason", o->reason);
    json_key(&line, "text");
    add_text(&line, batch_line(b, i));
    json_close(&line, '}');
    fprintf(k->rejects, "%s\n", line.ptr); /* keep_rejects checks for errors */
}

static void stop_at(struct bulk *k, int end, size_t line)
{
    k->end = end;
    k->stopped = true;
    k->stopped_at = line;
}

/* A refused line that is not recorded would be lost silently: so the run stops here, and a partial
 * line is removed. */
static void keep_rejects(struct bulk *k, const struct batch *b)
{
    struct stat st;

    if (!k->rejects || k->stopped)
        return;
    if (fflush(k->rejects) != 0 || ferror(k->rejects)) {
        (void)snprintf(k->error, sizeof k->error, "%.200s: %s", given(k->in, "rejects"),
                       strerror(errno));
        stop_at(k, CLI_USAGE, b->lines[0].number);
        (void)(k->rejects_size >= 0 && ftruncate(fileno(k->rejects), k->rejects_size) == 0);
    } else if (k->rejects_size >= 0 && fstat(fileno(k->rejects), &st) == 0) {
        k->rejects_size = st.st_size;
    }
}

/* The progress is drawn on the same stream. */
static void complain(struct bulk *k, const struct batch *b, size_t i, const char *fmt, ...)
    PRINTF(4, 5);
static void complain(struct bulk *k, const struct batch *b, size_t i, const char *fmt, ...)
{
    va_list args;

    if (k->failures_told++ >= TOLD_MAX)
        return;
    term_progress_end(&k->progress);
    print_line(stderr, "%s:%zu: ", k->name, b->lines[i].number);
    va_start(args, fmt);
    print_line_of(stderr, fmt, args);
    va_end(args);
    (void)fputc('\n', stderr);
}

static void report_state(struct bulk *k, const struct batch *b, size_t i)
{
    const struct line_outcome *o = &b->lines[i].outcome;

    if (slice_is(o->state, "processed")) {
        k->tally.processed++;
        return;
    }
    if (slice_is(o->state, "compensated"))
        k->tally.compensated++;
    else if (slice_is(o->state, "error"))
        k->tally.error++;
    else
        k->tally.open++;
    complain(k, b, i, "the task is %.*s", SLICE_ARG(o->state.len ? o->state : SLICE("open")));
}

static void report_line(struct bulk *k, const struct batch *b, size_t i)
{
    const struct line_outcome *o = &b->lines[i].outcome;

    if (given(k->in, "json") && o->answer.ptr) {
        print_text(stdout, o->answer);
        putchar('\n');
    }
    k->tally.fresh += o->status == 201;
    k->tally.existing += o->status == 200;
    if (o->status == 200 || o->status == 201) {
        if (k->rules.wait_ms >= 0)
            report_state(k, b, i);
        return;
    }
    k->tally.refused++;
    if (k->rejects)
        reject(k, b, i);
    else
        complain(k, b, i, "%.*s (status %d)", SLICE_ARG(o->reason), o->status);
}

static void report_batch(struct bulk *k, const struct batch *b)
{
    k->made_ids |= b->made_ids;
    if (b->end != CLI_OK) {
        stop_at(k, b->end, b->lines[0].number);
        (void)snprintf(k->error, sizeof k->error, "%s", b->error);
        return;
    }
    const struct tally before = k->tally;
    for (size_t i = 0; i < b->count; i++)
        report_line(k, b, i);
    keep_rejects(k, b);
    if (k->stopped)
        k->tally = before; /* the whole batch is sent again */
}

/* In the order of the file; needs the lock. */
static void report_finished(struct bulk *k)
{
    for (size_t at = k->told % k->batch_count;
         !k->stopped && k->told < k->made && k->states[at] == BATCH_DONE;
         at = k->told % k->batch_count) {
        report_batch(k, k->batches[at]);
        if (k->stopped)
            break;
        k->states[at] = BATCH_FREE;
        k->told++;
    }
    (void)pthread_cond_broadcast(&k->changed);
}

/* ---- sending ---- */

/* The oldest ready batch. The first one is sent alone, so that a problem of the server or of the
 * flags is reported once. */
static struct batch *take_batch(struct bulk *k, size_t *ret_at)
{
    for (;;) {
        struct batch *first = NULL;
        for (size_t i = 0; i < k->batch_count && !k->stopped; i++)
            if (k->states[i] == BATCH_READY && (k->batches[i]->seq == 0 || k->told > 0)
                && (!first || k->batches[i]->seq < first->seq)) {
                first = k->batches[i];
                *ret_at = i;
            }
        if (first || k->stopped || (k->ended && (k->told > 0 || k->made == 0)))
            return first;
        (void)pthread_cond_wait(&k->changed, &k->lock);
    }
}

struct sender {
    struct bulk *bulk;
    struct intact_client *client;
    pthread_t thread;
};

static void *send_all(void *arg)
{
    struct sender *s = arg;
    struct bulk *k = s->bulk;
    size_t at = 0;

    (void)pthread_mutex_lock(&k->lock);
    for (struct batch *b = take_batch(k, &at); b; b = take_batch(k, &at)) {
        k->states[at] = BATCH_AT_WORK;
        (void)pthread_mutex_unlock(&k->lock);
        batch_send(b, s->client, &k->rules);
        (void)pthread_mutex_lock(&k->lock);
        k->states[at] = BATCH_DONE;
        report_finished(k);
    }
    (void)pthread_mutex_unlock(&k->lock);
    return NULL;
}

/* ---- reading ---- */

static void show_progress(struct bulk *k)
{
    size_t done = k->tally.fresh + k->tally.existing + k->tally.refused;

    if (k->size > 0 && k->bytes > 0)
        k->progress.total = (int64_t)((double)(k->line_number - (k->first_line - 1))
                                      * (double)k->size / (double)k->bytes);
    term_progress_at(&k->progress, (int64_t)done);
}

/* Waits until `is_it`, or until the run stops; needs the lock. */
static void wait_until(struct bulk *k, bool (*is_it)(const struct bulk *k))
{
    while (!is_it(k) && !k->stopped) {
        const struct timespec t = clock_in_ms(CLOCK_REALTIME, WAKE_MS);
        show_progress(k);
        (void)pthread_cond_timedwait(&k->changed, &k->lock, &t);
    }
}

static bool has_free_batch(const struct bulk *k)
{
    return k->states[k->made % k->batch_count] == BATCH_FREE || is_interrupted();
}

static bool is_all_reported(const struct bulk *k)
{
    return k->told == k->made;
}

/* The batch to fill; NULL: the run stops. */
static struct batch *batch_to_fill(struct bulk *k)
{
    if (k->filling)
        return k->filling;
    (void)pthread_mutex_lock(&k->lock);
    wait_until(k, has_free_batch);
    size_t at = k->made % k->batch_count;
    bool go = !k->stopped && k->states[at] == BATCH_FREE;
    (void)pthread_mutex_unlock(&k->lock);
    if (!go)
        return NULL;
    k->filling = k->batches[at];
    batch_clear(k->filling);
    k->filling->seq = k->made;
    return k->filling;
}

static void hand_over(struct bulk *k)
{
    if (!k->filling || k->filling->count == 0)
        return;
    (void)pthread_mutex_lock(&k->lock);
    k->states[k->made % k->batch_count] = BATCH_READY;
    k->made++;
    show_progress(k);
    (void)pthread_cond_broadcast(&k->changed);
    (void)pthread_mutex_unlock(&k->lock);
    k->filling = NULL;
}

static bool is_blank(struct slice line)
{
    for (size_t i = 0; i < line.len; i++)
        if (!strchr(" \t\r", line.ptr[i]) || !line.ptr[i])
            return false;
    return true;
}

static bool take_line(struct bulk *k, struct slice line)
{
    k->line_number++;
    if (k->line_number < k->first_line || is_blank(line))
        return true;
    if (k->filling && batch_is_full(k->filling, line.len))
        hand_over(k);
    struct batch *b = batch_to_fill(k);
    if (b)
        batch_add(b, line, k->line_number);
    else
        k->line_number--; /* it was not taken */
    return b;
}

/* Takes complete lines; at the end of the file also one without a newline. */
static bool take_lines(struct bulk *k, bool at_end)
{
    const char *stop = NULL;

    for (;;) {
        struct slice rest = {k->input.ptr + k->parsed, k->input.len - k->parsed};
        stop = rest.len ? memchr(rest.ptr, '\n', rest.len) : NULL;
        if (!stop && !(at_end && rest.len > 0))
            break;
        size_t len = stop ? (size_t)(stop - rest.ptr) : rest.len;
        k->parsed += len + (stop ? 1 : 0);
        if (!take_line(k, (struct slice){rest.ptr, len}))
            return false;
    }
    if (k->parsed == 0)
        return true;
    memmove(k->input.ptr, k->input.ptr + k->parsed, k->input.len - k->parsed);
    k->input.len -= k->parsed;
    k->parsed = 0;
    return true;
}

static bool is_over(struct bulk *k)
{
    (void)pthread_mutex_lock(&k->lock);
    bool over = is_interrupted() || k->stopped;
    show_progress(k);
    (void)pthread_mutex_unlock(&k->lock);
    return over;
}

/* Reads what is available. If a pipe is slow, lines read so far are sent meanwhile. */
static ssize_t read_some(struct bulk *k)
{
    struct pollfd p = {.fd = k->fd, .events = POLLIN};
    char *room = buf_room(&k->input, READ_SIZE);

    int ready = poll(&p, 1, k->filling && k->filling->count > 0 ? LINGER_MS : 0);

    if (ready == 0)
        hand_over(k);
    while (ready == 0 && !is_over(k))
        ready = poll(&p, 1, 100);
    return ready > 0 ? read(k->fd, room, READ_SIZE) : ready;
}

static int read_file(struct bulk *k)
{
    for (;;) {
        ssize_t n = read_some(k);
        if (is_interrupted())
            return CLI_OK;
        if (n < 0 && errno == EINTR)
            continue;
        if (is_over(k))
            return CLI_OK;
        if (n < 0)
            return verb_failed(k->in, CLI_USAGE, "%s: %s", k->name, strerror(errno));
        k->input.len += (size_t)n;
        k->bytes += n;
        if (!take_lines(k, n == 0) || n == 0)
            return CLI_OK;
        if (k->input.len > LINE_MAX_SIZE)
            return verb_failed(k->in, CLI_USAGE, "%s:%zu: the line is longer than 64 MiB", k->name,
                               k->line_number + 1);
    }
}

/* ---- the end ---- */

/* A word quoted for a shell. */
static void add_word(struct buf *b, const char *word)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                                "@%+=:,./_-";

    buf_byte(b, ' ');
    if (*word && !word[strspn(word, plain)]) {
        buf_str(b, word);
        return;
    }
    buf_byte(b, '\'');
    for (; *word; word++)
        if (*word == '\'')
            buf_str(b, "'\\''");
        else
            buf_byte(b, *word);
    buf_byte(b, '\'');
}

/* All other flags: without them the rest would be different tasks. A token is not repeated. */
static void add_other_flags(const struct bulk *k, struct buf *b)
{
    static const char *const told[] = {"file", "from-line", "run-id", "token"};

    for (size_t i = 0; i < k->in->given_count; i++) {
        const struct given_flag *g = &k->in->given[i];
        bool other = true;
        for (size_t n = 0; n < COUNT_OF(told); n++)
            other &= strcmp(g->flag->name, told[n]) != 0;
        if (!other)
            continue;
        buf_fmt(b, " --%s", g->flag->name);
        if (g->flag->value)
            add_word(b, g->value);
    }
}

static void print_how_to_continue(const struct bulk *k)
{
    CLEANUP(buf_fini) struct buf b = {0};
    bool is_pipe = k->fd == STDIN_FILENO;

    if (k->in->word_count > 0)
        add_word(&b, k->in->words[0]);
    buf_str(&b, " --file");
    add_word(&b, is_pipe ? "-" : k->name);
    buf_fmt(&b, " --from-line %zu", k->stopped_at);
    if (k->made_ids)
        buf_fmt(&b, " --run-id %s", k->rules.run_id);
    add_other_flags(k, &b);
    print_line(stderr,
               "intact submit: the lines before %zu are dealt with; go on with%s: intact submit%s",
               k->stopped_at, is_pipe ? ", and the same input" : "", b.ptr);
    (void)fputc('\n', stderr);
}

static void print_summary(const struct bulk *k)
{
    const struct tally *t = &k->tally;
    FILE *to = given(k->in, "json") ? stderr : stdout;

    if (!k->rejects && k->failures_told > TOLD_MAX)
        fprintf(stderr,
                "intact submit: and %zu more; --rejects FILE keeps those that were refused\n",
                k->failures_told - TOLD_MAX);
    fprintf(to, "%zu submitted, %zu existed already, %zu refused\n", t->fresh, t->existing,
            t->refused);
    if (k->rules.wait_ms >= 0)
        fprintf(to, "%zu processed, %zu compensated, %zu in error, %zu not ended\n", t->processed,
                t->compensated, t->error, t->open);
}

static int conclude(struct bulk *k, int end)
{
    term_progress_end(&k->progress);
    for (size_t i = 0; i < k->batch_count; i++)
        k->made_ids |= k->batches[i]->made_ids; /* also in batches after the failed one */
    if (k->stopped)
        verb_failed(k->in, k->end, "%s", k->error);
    else if (is_interrupted() && k->stopped_at == 0)
        k->stopped_at =
            k->filling && k->filling->count ? k->filling->lines[0].number : k->line_number + 1;
    if (k->rejects && fclose(k->rejects) != 0 && !k->stopped)
        end = verb_failed(k->in, CLI_USAGE, "%s: %s", given(k->in, "rejects"), strerror(errno));
    print_summary(k);
    if (k->stopped_at > 0)
        print_how_to_continue(k);
    if (end == CLI_OK)
        end = k->end;
    bool well = k->tally.refused + k->tally.compensated + k->tally.error + k->tally.open == 0
                && !is_interrupted();
    return end == CLI_OK && !well ? CLI_NOT_WELL : end;
}

/* Ctrl-C ends the run in order; a second one ends it at once. */
static void catch_interrupts(bool begin)
{
    struct sigaction action = {.sa_handler = begin ? count_interrupt : SIG_DFL};
    struct sigaction was;

    if (sigaction(SIGINT, NULL, &was) == 0 && was.sa_handler == SIG_IGN)
        return; /* set by a shell for background jobs */
    if (begin)
        action.sa_flags = (int)SA_RESETHAND; /* reads and waits end with EINTR */
    interrupts = begin ? 0 : interrupts;
    (void)sigaction(SIGINT, &action, NULL);
}

/* Starts as many threads as the system allows; returns an error if there are none, otherwise 0. */
static int start(struct bulk *k, struct sender *senders)
{
    sigset_t interrupt;
    sigset_t before;
    int bad = 0;

    sigemptyset(&interrupt);
    sigaddset(&interrupt, SIGINT); /* only the reading thread gets it */
    (void)pthread_sigmask(SIG_BLOCK, &interrupt, &before);
    for (size_t i = 0; i < k->batch_count; i++) {
        k->batches[i] = calloc(1, sizeof *k->batches[i]);
        ASSERT(k->batches[i]);
    }
    for (size_t i = 0; i < k->sender_count && !bad; i++) {
        senders[i] = (struct sender){.bulk = k, .client = client_begin(k->in)};
        bad = pthread_create(&senders[i].thread, NULL, send_all, &senders[i]);
        if (bad) {
            intact_client_free(senders[i].client);
            k->sender_count = i;
        }
    }
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    return k->sender_count == 0 ? bad : 0;
}

static void stop(struct bulk *k, struct sender *senders)
{
    (void)pthread_mutex_lock(&k->lock);
    k->ended = true;
    (void)pthread_cond_broadcast(&k->changed);
    wait_until(k, is_all_reported);
    (void)pthread_mutex_unlock(&k->lock);
    for (size_t i = 0; i < k->sender_count; i++) {
        (void)pthread_join(senders[i].thread, NULL);
        intact_client_free(senders[i].client);
    }
}

static int submit_all(struct bulk *k)
{
    struct sender senders[SENDERS_MAX] = {0};
    enum term_color color = TERM_AUTO;

    (void)given_color(k->in, &color);
    (void)pthread_mutex_init(&k->lock, NULL);
    (void)pthread_cond_init(&k->changed, NULL);
    term_progress_begin(&k->progress, "submit", PROGRESS_ITEMS, 0, color);
    catch_interrupts(true);
    int bad = start(k, senders);
    int end = bad ? verb_failed(k->in, CLI_USAGE, "no thread can be started: %s; nothing was sent",
                                strerror(bad))
                  : read_file(k);
    if (!bad && !is_interrupted())
        hand_over(k);
    stop(k, senders);
    catch_interrupts(false);
    end = conclude(k, end);
    for (size_t i = 0; i < k->batch_count; i++) {
        batch_fini(k->batches[i]);
        free(k->batches[i]);
    }
    buf_fini(&k->input);
    (void)pthread_cond_destroy(&k->changed);
    (void)pthread_mutex_destroy(&k->lock);
    return end;
}

/* ---- arguments ---- */

static bool read_run_id(struct bulk *k)
{
    static const char allowed[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._:-";
    const char *id = given(k->in, "run-id");
    uint64_t random = 0;

    if (!id) {
        while (getrandom(&random, sizeof random, 0) != (ssize_t)sizeof random)
            ;
        (void)snprintf(k->run_id, sizeof k->run_id, "run-%016" PRIx64, random);
        id = k->run_id;
    }
    k->rules.run_id = id;
    if (*id && !id[strspn(id, allowed)] && strlen(id) <= 100)
        return true;
    verb_misused(k->in, "--run-id is \"%s\", expected 1 to 100 of [A-Za-z0-9._:-]", id);
    return false;
}

static bool read_rules(struct bulk *k)
{
    int64_t from_line = 1;

    k->rules.wait_ms = -1;
    k->rules.patience_ms = 60000;
    k->rules.in_haste = is_interrupted;
    k->rules.id_from = given(k->in, "id-from");
    if (!given_duration(k->in, "wait", &k->rules.wait_ms)
        || !given_duration(k->in, "retry-for", &k->rules.patience_ms) || !read_run_id(k)
        || !given_number(k->in, "from-line", 1, INT64_MAX, &from_line))
        return false;
    k->first_line = (size_t)from_line;
    k->sender_count = k->rules.wait_ms > 0 ? SENDERS_THAT_WAIT : SENDERS;
    k->batch_count = 2 * k->sender_count;
    return true;
}

/* When an earlier run is continued, its rejects are kept. */
static int open_rejects(struct bulk *k, const char *name, const struct stat *input)
{
    struct stat st;

    if (stat(name, &st) == 0 && st.st_dev == input->st_dev && st.st_ino == input->st_ino)
        return verb_misused(k->in, "%s is --file and --rejects at once", name);
    k->rejects = fopen(name, k->first_line > 1 ? "ae" : "we");
    if (!k->rejects || fstat(fileno(k->rejects), &st) != 0)
        return verb_failed(k->in, CLI_USAGE, "%s: %s", name, strerror(errno));
    k->rejects_size = S_ISREG(st.st_mode) ? st.st_size : -1;
    return CLI_OK;
}

static int open_files(struct bulk *k)
{
    const char *file = given(k->in, "file");
    const char *rejects = given(k->in, "rejects");
    bool is_stdin = strcmp(file, "-") == 0;
    struct stat st;

    k->name = is_stdin ? "standard input" : file;
    k->fd = is_stdin ? STDIN_FILENO : open(file, O_RDONLY | O_CLOEXEC);
    if (k->fd < 0 || fstat(k->fd, &st) != 0)
        return verb_failed(k->in, CLI_USAGE, "%s: %s", file, strerror(errno));
    if (S_ISDIR(st.st_mode))
        return verb_failed(k->in, CLI_USAGE, "%s: it is a folder", file);
    if (S_ISREG(st.st_mode))
        k->size = st.st_size;
    return rejects ? open_rejects(k, rejects, &st) : CLI_OK;
}

int submit_file(const struct invocation *in, struct slice head)
{
    struct bulk k = {.in = in, .rules = {.head = head}, .fd = -1};
    int end = read_rules(&k) ? open_files(&k) : CLI_USAGE;

    if (end == CLI_OK)
        end = submit_all(&k);
    if (k.fd > STDIN_FILENO)
        (void)close(k.fd); /* it was only read */
    return end;
}
