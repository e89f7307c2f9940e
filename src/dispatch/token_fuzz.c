/* Fuzz target of token.c: any bytes as a token, and as the parts of one. A written token is
 * accepted and gives back its parts; nothing else is accepted, not even with one byte changed. */

#include "base/fuzz.h"
#include "dispatch/token.h"

static const unsigned char secret[SECRET_SIZE] = "a secret that is not one";

static void any_text(struct token_key *k, struct slice text)
{
    CLEANUP(buf_fini) struct buf again = {0};
    struct token t;

    if (!token_parse(text, &t))
        return;
    ASSERT(t.task.len > 0);
    ASSERT(t.step < STEPS_MAX);
    bool ok = token_check(k, text, SLICE("agent"), &t);
    enum token_worth worth = token_judge(k, text, &t);
    ASSERT(!ok || worth != TOKEN_FORGED);
    if (!ok || worth != TOKEN_OURS)
        return;
    token_write(k, &t, SLICE("agent"), &again);
    ASSERT(slice_eq(text, buf_view(&again)));
}

static void any_signal_text(struct token_key *k, struct slice text)
{
    CLEANUP(buf_fini) struct buf again = {0};
    struct signal_token t;

    if (!signal_token_check(k, text, &t))
        return;
    signal_token_write(k, t.task, t.name, &again);
    ASSERT(slice_eq(text, buf_view(&again)));
}

static void any_token(struct token_key *k, struct fuzz *f)
{
    CLEANUP(buf_fini) struct buf text = {0};
    uint8_t at = fuzz_byte(f);
    uint8_t flip = fuzz_byte(f);
    struct token t = {.step = (uint16_t)(fuzz_number(f, 2) % STEPS_MAX),
                      .direction = fuzz_byte(f) % 2 ? DIRECTION_UNDO : DIRECTION_FORWARD,
                      .attempt = (uint32_t)fuzz_number(f, 4)};
    struct slice agent = fuzz_until(f, '\n');
    struct token found;

    t.task = fuzz_rest(f);
    if (t.task.len == 0 || t.task.len > 128)
        return;
    token_write(k, &t, agent, &text);
    bool ok = token_check(k, buf_view(&text), agent, &found);
    ASSERT(ok);
    ASSERT(slice_eq(found.task, t.task));
    ASSERT(found.step == t.step);
    ASSERT(found.direction == t.direction);
    ASSERT(found.attempt == t.attempt);
    if (flip == 0)
        return;
    text.ptr[at % text.len] ^= (char)flip;
    ok = token_check(k, buf_view(&text), agent, &found);
    ASSERT(!ok);
}

static void any_link(struct token_key *k, struct slice text)
{
    CLEANUP(arena_fini) struct arena a = {0};
    CLEANUP(buf_fini) struct buf again = {0};
    struct approval_link l;

    if (!approval_link_check(k, text, &a, &l))
        return;
    approval_link_write(k, &l, &again);
    ASSERT(slice_eq(text, buf_view(&again)));
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    static struct token_key *k;
    struct fuzz f = {bytes, len};

    if (!k)
        k = token_key_new(secret);
    any_text(k, (struct slice){(const char *)bytes, len});
    any_signal_text(k, (struct slice){(const char *)bytes, len});
    any_link(k, (struct slice){(const char *)bytes, len});
    any_token(k, &f);
    return 0;
}
