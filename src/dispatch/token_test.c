/* Tokens: changed, cut and foreign ones are rejected; earlier versions' are accepted; they are
 * valid as long as the secret. */

#include "base/test.h"

#include "dispatch/token.h"

static const unsigned char secret[SECRET_SIZE] = "some thirty-two bytes of secret";

static void a_token_is_believed_only_unchanged_and_from_its_agent(void **state)
{
    struct token_key *k = token_key_new(secret);
    struct token t = {slice_of("o-17"), 999, DIRECTION_UNDO, UINT32_MAX, {0}};
    struct token back;
    CLEANUP(buf_fini) struct buf b = {0};
    (void)state;

    token_write(k, &t, slice_of("payment"), &b);
    CHECK(token_check(k, buf_view(&b), slice_of("payment"), &back), "its own");
    CHECK(slice_is(back.task, "o-17") && back.step == 999 && back.direction == DIRECTION_UNDO
              && back.attempt == UINT32_MAX,
          "fields");
    CHECK(!token_check(k, buf_view(&b), slice_of("stock"), &back), "another agent's");
    for (size_t i = 0; i < b.len; i++)
        for (int bit = 0; bit < 8; bit++) {
            b.ptr[i] = (char)(b.ptr[i] ^ (1 << bit));
            CHECK(!token_check(k, buf_view(&b), slice_of("payment"), &back), "byte %zu", i);
            b.ptr[i] = (char)(b.ptr[i] ^ (1 << bit));
        }
    for (size_t i = 0; i < b.len; i++)
        CHECK(!token_check(k, (struct slice){b.ptr, i}, slice_of("payment"), &back), "cut");
    token_key_free(k);
}

/* The MAC over a token's own fields verifies it without its agent. */
static void a_token_is_judged_by_itself(void **state)
{
    struct token_key *k = token_key_new(secret);
    struct token t = {slice_of("o-17"), 3, DIRECTION_FORWARD, 2, {0}};
    struct token back;
    CLEANUP(buf_fini) struct buf b = {0};
    (void)state;

    token_write(k, &t, slice_of("payment"), &b);
    CHECK(token_judge(k, buf_view(&b), &back) == TOKEN_OURS, "%s", b.ptr);
    CHECK(slice_is(back.task, "o-17") && back.step == 3 && back.attempt == 2, "fields");
    for (size_t i = 0; i < b.len; i++)
        for (int bit = 0; bit < 8; bit++) {
            b.ptr[i] = (char)(b.ptr[i] ^ (1 << bit));
            CHECK(token_judge(k, buf_view(&b), &back) == TOKEN_FORGED, "byte %zu", i);
            b.ptr[i] = (char)(b.ptr[i] ^ (1 << bit));
        }
    CHECK(token_judge(k, SLICE_NONE, &back) == TOKEN_FORGED, "none");
    CHECK(token_judge(k, SLICE("."), &back) == TOKEN_FORGED, "short");
    token_key_free(k);
}

/* A token from version 0.1.0, before tokens had tags. */
static void a_token_of_an_earlier_version_stays_good(void **state)
{
    const struct slice old = SLICE("o-17~999~u4294967295~zyF8-O_84Z1sBUe5j2ZMcA");
    struct token_key *k = token_key_new(secret);
    struct token back;
    (void)state;

    CHECK(token_judge(k, old, &back) == TOKEN_UNTAGGED, "its MAC needs the agent");
    CHECK(token_check(k, old, slice_of("payment"), &back), "its own");
    CHECK(slice_is(back.task, "o-17") && back.step == 999 && back.direction == DIRECTION_UNDO
              && back.attempt == UINT32_MAX,
          "fields");
    CHECK(!token_check(k, old, slice_of("stock"), &back), "another agent's");
    token_key_free(k);
}

static void tokens_survive_with_the_secret_and_die_with_it(void **state)
{
    struct token_key *k = token_key_new(secret);
    struct token_key *same = token_key_new(secret);
    struct token_key *other =
        token_key_new((const unsigned char *)"another secret of 32 bytes here");
    struct token t = {slice_of("a"), 0, DIRECTION_FORWARD, 1, {0}};
    struct token back;
    CLEANUP(buf_fini) struct buf b = {0};
    (void)state;

    token_write(k, &t, slice_of("x"), &b);
    token_write(k, &t, slice_of("x"), &b); /* the kept context starts anew each time */
    CHECK(memcmp(b.ptr, b.ptr + b.len / 2, b.len / 2) == 0, "same again");
    struct slice one = {b.ptr, b.len / 2};
    CHECK(token_check(same, one, slice_of("x"), &back), "after a restart");
    CHECK(!token_check(other, one, slice_of("x"), &back), "in another store");
    token_key_free(k);
    token_key_free(same);
    token_key_free(other);
}

static void a_signal_token_is_good_for_its_task_and_name(void **state)
{
    struct token_key *k = token_key_new(secret);
    struct token t = {slice_of("o-17"), 0, DIRECTION_FORWARD, 1, {0}};
    struct signal_token back;
    CLEANUP(buf_fini) struct buf b = {0};
    CLEANUP(buf_fini) struct buf attempt = {0};
    (void)state;

    signal_token_write(k, SLICE("o~17"), SLICE("payment"), &b);
    CHECK(signal_token_check(k, buf_view(&b), &back), "%s", b.ptr);
    CHECK(slice_is(back.task, "o~17") && slice_is(back.name, "payment"), "fields");
    for (size_t i = 0; i < b.len; i++)
        for (int bit = 0; bit < 8; bit++) {
            b.ptr[i] = (char)(b.ptr[i] ^ (1 << bit));
            CHECK(!signal_token_check(k, buf_view(&b), &back), "byte %zu", i);
            b.ptr[i] = (char)(b.ptr[i] ^ (1 << bit));
        }
    for (size_t i = 0; i < b.len; i++)
        CHECK(!signal_token_check(k, (struct slice){b.ptr, i}, &back), "cut");
    CHECK(!signal_token_check(k, SLICE_NONE, &back), "none");
    token_write(k, &t, slice_of("payment"), &attempt);
    CHECK(!signal_token_check(k, buf_view(&attempt), &back), "one of an attempt is none");
    token_key_free(k);
}

/* A name that is made like the end of an attempt's token does not make one. */
static void a_signal_token_is_none_of_an_attempt(void **state)
{
    struct token_key *k = token_key_new(secret);
    struct token back;
    CLEANUP(buf_fini) struct buf b = {0};
    (void)state;

    signal_token_write(k, SLICE("o-17~0~f1"), SLICE("abcdefgh"), &b);
    CHECK(token_judge(k, buf_view(&b), &back) == TOKEN_FORGED, "%s", b.ptr);
    CHECK(!token_check(k, buf_view(&b), SLICE("abcdefgh"), &back), "%s", b.ptr);
    token_key_free(k);
}

static const struct approval_link a_link = {.task = {"o-17@a.b:c", 10},
                                            .step = {"allow", 5},
                                            .person = {"ann+x@example.org", 17},
                                            .submitted_at = 1769853600123,
                                            .expires_at = INT64_MAX,
                                            .asking = UINT32_MAX};

static void a_link_is_good_unchanged_and_as_a_whole(void **state)
{
    CLEANUP(arena_fini) struct arena a = {0};
    CLEANUP(buf_fini) struct buf b = {0};
    struct token_key *k = token_key_new(secret);
    struct approval_link back;
    struct token token;
    (void)state;

    approval_link_write(k, &a_link, &b);
    CHECK(approval_link_check(k, buf_view(&b), &a, &back), "%s", b.ptr);
    CHECK(slice_eq(back.task, a_link.task) && slice_eq(back.step, a_link.step)
              && slice_eq(back.person, a_link.person) && back.asking == UINT32_MAX
              && back.submitted_at == a_link.submitted_at && back.expires_at == INT64_MAX,
          "fields");
    CHECK(strspn(b.ptr, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_")
              == b.len,
          "for URLs: %s", b.ptr);
    for (size_t i = 0; i < b.len; i++)
        for (int bit = 0; bit < 8; bit++) {
            b.ptr[i] = (char)(b.ptr[i] ^ (1 << bit));
            CHECK(!approval_link_check(k, buf_view(&b), &a, &back), "byte %zu", i);
            b.ptr[i] = (char)(b.ptr[i] ^ (1 << bit));
        }
    for (size_t i = 0; i < b.len; i++)
        CHECK(!approval_link_check(k, (struct slice){b.ptr, i}, &a, &back), "cut");
    CHECK(!approval_link_check(k, SLICE_NONE, &a, &back), "none");
    CHECK(token_judge(k, buf_view(&b), &token) == TOKEN_FORGED, "no attempt's");
    token_key_free(k);
}

/* The longest that can be, and under another secret. */
static void a_link_is_good_under_its_secret(void **state)
{
    CLEANUP(arena_fini) struct arena a = {0};
    CLEANUP(buf_fini) struct buf b = {0};
    struct token_key *k = token_key_new(secret);
    struct token_key *same = token_key_new(secret);
    struct token_key *other =
        token_key_new((const unsigned char *)"another secret of 32 bytes here");
    struct approval_link link = a_link;
    struct approval_link back;
    char name[129];
    (void)state;

    memset(name, 'x', sizeof name);
    link.task = (struct slice){name, 128};
    link.step = link.person = (struct slice){name, 64};
    link.submitted_at = INT64_MAX;
    approval_link_write(k, &link, &b);
    CHECK(approval_link_check(same, buf_view(&b), &a, &back), "after a restart");
    CHECK(slice_eq(back.task, link.task), "the whole id");
    CHECK(!approval_link_check(other, buf_view(&b), &a, &back), "in another store");
    token_key_free(k);
    token_key_free(same);
    token_key_free(other);
}

/* Its number, and the list in which it has that. */
static void a_token_names_its_item(void **state)
{
    static const struct item_ref items[] = {{true, 0, 0}, {true, 0, 9999}, {true, 3, 7}};
    struct token_key *k = token_key_new(secret);
    (void)state;

    for (size_t i = 0; i < COUNT_OF(items); i++) {
        struct token t = {slice_of("o-17"), 5, DIRECTION_UNDO, 2, items[i]};
        CLEANUP(buf_fini) struct buf b = {0};
        struct token back;
        token_write(k, &t, slice_of("stock"), &b);
        assert_true(token_check(k, buf_view(&b), slice_of("stock"), &back));
        assert_int_equal(back.step, 5);
        assert_true(back.item.any && back.item.number == items[i].number
                    && back.item.generation == items[i].generation);
    }
    struct token back;
    assert_false(token_parse(SLICE("o-17~1.10000~f2~Zk3mPq0x.0123456789012345678901"), &back));
    assert_false(token_parse(SLICE("o-17~1.2.3.4~f2~Zk3mPq0x.0123456789012345678901"), &back));
    assert_false(token_parse(SLICE("o-17~.3~f2~Zk3mPq0x.0123456789012345678901"), &back));
    assert_true(token_parse(SLICE("o-17~1.3.2~f2~Zk3mPq0x.0123456789012345678901"), &back));
    token_key_free(k);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_token_names_its_item),
        cmocka_unit_test(a_token_is_believed_only_unchanged_and_from_its_agent),
        cmocka_unit_test(a_token_is_judged_by_itself),
        cmocka_unit_test(a_token_of_an_earlier_version_stays_good),
        cmocka_unit_test(tokens_survive_with_the_secret_and_die_with_it),
        cmocka_unit_test(a_signal_token_is_good_for_its_task_and_name),
        cmocka_unit_test(a_signal_token_is_none_of_an_attempt),
        cmocka_unit_test(a_link_is_good_unchanged_and_as_a_whole),
        cmocka_unit_test(a_link_is_good_under_its_secret),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
