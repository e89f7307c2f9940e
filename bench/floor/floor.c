/*
 * The cost of the store alone: the row changes of TASKS tasks in batches, with nothing else around
 * them. The values of CHANGES, CLAIMED and BATCH come from the metrics of a server under the load
 * that is to be compared. Prints one JSON object. life.c is the life of one task.
 */

/*
 * Usage: bench-floor WHERE DEFINITION TASKS PAYLOAD CHANGES CLAIMED BATCH IN_FLIGHT [FIRST]
 *   WHERE      a folder (SQLite), or the conninfo of a database
 *   PAYLOAD    bytes of input and of output of each step
 *   CHANGES    per task, without the claim; its fraction is the share of tasks with one more
 *   CLAIMED    share of tasks that are claimed
 *   BATCH      changes and claims per transaction
 *   FIRST      number of the first task; distinct for each run in the same store
 */

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>

#include "../measure.h"
#include "floor/life.h"
#include "store/postgres/postgres.h"
#include "store/sqlite/sqlite.h"

enum { CLAIM_MAX = 512, LIVES = 4, ID_SIZE = 24 };

struct floor {
    struct store *store;
    bool is_file;
    struct life lives[LIVES]; /* few changes, many; the same with a claim */
    double many, claimed;     /* share of tasks */
    long tasks, begun, ended, first;
    long in_flight, live;
    size_t batch;
    unsigned char *life;  /* per task: index into lives */
    unsigned short *next; /* per task: its next change */
    long *queue;          /* tasks in the order of their next changes: a ring */
    size_t head, len;
    long unclaimed;
    long changes, claims, batches;
    double busy_us;
};

static double cpu_us(void)
{
    struct rusage u;

    (void)getrusage(RUSAGE_SELF, &u);
    return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) * 1e6
           + (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec);
}

static double written(void)
{
    char line[100];
    double bytes = 0;
    FILE *f = fopen("/proc/self/io", "r");

    while (f && fgets(line, sizeof line, f))
        (void)sscanf(line, "write_bytes: %lf", &bytes);
    if (f)
        (void)fclose(f);
    return bytes;
}

_Noreturn static void die(const char *text)
{
    (void)fprintf(stderr, "bench-floor: %s\n", text);
    exit(1);
}

/* ---- tasks in progress ---- */

static void push(struct floor *f, long task)
{
    f->queue[(f->head + f->len++) % (size_t)f->in_flight] = task;
}

static long pop(struct floor *f)
{
    long task = f->queue[f->head];

    f->head = (f->head + 1) % (size_t)f->in_flight;
    f->len--;
    return task;
}

static const struct life *life_of(const struct floor *f, long task)
{
    return &f->lives[f->life[task]];
}

/* Spreads the share evenly over any number of tasks. */
static bool is_of_share(long task, double share)
{
    return floor((double)(task + 1) * share) > floor((double)task * share);
}

static long begin(struct floor *f)
{
    long task = f->begun++;

    f->life[task] = (unsigned char)(is_of_share(task, f->many) + 2 * is_of_share(task, f->claimed));
    f->live++;
    return task;
}

static void fill(const struct floor *f, long task, struct arena *a, struct change *ret)
{
    char id[ID_SIZE];

    *ret = life_of(f, task)->changes[f->next[task]];
    (void)snprintf(id, sizeof id, "t-%09ld", f->first + task);
    ret->row.id = arena_copy(a, slice_of(id));
    ret->row.revision = f->next[task] + 1u;
    ret->row.submitted_at += task / 10;
    ret->row.rank += task / 10;
    if (ret->row.wake_at)
        ret->row.wake_at += task / 10;
}

/* Moves a task on after a change or claim. */
static void advance(struct floor *f, long task)
{
    const struct life *l = life_of(f, task);

    f->next[task]++;
    if (f->next[task] == l->count) {
        f->ended++;
        f->live--;
    } else if (l->claim_at != 0 && f->next[task] == l->claim_at) {
        f->unclaimed++; /* until a claim finds it */
    } else {
        push(f, task);
    }
}

static void take_claimed(struct floor *f, const struct claim *c)
{
    for (size_t i = 0; i < c->row_count; i++) {
        long task = strtol(c->rows[i].id.ptr + 2, NULL, 10) - f->first;
        if (task < 0 || task >= f->begun || f->next[task] != life_of(f, task)->claim_at)
            die("a claim found a task that is not to be claimed");
        f->unclaimed--;
        f->claims++;
        advance(f, task);
    }
}

static void commit(struct floor *f)
{
    CLEANUP(arena_fini) struct arena a = {0};
    struct error e = {0};
    struct change *changes = arena_alloc(&a, f->batch * sizeof *changes);
    long *tasks = arena_alloc(&a, f->batch * sizeof *tasks);
    struct claim c = {.kind = CLAIM_AGENT,
                      .agent = SLICE("a"),
                      .locked_by = SLICE("n1/1"),
                      .now = 1};
    struct batch b = {.changes = changes};

    c.limit = (size_t)f->unclaimed < f->batch ? (size_t)f->unclaimed : f->batch;
    if (c.limit > CLAIM_MAX)
        c.limit = CLAIM_MAX;
    size_t room = f->batch - c.limit;
    while (b.change_count < room
           && (f->len > 0 || (f->live < f->in_flight && f->begun < f->tasks))) {
        long task = f->len > 0 ? pop(f) : begin(f);
        tasks[b.change_count] = task;
        fill(f, task, &a, &changes[b.change_count++]);
    }
    b.claims = c.limit > 0 ? &c : NULL;
    b.claim_count = c.limit > 0;
    double from = now_us();
    if (f->store->ops->commit(f->store, &b, &a, &e) != ERR_OK)
        die(e.text);
    if (f->is_file)
        (void)sqlite_store_maintain(f->store, false);
    f->busy_us += now_us() - from;
    f->batches++;
    f->changes += (long)b.change_count;
    for (size_t i = 0; i < b.change_count; i++) {
        if (changes[i].outcome != ERR_OK)
            die("a change was refused");
        advance(f, tasks[i]);
    }
    if (c.limit > 0)
        take_claimed(f, &c);
}

/* ---- options ---- */

static struct definition *read_definition(const char *path)
{
    static struct buf text;
    static struct mistakes m; /* too large for the stack */
    struct definition *d = NULL;
    char bytes[4096];
    size_t n = 0;
    FILE *file = fopen(path, "r");

    if (!file)
        die("the definition cannot be read");
    while ((n = fread(bytes, 1, sizeof bytes, file)) > 0)
        buf_add(&text, bytes, n);
    (void)fclose(file);
    if (definition_parse(buf_view(&text), DEFINITION_GUESS, &d, &m, NULL) != ERR_OK)
        die("the definition has mistakes: intact validate says which");
    d->workflow.version = 1;
    return d;
}

static void open_store(struct floor *f, const char *where)
{
    const struct postgres_options o = {.conninfo = where, .schema = "bench_floor", .node = "n1"};
    struct error e = {0};

    f->is_file = !strchr(where, '=') && !strstr(where, "://");
    enum err err = f->is_file ? sqlite_store_open(where, &f->store, &e)
                              : postgres_store_open(&o, &f->store, &e);
    if (err != ERR_OK)
        die(e.text);
}

static double limited(double v, double least, double most)
{
    return v < least ? least : v > most ? most : v;
}

static void make_lives(struct floor *f, const struct definition *d, long payload, double changes)
{
    static struct buf text;
    double most = (double)life_events(d, SLICE("null"));

    buf_str(&text, "{\"text\":\"");
    while (text.len + 2 < (size_t)payload)
        buf_byte(&text, "a receipt, a parcel's number, an address, "[text.len % 42]);
    buf_str(&text, "\"}");
    changes = limited(changes, 2, most);
    f->many = changes - floor(changes);
    for (int i = 0; i < LIVES; i++) {
        double count = limited(floor(changes) + i % 2, 2, most);
        life_make(&f->lives[i], d, buf_view(&text), (size_t)count, i >= 2);
    }
}

int main(int argc, char **argv)
{
    static struct floor f;

    if (argc != 9 && argc != 10) {
        (void)fprintf(stderr, "usage: bench-floor WHERE DEFINITION TASKS PAYLOAD CHANGES CLAIMED "
                              "BATCH IN_FLIGHT [FIRST]\n");
        return 2;
    }
    struct definition *d = read_definition(argv[2]);
    f.tasks = strtol(argv[3], NULL, 10);
    f.claimed = limited(strtod(argv[6], NULL), 0, 1);
    f.batch = (size_t)limited(strtod(argv[7], NULL), 1, 4096);
    f.in_flight = (long)limited(strtod(argv[8], NULL), (double)f.batch, 1e6);
    f.first = argc > 9 ? strtol(argv[9], NULL, 10) : 0;
    if (f.tasks < 1)
        die("TASKS has to be a number from 1");
    make_lives(&f, d, strtol(argv[4], NULL, 10), strtod(argv[5], NULL));
    f.life = calloc((size_t)f.tasks, sizeof *f.life);
    f.next = calloc((size_t)f.tasks, sizeof *f.next);
    f.queue = calloc((size_t)f.in_flight, sizeof *f.queue);
    if (!f.life || !f.next || !f.queue)
        die("no memory");
    open_store(&f, argv[1]);
    double cpu = cpu_us();
    double bytes = written();
    while (f.ended < f.tasks)
        commit(&f);
    cpu = cpu_us() - cpu;
    bytes = written() - bytes;
    f.store->ops->close(f.store);
    double tasks = (double)f.tasks;
    printf("{\"tasks\": %ld, \"batches\": %ld, \"changes_per_task\": %.3f, \"claims_per_task\": "
           "%.3f, \"seconds\": %.3f, \"tasks_per_s\": %.1f, \"changes_per_s\": %.1f, "
           "\"cpu_s_per_1000\": %.4f, \"bytes_per_task\": %.0f}\n",
           f.tasks, f.batches, (double)f.changes / tasks, (double)f.claims / tasks, f.busy_us / 1e6,
           tasks / f.busy_us * 1e6, (double)(f.changes + f.claims) / f.busy_us * 1e6,
           cpu / tasks / 1e3, bytes / tasks);
    for (int i = 0; i < LIVES; i++)
        life_fini(&f.lives[i]);
    definition_free(d);
    free(f.life);
    free(f.next);
    free(f.queue);
    return 0;
}
