/*
 * Notices (intake/notices.h): signals that applications insert into the database by SQL, which
 * become signals like those by HTTP, and what tasks of one family tell each other. One that cannot
 * be taken is kept with the reason.
 */

#include "background/notices.h"

#include <stdio.h>
#include <stdlib.h>

#include "background/room.h"
#include "base/log.h"
#include "base/names.h"
#include "intake/family.h"
#include "node/content.h"
#include "node/node.h"
#include "node/part.h"
#include "json/json.h"
#include "json/text.h"

enum { ASKS_LEFT = 1024 /* for clients of the API */ };

static struct notices *notices_of(const struct server *sv)
{
    return sv->background->notices;
}

static void refuse(struct notice_item *it, const char *fmt, ...) PRINTF(2, 3);

static void refuse(struct notice_item *it, const char *fmt, ...)
{
    char text[300];
    va_list ap;

    va_start(ap, fmt);
    text_format(text, sizeof text, fmt, ap);
    va_end(ap);
    it->problem = arena_copy(it->arena, slice_of(text));
}

static void answered(struct ask *a)
{
    notices_answered(a->user);
}

/* The value is a text, because it could be anything. False: it is no JSON. */
static bool value_of(struct server *sv, struct notice_item *it, struct slice text,
                     struct signal *ret)
{
    CLEANUP(arena_fini) struct arena tree = {0};
    struct json_fault fault = {0};
    struct json *j = NULL;

    if (text.len > SIGNAL_DATA_MAX) {
        refuse(it, "data has %zu bytes, expected at most %d", text.len, SIGNAL_DATA_MAX);
        return false;
    }
    if (json_parse_bounded(&tree, text, (unsigned)sv->limits.json_depth, trees_max(sv), &j, &fault)
        != ERR_OK) {
        refuse(it, "data is not JSON: %s at byte %zu", fault.what, (size_t)fault.offset + 1);
        return false;
    }
    ret->data.json = arena_copy(it->arena, j->raw);
    ret->content = content_of_value(sv->contents, j, it->arena);
    return true;
}

static void read_signal(struct server *sv, struct notice_item *it, const struct json *body)
{
    struct signal s = {.key = arena_copy(it->arena, json_get_text(body, "id")),
                       .name = arena_copy(it->arena, json_get_text(body, "name"))};

    if (!is_signal_key(s.key))
        refuse(it, "id: expected 1 to %d printable characters without spaces", SIGNAL_KEY_MAX);
    else if (!is_name(s.name))
        refuse(it, "name: expected the name of a signal");
    else if (value_of(sv, it, json_get_text(body, "data"), &s))
        it->ask = (struct ask){.kind = ASK_SIGNAL, .signal = s, .actor = SLICE("sql")};
}

static void read_notice(void *arg, struct notice_item *it)
{
    CLEANUP(arena_fini) struct arena tree = {0};
    struct server *sv = arg;
    struct json *body = NULL;

    if (family_tells(it->row))
        family_read_notice(it);
    else if (!slice_eq(it->row->kind, NOTICE_SIGNAL))
        refuse(it, "this version of the program does not know notices of that kind");
    else if (json_parse(&tree, it->row->body, &body, NULL) != ERR_OK)
        refuse(it, "its values are not UTF-8");
    else
        read_signal(sv, it, body);
}

static void ask(void *arg, struct notice_item *it)
{
    struct server *sv = arg;

    it->answered = answered;
    it->ask.user = it;
    server_ask(sv, &it->ask);
}

static size_t room(void *arg)
{
    const struct server *sv = arg;

    return asks_left(sv) > ASKS_LEFT ? asks_left(sv) - ASKS_LEFT : 0;
}

static void refused(void *arg, const struct notice_item *it)
{
    CLEANUP(buf_fini) struct buf task = {0};
    CLEANUP(buf_fini) struct buf reason = {0};
    struct server *sv = arg;
    uint64_t left_out = 0;

    if (!log_burst_has_room(&sv->background->signals_refused, server_now(sv), &left_out))
        return;
    json_string(&task, it->row->task);
    json_string(&reason, it->problem);
    log_line(LOG_WARN, "event=signal_refused seq=%" PRId64 " task=%s reason=%s left_out=%" PRIu64,
             it->row->seq, task.ptr, reason.ptr, left_out);
}

static void failed(void *arg, const struct error *e)
{
    (void)arg;
    log_line(LOG_DEBUG, "event=notices_wait reason=\"%s\"", e->text);
}

/* ---- the part ---- */

static enum err notices_open(struct server *sv, struct error *e)
{
    const struct notices_config c = {.store = sv->store,
                                     .clock = {server_now_elapsing, sv},
                                     .me = slice_of(sv->holder),
                                     .shared = sv->config.store->shared,
                                     .arg = sv,
                                     .room = room,
                                     .read = read_notice,
                                     .ask = ask,
                                     .refused = refused,
                                     .failed = failed};
    (void)e;

    sv->background->notices = notices_new(&c);
    if (!(sv->config.roles & NODE_SCHEDULER))
        notices_drain(sv->background->notices);
    return ERR_OK;
}

static int64_t notices_part_turn(struct server *sv)
{
    return server_of_elapsing(sv, notices_turn(notices_of(sv)));
}

bool notices_part_has_news(const struct server *sv)
{
    return notices_has_news(sv->background->notices);
}

void notices_part_wake(struct server *sv)
{
    notices_wake(notices_of(sv));
}

void notices_part_surveyed(struct server *sv, const struct survey *v)
{
    notices_surveyed(notices_of(sv), v);
}

static void notices_part_drain(struct server *sv)
{
    notices_drain(notices_of(sv));
}

static bool notices_part_is_drained(const struct server *sv)
{
    return !notices_is_busy(notices_of(sv));
}

static void notices_part_free(struct server *sv)
{
    notices_free(notices_of(sv));
}

const struct part notices_part = {
    .name = "notices",
    .open = notices_open,
    .turn = notices_part_turn,
    .drain = notices_part_drain,
    .is_drained = notices_part_is_drained,
    .free = notices_part_free,
};
