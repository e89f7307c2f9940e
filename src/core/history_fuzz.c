/* Fuzz target of the core: interprets any bytes as a workflow and a history of one of its tasks,
 * with valid and invalid events and passing time. After each event it runs the checks of
 * history_check.h, and now and then checks that the task still ends. Its histories are longer
 * than those of history_test.c: attempts get merged. */

#include "base/fuzz.h"
#include "core/history_check.h"

static void write_step(struct fuzz *f, char *text, size_t size, uint16_t i)
{
    static bool on_undo[GRAPH_STEPS]; /* of the steps before this one */
    static const char kinds[] = {0, '!', '-', '~'};
    static const char rules[] = {0, '#', '?', 0};
    size_t at = strlen(text);
    uint8_t what = fuzz_byte(f);
    uint8_t before = i > 0 ? fuzz_byte(f) : 0;
    char kind = kinds[what % 4];
    char rule = rules[what / 4 % 4];
    bool of_on_undo = before & 0x80 && kind != '~';
    const char *class = of_on_undo ? "+" : "";

    at += (size_t)snprintf(text + at, size - at, " %c%u%s", 'a' + i, 1u + what / 16 % 9, class);
    if (kind == '~' && what & 0x80)
        kind = '@';
    if (kind)
        text[at++] = kind;
    if (rule)
        text[at++] = rule;
    on_undo[i] = of_on_undo;
    text[at++] = '<';
    for (uint16_t b = 0; b < i; b++)
        if (before & BIT(b) && on_undo[b] == of_on_undo)
            text[at++] = (char)('a' + b);
    text[at] = 0;
}

/* In the language of graph_make(). */
static void write_graph(struct fuzz *f, char *text, size_t size)
{
    uint8_t what = fuzz_byte(f);
    uint8_t lengths = fuzz_byte(f);
    uint16_t count = (uint16_t)(1 + what % GRAPH_STEPS);
    size_t at = 0;

    if (what & 0x10)
        at += (size_t)snprintf(text + at, size - at, "by=%us ", 5u + lengths % 16 * 10);
    if (what & 0x20)
        at += (size_t)snprintf(text + at, size - at, "undo=%us ", 5u + lengths / 16 * 10);
    if (what & 0x80)
        at += (size_t)snprintf(text + at, size - at, "until=%us ", 5u + lengths % 16);
    if (what & 0x40)
        at += (size_t)snprintf(text + at, size - at, "hold ");
    (void)snprintf(text + at, size - at, "defers=%u", what & 0x80 ? 3u : 0u);
    for (uint16_t i = 0; i < count; i++)
        write_step(f, text, size, i);
}

static struct event result_of(struct event ev, uint8_t how)
{
    ev.kind = EVENT_RESULT;
    ev.failed = how & 1;
    ev.retryable = how & 2;
    ev.effect = ev.failed && how & 4 ? EFFECT_UNKNOWN : EFFECT_NONE;
    ev.spared = ev.failed && how & 8;
    ev.output.json = ev.failed ? SLICE_NONE : SLICE("1");
    return ev;
}

/* All but those of signals, votes and families: its workflows have none. */
enum { KINDS = EVENT_KINDS - (EVENT_PARENT_RESUME - EVENT_SIGNAL + 1) };

/* Starts and results name the attempt that fits, or (`odd`) any one. */
static struct event event_of(struct fuzz *f, const struct node *n)
{
    uint8_t what = fuzz_byte(f);
    uint8_t how = fuzz_byte(f);
    enum event_kind kind = (enum event_kind)(what / 8 % KINDS);
    int step = what % 8 % n->t.step_count;
    struct event ev = history_event_at(kind < EVENT_SIGNAL ? kind : kind + EVENT_KINDS - KINDS,
                                       step, &n->steps[step]);

    if (what >= 8 * KINDS) /* the most frequent events */
        ev.kind = kind % 2 ? EVENT_START : EVENT_RESULT;
    if (ev.kind == EVENT_CLAIM || ev.kind == EVENT_RELEASE || ev.kind == EVENT_DEADLINE
        || ev.kind == EVENT_UNDO || ev.kind == EVENT_PAUSE || ev.kind == EVENT_RESUME
        || ev.kind == EVENT_CLOSE || ev.kind == EVENT_REOPEN || ev.kind == EVENT_OVERRUN
        || (ev.kind == EVENT_CORRECT && how & 1) || (ev.kind == EVENT_RETRY && how & 1))
        ev.step = -1;
    ev.until = ev.kind == EVENT_BEGIN ? GRAPH_MOMENT : 0;
    ev.holds = how & 1;
    if (ev.kind == EVENT_START) {
        ev.direction = step_next_direction(&history.graph.w, &n->t, (uint16_t)step);
        ev.attempt = n->world.steps[step].count[ev.direction] + 1;
    }
    if (how & 0x80) { /* odd */
        ev.direction = how & 0x40 ? DIRECTION_UNDO : DIRECTION_FORWARD;
        ev.attempt = how / 8 % 8;
    }
    ev.spared = how & 0x20 && ev.kind == EVENT_TIMEOUT;
    return ev.kind == EVENT_RESULT ? result_of(ev, how) : ev;
}

static bool has_room(const struct node *n)
{
    for (uint16_t i = 0; i < n->t.step_count; i++)
        for (int d = 0; d < 2; d++)
            if (n->world.steps[i].count[d] + 1 >= WORLD_ATTEMPTS)
                return false;
    return history.depth + 2 < HISTORY_MAX;
}

static void wait_for_next(struct node *n, bool long_wait)
{
    int64_t next = long_wait ? history_next_time(n) : n->now + 500;

    if (next <= n->now)
        return;
    history_wait(next - n->now);
    n->now = next;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    static struct node was, is;
    struct fuzz f = {bytes, len};
    char text[200] = "";
    unsigned changes = 0;

    write_graph(&f, text, sizeof text);
    assert_story = history_print;
    history.depth = 0;
    history.about = text;
    graph_make(&history.graph, text);
    node_make(&was, &history.graph, (struct budget){0});
    while (f.left > 0 && has_room(&was)) {
        if (*f.at >= 0xe8) {
            wait_for_next(&was, *f.at & 1);
            (void)fuzz_byte(&f);
            continue;
        }
        struct event ev = event_of(&f, &was);
        node_copy(&is, &was);
        if (!history_event(&was, &is, &ev)) {
            history.depth--;
            continue;
        }
        node_copy(&was, &is);
        if (++changes % 16 == 0)
            history_check_end(&was);
    }
    history_check_end(&was);
    return 0;
}
