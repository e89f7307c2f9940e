/* Gathers changes, claims and reads into one store job at a time and applies its results (landed.c)
 * on the event loop. Only job_run and what it calls runs on the store's thread. */

#include "scheduler/internal.h"

#include <stdlib.h>

enum {
    CLAIM_MAX = 512,
    LOAD_MAX = 512,
    CLAIMS_MAX = 64,
    CLAIMS_OF_LINE = 4,
    LOOK_MAX = 256,
    POLL_MAX = 256,
    SAVES_MAX = 16
};

/* One batch at the store: changes and claims in one transaction, then reads. */
struct job {
    struct store_job store_job;
    struct link untold; /* its messages are durable, but not reported yet */
    struct scheduler *s;
    struct arena arena;
    size_t used, total; /* of the arena, by the job alone */
    int64_t asked_at;
    struct batch batch;
    struct live **lives; /* of the changes */
    struct live **loaded;
    struct reading *loads;
    size_t load_count;
    bool seizes, surveys, polls;
    struct survey survey;
    struct lease_try lease_try;
    struct lease lease;
    int64_t poll_after_seq;
    struct row_page polled;
    enum err lease_err, survey_err, poll_err;
    bool looks;
    struct list_query look;
    struct row_page looked;
    enum err look_err;
    struct agent_change saves[SAVES_MAX]; /* of breakers */
    enum err save_errs[SAVES_MAX];
    size_t save_count;
    bool reads_agents;
    uint64_t agents_after, agents_generation;
    struct agent_row *agents;
    size_t agent_count;
    enum err agents_err;
    bool reads_overruns, has_overruns;
    struct overrun *overruns;
    size_t overrun_count;
    enum err overruns_err;
    bool probe; /* only checks whether the store works again */
    enum err err;
    struct error error;
};

/* ---- on the store's thread ---- */

/* For an id that is not found: did it belong to a deleted task? */
static void look_for_gone(struct store *store, struct job *j, struct reading *r)
{
    struct error e = {0};

    r->gone.until = 0;
    if (r->err != ERR_NOT_FOUND)
        return;
    enum err err = store->ops->reserved(store, r->id, &j->arena, &r->gone, &e);
    if (err == ERR_OK || err == ERR_NOT_FOUND)
        return;
    r->err = err;
    r->error = e;
}

/* Reads the rows one by one if that is cheap, or to find which of them cannot be read. */
static void load_all(struct store *store, struct job *j)
{
    bool many = store->ops->get_many && j->load_count > 1;
    struct error e = {0};
    enum err err = many ? store->ops->get_many(store, j->loads, j->load_count, &j->arena, &e)
                        : ERR_NOT_FOUND; /* nothing was read yet */

    for (size_t i = 0; err != ERR_OK && i < j->load_count; i++) {
        struct reading *r = &j->loads[i];
        r->err = err;
        r->error = e;
        if (!err_is_transient(err))
            r->err = store->ops->get(store, r->id, &j->arena, &r->row, &r->error);
    }
    for (size_t i = 0; i < j->load_count; i++)
        look_for_gone(store, j, &j->loads[i]);
}

/* Each is a transaction of its own: the state of breakers is independent of the tasks. */
static void save_all(struct store *store, struct job *j)
{
    struct error e = {0};

    for (size_t i = 0; i < j->save_count; i++) {
        j->save_errs[i] = store->ops->agent_put(store, &j->saves[i], NULL, &e);
        if (err_is_transient(j->save_errs[i]))
            j->error = e;
    }
}

/* Was a task taken over from a node that its expressions may have killed? */
static bool takes_over(const struct job *j)
{
    for (size_t i = 0; j->s->config.shared && i < j->batch.claim_count; i++) {
        const struct claim *c = &j->batch.claims[i];
        if ((c->kind == CLAIM_NODE || c->kind == CLAIM_BOOT) && c->row_count > 0)
            return true;
    }
    return false;
}

static void read_overruns(struct store *store, struct job *j)
{
    bool surveyed = j->surveys && j->survey_err == ERR_OK;

    j->reads_overruns |= j->err == ERR_OK && takes_over(j);
    j->reads_overruns |= surveyed && (j->survey.overruns || j->has_overruns);
    if (j->reads_overruns)
        j->overruns_err =
            store->ops->overrun_list(store, &j->arena, &j->overruns, &j->overrun_count, &j->error);
}

static void job_run(struct store_job *sj, struct store *store)
{
    struct job *j = CONTAINER_OF(sj, struct job, store_job);

    if (j->surveys)
        j->survey_err = store->ops->survey(store, &j->survey, &j->arena, &j->error);
    if (j->seizes)
        j->lease_err = store->ops->lease(store, &j->lease_try, &j->arena, &j->lease, &j->error);
    if (j->batch.change_count + j->batch.claim_count > 0)
        j->err = store->ops->commit(store, &j->batch, &j->arena, &j->error);
    else if (j->probe)
        j->err = store->ops->probe(store, &j->error);
    read_overruns(store, j);
    load_all(store, j);
    save_all(store, j);
    if (j->reads_agents)
        j->agents_err = store->ops->agent_since(store, j->agents_after, &j->arena, &j->agents,
                                                &j->agent_count, &j->agents_generation, &j->error);
    if (j->looks)
        j->look_err = store->ops->list(store, &j->look, &j->arena, &j->looked, &j->error);
    if (j->polls)
        j->poll_err = store->ops->requested(store, j->s->me, j->poll_after_seq, POLL_MAX, &j->arena,
                                            &j->polled, &j->error);
}

/* ---- results, on the event loop ---- */

static int number_order(const void *a, const void *b)
{
    const struct message *x = a;
    const struct message *y = b;

    return (x->seq > y->seq) - (x->seq < y->seq);
}

static bool has_messages(const struct job *j)
{
    for (size_t i = 0; i < j->batch.change_count; i++)
        if (j->batch.changes[i].message_count > 0)
            return true;
    return false;
}

/* Includes messages of a commit of unknown outcome: nothing else may ever report that they
 * exist. */
static void tell_of_messages(const struct scheduler *s, struct job *j)
{
    size_t most = 0;
    size_t count = 0;

    for (size_t i = 0; i < j->batch.change_count; i++)
        most += j->batch.changes[i].message_count;
    struct message *list = arena_alloc(&j->arena, most * sizeof *list);
    for (size_t i = 0; i < j->batch.change_count; i++) {
        const struct change *c = &j->batch.changes[i];
        enum err outcome = j->err == ERR_OK ? c->outcome : j->err;
        bool is_sure = outcome == ERR_OK && c->first_message != 0;
        if (outcome != ERR_OK && outcome != ERR_UNKNOWN)
            continue;
        for (size_t k = 0; k < c->message_count; k++) {
            list[count] = c->messages[k];
            list[count].since = list[count].created_at;
            list[count++].seq = is_sure ? c->first_message + (int64_t)k : 0;
        }
    }
    for (size_t i = 1; i < count; i++)
        if (list[i].seq < list[i - 1].seq) { /* the store numbers them target by target */
            qsort(list, count, sizeof *list, number_order);
            break;
        }
    if (count > 0)
        s->outside.messages(s->outside.arg, list, count);
}

static void job_free(struct job *j)
{
    struct arena a = j->arena; /* the job lies in its own arena */

    arena_fini(&a);
}

static void job_done(struct store_job *sj)
{
    struct job *j = CONTAINER_OF(sj, struct job, store_job);
    struct scheduler *s = j->s;
    enum err err = j->err;

    ASSERT(s->job == j);
    scheduler_hold_now(s);
    s->job = NULL;
    s->job_took_ms = scheduler_now(s) - j->asked_at;
    if (err == ERR_OK)
        err = j->look_err       ? j->look_err
              : j->agents_err   ? j->agents_err
              : j->overruns_err ? j->overruns_err
              : j->poll_err     ? j->poll_err
              : j->survey_err   ? j->survey_err
                                : j->lease_err;
    for (size_t i = 0; i < j->save_count && err == ERR_OK; i++)
        if (err_is_transient(j->save_errs[i]))
            err = j->save_errs[i];
    for (size_t i = 0; i < j->load_count && err == ERR_OK; i++)
        if (j->loads[i].err != ERR_OK && err_is_transient(j->loads[i].err)) {
            err = j->loads[i].err;
            j->error = j->loads[i].error;
        }
    if (j->seizes && j->lease_err == ERR_OK)
        shared_leased(s, j->lease_try.now, &j->lease);
    if (j->surveys && j->survey_err == ERR_OK)
        shared_surveyed(s, &j->survey);
    if (j->surveys && j->survey_err != ERR_OK)
        s->survey_at = 0; /* with the next job */
    for (size_t i = 0; i < j->save_count; i++)
        breakers_saved(s, &j->saves[i], j->save_errs[i]);
    if (j->reads_overruns)
        s->overruns_stale = j->overruns_err != ERR_OK;
    if (j->reads_overruns && j->overruns_err == ERR_OK)
        overruns_read(s, j->overruns, j->overrun_count);
    if (j->reads_agents && j->agents_err == ERR_OK)
        breakers_read(s, j->agents, j->agent_count, j->agents_generation);
    if (j->err == ERR_OK && s->outside.committed
        && j->batch.change_count + j->batch.claim_count > 0)
        s->outside.committed(s->outside.arg, j->batch.change_count, sj->took_us);
    landed_trouble(s, err, j->batch.change_count + j->batch.claim_count > 0 || j->probe, &j->error);
    for (size_t i = 0; i < j->batch.change_count; i++) {
        j->lives[i]->in_flight = false;
        if (j->err != ERR_OK)
            j->batch.changes[i].outcome = j->err;
        landed_change(s, j->lives[i], &j->batch.changes[i]);
    }
    /* A task that killed another node may be among them: they are loaded once the overruns are
     * known. */
    bool known = j->err == ERR_OK && (j->overruns_err == ERR_OK || !takes_over(j));
    for (size_t i = 0; i < j->batch.claim_count && known; i++)
        landed_claim(s, &j->batch.claims[i]);
    if (j->looks && j->look_err == ERR_OK)
        landed_look(s, &j->looked);
    if (j->polls && j->poll_err == ERR_OK)
        shared_polled(s, &j->polled);
    if (j->batch.claim_count > 0 && (j->err == ERR_UNKNOWN || (j->err == ERR_OK && !known)))
        landed_claims_unknown(s);
    for (size_t i = 0; i < j->load_count; i++)
        landed_load(s, j->loaded[i], &j->loads[i]);
    scheduler_let_now_go(s);
    if (has_messages(j))
        list_push(&s->untold, &j->untold);
    else
        job_free(j);
}

/* Reporting takes long enough that the store gets its next job first. */
void flush_tell(struct scheduler *s)
{
    for (struct link *first = NULL; (first = list_first(&s->untold));) {
        struct job *j = CONTAINER_OF(first, struct job, untold);
        link_remove(first);
        if (s->outside.messages)
            tell_of_messages(s, j);
        job_free(j);
    }
}

void flush_forget(struct scheduler *s)
{
    for (struct link *first = NULL; (first = list_first(&s->untold));) {
        link_remove(first);
        job_free(CONTAINER_OF(first, struct job, untold));
    }
    if (s->spare_job)
        job_free(s->spare_job);
    s->spare_job = NULL;
}

/* ---- gathering ---- */

/* A lower bound is enough: wake_at moves only when it must be earlier, or when the task ends or is
 * released. A task at work has no deadline between two attempts, but will have one. */
static void set_wake_at(const struct live *l, struct change *c)
{
    int64_t wake_at = task_wake_at(&l->task);
    bool at_work = c->row.locked_by.ptr && !task_state_is_end(l->task.state);

    if (l->fresh) {
        c->row.wake_at = wake_at;
        return;
    }
    bool keep = l->row_wake_at != 0 && (wake_at ? l->row_wake_at <= wake_at : at_work);
    c->row.wake_at = keep ? l->row_wake_at : wake_at;
    c->wake_moved = c->row.wake_at != l->row_wake_at;
}

/* Calls with a part in this batch are answered with it; later arrivals go to the next batch. */
static void close_calls(struct live *l)
{
    LIST_FOREACH (link, after, &l->astir) {
        const struct live_step *ls = CONTAINER_OF(link, struct live_step, astir);
        if (ls->work && ls->pending)
            dispatch_close(ls->work);
    }
    LIST_FOREACH (link, after, &l->applied) {
        struct command *c = CONTAINER_OF(link, struct command, link);
        if (c->kind == COMMAND_RESULT)
            dispatch_close(c->work);
    }
}

static void release_if_idle(struct scheduler *s, struct live *l)
{
    const struct event release = {.kind = EVENT_RELEASE, .step = -1};

    if (!start_should_release(s, l))
        return;
    enum answer answer =
        decide(&l->definition->workflow, &l->task, &release, scheduler_now(s), &l->fx);
    ASSERT(answer == ANSWER_ACCEPTED);
}

/* Operator changes since the last commit are stored with their effects: both are durable, or
 * neither is. After a conflict both are decided and recorded again. */
static void fill_audits(struct scheduler *s, struct job *j, const struct live *l, struct change *c)
{
    struct audit *audits = NULL;
    size_t count = 0;

    LIST_FOREACH (link, after, &l->applied)
        count += CONTAINER_OF(link, struct command, link)->kind == COMMAND_ASK;
    if (count == 0)
        return;
    audits = arena_alloc(&j->arena, count * sizeof *audits);
    c->audits = audits;
    LIST_FOREACH (link, after, &l->applied) {
        const struct command *cmd = CONTAINER_OF(link, struct command, link);
        const struct ask *a = cmd->ask;
        if (cmd->kind != COMMAND_ASK || a->kind == ASK_SUBMIT || !a->actor.ptr
            || cmd->answer != ANSWER_ACCEPTED)
            continue;
        audits[c->audit_count++] = (struct audit){.at = scheduler_now(s),
                                                  .actor = a->actor,
                                                  .verb = slice_of(ask_kind_text(a->kind)),
                                                  .task = l->id,
                                                  .step = a->step,
                                                  .reason = a->reason,
                                                  .detail = arena_copy(&j->arena, cmd->detail),
                                                  .address = a->address};
    }
}

/* The messages are stored with the change: both are durable, or neither is. */
static void fill_messages(struct scheduler *s, struct job *j, const struct live *l,
                          struct change *c)
{
    const struct telling now = {
        .workflow = &l->definition->workflow,
        .task = &l->task,
        .revision = c->row.revision,
        .reply = &l->reply,
        .source = s->config.source,
        .alert = l->fx.alert,
        .now = scheduler_now(s),
    };

    c->messages =
        messages_of(&l->messages, &now, scheduler_scratch(s), &j->arena, &c->message_count);
}

static void fill_change(struct scheduler *s, struct job *j, struct live *l, struct change *c)
{
    struct buf *doc = scheduler_scratch(s);

    *c = (struct change){.kind = l->fresh ? CHANGE_INSERT : CHANGE_UPDATE,
                         .submission = l->fresh ? l->submission : 0};
    task_encode_again(&l->definition->workflow, &l->task, l->encoded, &j->arena, doc, &c->row);
    c->row.doc = arena_copy(&j->arena, buf_view(doc));
    c->row.revision = l->fresh ? 1 : l->task.revision + 1;
    c->row.seq = l->fresh ? 0 : l->row_seq;
    c->drops_overruns = overruns_are_over(s, l);
    c->drops_waits = !l->fresh && l->has_waits;
    c->row.waiting_for = SLICE_NONE;
    c->row.rank = task_rank(&l->task);
    if (l->task.state == TASK_PENDING && !l->task.locked_by.ptr && l->task.paused_at == 0)
        start_wait_fields(s, l, &j->arena, &c->row); /* no claim finds a paused task */
    set_wake_at(l, c);
    fill_audits(s, j, l, c);
    if (l->reply.to.ptr)
        fill_messages(s, j, l, c);
}

/* An accepted event without a change needs no commit, but other nodes may have made the answer
 * untrue. */
static void answer_without_commit(struct scheduler *s, struct live *l)
{
    if (s->config.shared && !list_empty(&l->applied))
        live_reload(s, l);
    else
        inbox_applied_done(s, l);
}

/* Limits the allocation, which is zeroed, to what is needed: most batches have one or two
 * changes. */
static size_t length_of(const struct link *list, size_t max)
{
    size_t n = 0;

    LIST_FOREACH (link, after, list) {
        if (n == max)
            break;
        n++;
    }
    return n;
}

static size_t size_of(const struct change *c)
{
    size_t size = c->row.doc.len;

    for (size_t i = 0; i < c->row.payload_count; i++)
        size += c->row.payloads[i].json.len;
    return size;
}

/* True if an expression must be evaluated first and this turn may not. A new task is not stored
 * before its conditions are decided. */
static bool has_to_wait(struct scheduler *s, struct live *l)
{
    if (l->fresh && link_is_in(&l->undecided))
        return true;
    if (!l->fx.ended || l->task.state != TASK_PROCESSED || !l->definition->output)
        return false;
    if (!effort_may(s, EFFORT_OUTPUTS))
        return true;
    input_output(s, l);
    return false;
}

static void gather_changes(struct scheduler *s, struct job *j)
{
    size_t max = length_of(&s->dirty, s->config.batch_max);
    size_t size = 0;
    struct link later;

    if (max == 0)
        return;
    list_init(&later);
    j->batch.changes = arena_alloc(&j->arena, max * sizeof *j->batch.changes);
    j->lives = arena_alloc(&j->arena, max * sizeof(struct live *));
    struct link *first = NULL;
    while (j->batch.change_count < max && size < s->config.batch_bytes
           && (first = list_pop(&s->dirty)) != NULL) {
        struct live *l = CONTAINER_OF(first, struct live, dirty_link);
        release_if_idle(s, l);
        if (!l->fx.changed && !l->fresh) {
            answer_without_commit(s, l);
            continue;
        }
        if (has_to_wait(s, l)) {
            list_push(&later, &l->dirty_link);
            continue;
        }
        size_t n = j->batch.change_count++;
        if (l->bulk_at == 0)
            s->stats.others_at = scheduler_now(s);
        fill_change(s, j, l, &j->batch.changes[n]);
        size += size_of(&j->batch.changes[n]);
        j->lives[n] = l;
        start_unqueue(s, l);
        close_calls(l);
        l->in_flight = true;
    }
    list_take_all(&later, &s->dirty);
    list_take_all(&s->dirty, &later);
}

static struct claim *add_claim(struct scheduler *s, struct job *j, enum claim_kind kind)
{
    if (j->batch.claim_count == CLAIMS_MAX)
        return NULL;
    if (!j->batch.claims)
        j->batch.claims = arena_alloc(&j->arena, CLAIMS_MAX * sizeof *j->batch.claims);
    struct claim *c = &j->batch.claims[j->batch.claim_count++];
    *c = (struct claim){.kind = kind,
                        .locked_by = s->me,
                        .now = scheduler_now(s),
                        .limit = CLAIM_MAX};
    return c;
}

/* A range of the ranks in which tasks wait for an agent; `before` 0: no upper bound. */
struct range {
    int64_t from, before;
};

static void claim_range(struct scheduler *s, struct job *j, const struct agent *a, bool among,
                        size_t room, struct range r)
{
    struct claim *c = add_claim(s, j, CLAIM_AGENT);

    if (!c)
        return;
    c->agent = arena_copy(&j->arena, a->name);
    c->among = among;
    c->rank_from = r.from;
    c->rank_before = r.before;
    if (room < c->limit)
        c->limit = room;
}

/* Claims tasks that wait for this agent alone, and tasks that also wait for others; the queue
 * orders them by rank again. Together they may be twice what there is room for; lane_excess counts
 * that, and nothing releases it. */
static void claim_backlog(struct scheduler *s, struct job *j, const struct agent *a,
                          struct backlog b, size_t room, struct range r)
{
    if (room > 0 && b.alone)
        claim_range(s, j, a, false, room, r);
    if (room > 0 && b.among)
        claim_range(s, j, a, true, room, r);
}

/* Two actions may share a line by a hash collision. Then each leaves what the other has no room
 * for. */
static size_t room_of_line(const struct agent *a, size_t nth, int64_t now)
{
    size_t room = lane_room(a->lines[nth], now);

    for (size_t i = 0; i < a->line_count && room > 0; i++)
        if (a->lines[i]->line == a->lines[nth]->line) {
            size_t other = lane_held_by(a->lines[i], now) ? 0 : lane_room(a->lines[i], now);
            room = other < room ? other : room;
        }
    return room;
}

/* Claims for the line, and for the ranks between it and the next line. */
static void claim_for_line(struct scheduler *s, struct job *j, const struct agent *a, size_t nth,
                           size_t loose, int64_t now)
{
    const struct lane *l = a->lines[nth];
    int64_t end = l->line + (INT64_C(1) << LINE_SHIFT);
    int64_t next = nth + 1 < a->line_count ? a->lines[nth + 1]->line : 0;

    if (backlog_any(l->backlog))
        claim_backlog(s, j, a, l->backlog, room_of_line(a, nth, now), (struct range){l->line, end});
    if (backlog_any(l->more) && (next == 0 || next > end))
        claim_backlog(s, j, a, l->more, loose, (struct range){end, next});
}

static void claim_for_agent(struct scheduler *s, struct job *j, struct agent *a)
{
    const struct lane plain = {.agent = a}; /* a lane without a limit of its own */
    int64_t now = scheduler_now(s);
    bool connected = dispatch_is_connected(a, now);
    size_t loose = connected ? lane_room(&plain, now) : 0;
    size_t first = a->claim_line;

    if (backlog_any(a->backlog))
        claim_backlog(s, j, a, a->backlog, loose,
                      (struct range){INT64_MIN, a->line_count ? a->lines[0]->line : 0});
    a->claim_line = 0;
    for (size_t i = 0; connected && i < a->line_count; i++) {
        size_t nth = (first + i) % a->line_count;
        if (j->batch.claim_count + CLAIMS_OF_LINE > CLAIMS_MAX) {
            a->claim_line = nth;
            return;
        }
        claim_for_line(s, j, a, nth, loose, now);
    }
}

static void gather_claims(struct scheduler *s, struct job *j)
{
    struct agent *a = NULL;

    if (s->draining || !shared_may_claim(s))
        return;
    if (s->taking_over) /* what an older boot had in work: until that is known, limits let nothing
                           start */
        (void)add_claim(s, j, CLAIM_BOOT);
    if (s->reclaiming && s->stats.live < 2 * s->config.live_max)
        (void)add_claim(s, j, CLAIM_NODE);
    if (s->stats.live >= s->config.live_max)
        return;
    if (s->time_next_at != 0 && s->time_next_at <= scheduler_now(s))
        (void)add_claim(s, j, CLAIM_TIME);
    if (s->among_next_at != 0 && s->among_next_at <= scheduler_now(s)) {
        struct claim *c = add_claim(s, j, CLAIM_TIME);
        if (c)
            c->among = true;
    }
    /* Starts where the last batch stopped, if it had more agents than claims. */
    size_t i = s->claim_from;
    s->claim_from = 0;
    while ((a = map_next(&s->dispatch.agents, &i))) {
        if (j->batch.claim_count == CLAIMS_MAX) {
            s->claim_from = i - 1;
            return;
        }
        claim_for_agent(s, j, a);
    }
}

static void gather_loads(struct scheduler *s, struct job *j)
{
    size_t max = length_of(&s->loads, LOAD_MAX);

    if (max == 0)
        return;
    j->loads = arena_alloc(&j->arena, max * sizeof *j->loads);
    j->loaded = arena_alloc(&j->arena, max * sizeof(struct live *));
    while (j->load_count < max && !list_empty(&s->loads)) {
        struct live *l = CONTAINER_OF(list_first(&s->loads), struct live, load_link);
        link_remove(&l->load_link);
        l->in_flight = true; /* nothing may be decided until it is read */
        LIST_FOREACH (link, after, &l->inbox)
            CONTAINER_OF(link, struct command, link)->overtook = false;
        j->loaded[j->load_count] = l;
        j->loads[j->load_count++] = (struct reading){.id = l->id};
    }
}

static void gather_look(struct scheduler *s, struct job *j)
{
    j->looks = s->looking;
    j->look = (struct list_query){.states = 1U << s->look_state,
                                  .before_seq = s->look_before_seq,
                                  .limit = LOOK_MAX};
}

static struct job *job_new(struct scheduler *s)
{
    struct job *j = s->spare_job;
    struct arena a = {0};

    s->spare_job = NULL;
    if (j)
        return j;
    j = arena_alloc(&a, sizeof *j);
    j->arena = a;
    j->used = a.used;
    j->total = a.total;
    j->s = s;
    return j;
}

/* Most turns gather nothing: then the job serves the next one, if it is as it was made. */
static void job_drop(struct scheduler *s, struct job *j)
{
    if (j->arena.total == j->total && j->arena.used == j->used)
        s->spare_job = j;
    else
        job_free(j);
}

bool flush(struct scheduler *s)
{
    if (s->job || scheduler_now(s) < s->retry_at)
        return false;
    struct job *j = job_new(s);
    gather_changes(s, j);
    gather_claims(s, j);
    gather_loads(s, j);
    gather_look(s, j);
    j->seizes = shared_seize(s, &j->arena, &j->lease_try);
    j->polls = s->polling;
    j->poll_after_seq = s->poll_after_seq;
    j->probe = s->troubled;
    j->save_count = breakers_to_save(s, &j->arena, j->saves, SAVES_MAX);
    j->reads_agents = s->agents_stale;
    j->agents_after = s->agents_generation;
    j->reads_overruns = s->overruns_stale;
    j->has_overruns = s->overruns.len > 0;
    bool any = j->seizes || j->polls || j->looks || j->probe || j->reads_agents || j->reads_overruns
               || j->save_count || j->batch.change_count + j->batch.claim_count + j->load_count > 0;
    j->surveys = shared_survey(s, &j->arena, any, &j->survey);
    if (!any && !j->surveys) {
        job_drop(s, j);
        return false;
    }
    s->stats.batches++;
    s->stats.changes += j->batch.change_count;
    j->asked_at = scheduler_now(s);
    j->store_job =
        (struct store_job){.run = job_run, .done = job_done, .urgent = j->seizes || j->surveys};
    s->job = j;
    s->store->submit(s->store, &j->store_job);
    return true;
}
