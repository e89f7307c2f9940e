/* Workloads of tools/instructions for the parts between the scheduler and the outside: places,
 * breakers, tokens of attempts, and signatures. workload.h declares them; nothing here depends on
 * time or chance. */

#include <stdlib.h>

#include "attempts.h"
#include "dispatch/breaker.h"
#include "dispatch/token.h"
#include "instructions/workload.h"
#include "webhook/sign.h"

static void routing(const struct workload *w, long rounds)
{
    attempts_run(w->arg != 0, 100);
    count_begin();
    attempts_run(w->arg != 0, rounds);
    count_end(w, NULL, rounds);
}

static void breaker(const struct workload *w, long rounds)
{
    const struct breaker_rule r = settings_default().breaker;
    struct breaker b = {0};
    uint64_t room = 0;

    count_begin();
    for (int64_t i = 0; i < rounds; i++) {
        room += breaker_room(&b, &r);
        (void)breaker_start(&b, &r, 1 + i / 100);
        (void)breaker_ended(&b, &r, i % 8 ? END_GOOD : END_BAD, 1 + i / 100, 1 + i / 100, 7);
    }
    count_end(w, NULL, rounds);
    must_be(room > 0, "it is closed");
}

static void token(const struct workload *w, long rounds)
{
    static const unsigned char secret[SECRET_SIZE] = "a secret of which nobody knows";
    struct token_key *key = token_key_new(secret);
    CLEANUP(buf_fini) struct buf text = {0};
    const struct token t = {SLICE("order-000000017"), 2, DIRECTION_FORWARD, 1, {0}};
    struct token back;

    token_write(key, &t, SLICE("payment"), &text);
    count_begin();
    for (long i = 0; i < rounds; i++) {
        buf_clear(&text);
        token_write(key, &t, SLICE("payment"), &text);
        must_be(token_check(key, buf_view(&text), SLICE("payment"), &back), "it is good");
    }
    count_end(w, NULL, rounds);
    token_key_free(key);
}

/* A message of a task, with an output of 300 bytes. */
static void sign(const struct workload *w, long rounds)
{
    const struct secret_place place = {.env = "INSTRUCTIONS_SECRET"};
    CLEANUP(buf_fini) struct buf text = {0};
    CLEANUP(buf_fini) struct buf faults = {0};

    (void)setenv(place.env, "whsec_MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE=", 1);
    struct sign_keys *keys = sign_keys_load(&place, 1, &faults);
    must_be(keys, "the secret is good");
    buf_fmt(&text, "order-000000017/3/processed.1800000000.{\"specversion\":\"1.0\",\"data\":%s}",
            payload_out);
    count_begin();
    for (long i = 0; i < rounds; i++) {
        CLEANUP(buf_fini) struct buf signature = {0};
        must_be(sign_text(keys, buf_view(&text), &signature), "it is signed");
    }
    count_end(w, NULL, rounds);
    sign_keys_free(keys);
}

const struct workload workloads_outside[] = {
    {"routing", "an attempt gets a place and ends, no limits", 5000, routing, NULL, 0, NULL},
    {"routing-limits", "the same with limits and the breaker", 5000, routing, NULL, 1, NULL},
    {"breaker", "a breaker is asked and told", 20000, breaker, NULL, 0, NULL},
    {"token", "a token is written and checked", 1000, token, NULL, 0, NULL},
    {"webhook-sign", "a message is signed", 500, sign, NULL, 0, NULL},
    {0},
};
