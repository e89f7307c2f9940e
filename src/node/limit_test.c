/*
 * What --limit NAME=VALUE accepts and refuses: values, units, bounds, reasons, and that a refused
 * value changes nothing. Uses no files, network or clock. What the limits mean: limit.h; how HTTP
 * keeps them: http/request_reader_test.c.
 */

#include "node/limit.h"

#include "base/test.h"

static void values_are_taken(void **state)
{
    struct server_limits l;
    struct error e = {0};
    static const char *const good[] = {"body=1MiB",      "json-depth=7",   "head=2048",
                                       "connections=12", "idle-time=1m",   "write-time=250ms",
                                       "memory=2GiB",    "body-time=3600s"};
    (void)state;

    limits_init(&l);
    CHECK(l.http.body_max == 4194304, "%zu", l.http.body_max);
    CHECK(memcmp(&l.http, &http_limits_default, sizeof l.http) == 0,
          "one table, and what http.h says, are the same");
    for (size_t i = 0; i < COUNT_OF(good); i++)
        CHECK(limits_set(&l, good[i], &e) == ERR_OK, "%s: %s", good[i], e.text);
    CHECK(l.http.body_max == 1048576, "%zu", l.http.body_max);
    CHECK(l.json_depth == 7, "%zu", l.json_depth);
    CHECK(l.http.head_max == 2048, "%zu", l.http.head_max);
    CHECK(l.http.connection_max == 12, "%zu", l.http.connection_max);
    CHECK(l.http.idle_ms == 60000, "%" PRIu64, l.http.idle_ms);
    CHECK(l.http.write_ms == 250, "%" PRIu64, l.http.write_ms);
    CHECK(l.http.memory_max == 2147483648, "%zu", l.http.memory_max);
    CHECK(l.waiting_max == 12000, "the others stay");
}

static void what_is_none_is_refused_with_a_reason(void **state)
{
    static const struct {
        const char *text, *reason;
    } cases[] = {
        {"", "expected NAME=VALUE"},
        {"body", "limit is \"body\", expected NAME=VALUE"},
        {"bodies=1", "there is no limit \"bodies\", expected one of body, json-depth, "},
        {"=1", "there is no limit \"\""},
        {"body=", "limit body is \"\", expected a size from 1KiB to 64MiB"},
        {"body=-1", "expected a size"},
        {"body=1 MiB", "expected a size"},
        {"body=1mb", "expected a size"},
        {"body=65MiB", "from 1KiB to 64MiB"},
        {"body=1023", "from 1KiB to 64MiB"},
        {"body=18446744073709551616", "expected a size"},
        {"memory=17179869184GiB", "expected a size from 1MiB to 64GiB"},
        {"headers=8KiB", "limit headers is \"8KiB\", expected a number from 8 to 1000"},
        {"json-depth=49", "expected a number from 1 to 48"},
        {"idle-time=5", "expected a duration from 100ms to 86400s"},
        {"idle-time=0s", "expected a duration"},
        {"idle-time=-5s", "expected a duration"},
    };
    (void)state;

    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct server_limits before;
        struct server_limits l;
        struct error e = {0};
        limits_init(&l);
        before = l;
        CHECK(limits_set(&l, cases[i].text, &e) == ERR_INVALID, "\"%s\"", cases[i].text);
        CHECK(strstr(e.text, cases[i].reason), "\"%s\": %s", cases[i].text, e.text);
        CHECK(memcmp(&l, &before, sizeof l) == 0, "\"%s\" changes nothing", cases[i].text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_are_taken),
        cmocka_unit_test(what_is_none_is_refused_with_a_reason),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
