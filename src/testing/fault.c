/* Faults of a run: what kinds there are, which one strikes where, and how they are written and told
 * (fault.h). suite_faults.c reads them from test files. */

#include "testing/fault.h"

#include "base/when.h"

static const struct fault_spec specs[FAULT_KINDS] = {
#define X(name, place, word, class, length, lasts) \
    [FAULT_##name] = {PLACE_##place, word, CLASS_##class, length, lasts},
    FAULTS(X)
#undef X
};

const struct fault_spec *fault_spec(enum fault_kind k)
{
    ASSERT(k > FAULT_NONE && k < FAULT_KINDS);
    return &specs[k];
}

static bool is_there(const struct fault *f, const struct fault_point *p)
{
    bool same = f->number == p->number || (f->lasts && f->number < p->number);

    return same && specs[f->kind].place == p->place && f->is_undo == p->is_undo
           && slice_eq(f->name, p->name);
}

/* One that names the point comes before one that lasts. */
const struct fault *fault_at(const struct fault_list *l, const struct fault_point *p)
{
    const struct fault *found = NULL;

    for (size_t i = 0; i < l->count; i++)
        if (is_there(&l->list[i], p) && (!found || l->list[i].number > found->number))
            found = &l->list[i];
    return found;
}

bool fault_is_of_nodes(enum fault_kind k)
{
    return k == FAULT_NODE_KILLED_BEFORE || k == FAULT_NODE_KILLED_AFTER || k == FAULT_NODE_HANGS;
}

bool faults_are_of_nodes(const struct fault_list *l)
{
    for (size_t i = 0; i < l->count; i++)
        if (fault_is_of_nodes(l->list[i].kind))
            return true;
    return false;
}

/* A service that did what was asked does not refuse the same request later. */
bool fault_fits(const struct fault_spec *s, const struct fault_point *p)
{
    if (s->place != p->place)
        return false;
    if (s == &specs[FAULT_REFUSED])
        return !p->took;
    return s != &specs[FAULT_CANCELLED] || !p->is_undo;
}

struct fault fault_make(enum fault_kind k, const struct fault_point *p)
{
    return (struct fault){.kind = k,
                          .name = p->name,
                          .is_undo = p->is_undo,
                          .number = p->number,
                          .ms = max_i64(specs[k].length_ms, 0)};
}

bool fault_equal(const struct fault *a, const struct fault *b)
{
    return a->kind == b->kind && a->is_undo == b->is_undo && a->number == b->number
           && a->lasts == b->lasts && a->ms == b->ms && slice_eq(a->name, b->name);
}

/* ---- writing ---- */

void fault_write(struct buf *b, const struct fault *f)
{
    const struct fault_spec *s = &specs[f->kind];
    static const char *const keys[] = {"request", "commit", "stop", "signal", "vote"};

    json_open(b, '{');
    if (s->place == PLACE_COMMIT || s->place == PLACE_STOP) {
        json_member_number(b, keys[s->place], f->number);
    } else {
        json_member_text(b, f->is_undo ? "undo" : keys[s->place], f->name);
        if (f->number != 1)
            json_member_number(b, "number", f->number);
    }
    json_member_text(b, "is", slice_of(s->word));
    if (f->lasts)
        json_member_bool(b, "always", true);
    if (s->length_ms >= 0 && f->ms != s->length_ms) {
        CLEANUP(buf_fini) struct buf length = {0};
        duration_write(&length, f->ms);
        json_member_text(b, "for", buf_view(&length));
    }
    json_close(b, '}');
}

/* What is told of a request: the text before the length and, if there is one, after it. */
static const struct telling {
    const char *before, *after;
} tellings[FAULT_KINDS] = {
    [FAULT_REQUEST_LOST] = {"is lost, or its agent dies before the effect", NULL},
    [FAULT_ANSWER_LOST] = {"has its effect, and the answer is lost, or its agent dies", NULL},
    [FAULT_REFUSED] = {"is refused", NULL},
    [FAULT_FAILS] = {"fails, without effect", NULL},
    [FAULT_FAILS_AFTER] = {"fails, after its effect", NULL},
    [FAULT_SLOW] = {"takes ", " longer"},
    [FAULT_LATE] = {"has its effect ", " after its complete-by"},
    [FAULT_ANSWER_LATE] = {"is answered ", " after its complete-by"},
    [FAULT_TWICE] = {"arrives twice", NULL},
    [FAULT_DOWN] = {"finds its service down, for ", ""},
    [FAULT_CANCELLED] = {"is sent, and the task is cancelled", NULL},
};

static void tell_request(struct buf *b, const struct fault *f, const char *length)
{
    const struct telling *t = &tellings[f->kind];

    buf_fmt(b, "request %u%s %s %.*s %s", f->number, f->lasts ? " and all further ones" : "",
            f->is_undo ? "to undo" : "of", SLICE_ARG(f->name), t->before);
    if (t->after)
        buf_fmt(b, "%s%s", length, t->after);
}

void fault_tell(struct buf *b, const struct fault *f)
{
    const struct fault_spec *s = &specs[f->kind];
    CLEANUP(buf_fini) struct buf length = {0};

    duration_tell(&length, f->ms);
    if (s->place == PLACE_REQUEST)
        tell_request(b, f, length.ptr);
    else if (f->kind == FAULT_CLOCK_AHEAD || f->kind == FAULT_CLOCK_BACK)
        buf_fmt(b, "the server is killed after it stores transaction %u, and its clock set %s %s",
                f->number, length.ptr, f->kind == FAULT_CLOCK_AHEAD ? "ahead" : "back");
    else if (f->kind == FAULT_NODE_HANGS)
        buf_fmt(b, "the node that stores transaction %u hangs after that, for %s", f->number,
                length.ptr);
    else if (fault_is_of_nodes(f->kind))
        buf_fmt(b, "the node that stores transaction %u is killed %s that, and is down for %s",
                f->number, f->kind == FAULT_NODE_KILLED_BEFORE ? "before" : "after", length.ptr);
    else if (s->place == PLACE_COMMIT)
        buf_fmt(b, "the server is killed %s it stores transaction %u, and is down for %s",
                f->kind == FAULT_KILLED_BEFORE ? "before" : "after", f->number, length.ptr);
    else if (s->place == PLACE_STOP)
        buf_fmt(b, "%s after the task stops%s, an operator %s", length.ptr,
                f->number > 1 ? " again" : "",
                f->kind == FAULT_RETRIED   ? "retries it"
                : f->kind == FAULT_SKIPPED ? "skips what failed, having done it by hand"
                                           : "undoes it");
    else if (f->kind == FAULT_SIGNAL_LATE)
        buf_fmt(b, "signal %.*s comes %s later", SLICE_ARG(f->name), length.ptr);
    else if (f->kind == FAULT_VOTE_AGAINST)
        buf_fmt(b, "vote %u on %.*s is against", f->number, SLICE_ARG(f->name));
    else
        buf_fmt(b, "%s %u %s%.*s comes %s", s->place == PLACE_SIGNAL ? "signal" : "vote", f->number,
                s->place == PLACE_SIGNAL ? "" : "on ", SLICE_ARG(f->name), s->word);
}
