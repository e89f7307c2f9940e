/*
 * Cron expressions and time zones: what is refused, and what fires when, also where clocks are
 * changed. tests/calendar compares far more cases with other implementations.
 */
#include "base/test.h"
#include "base/when.h"
#include "calendar/cron.h"

static void refuses(const char *text, const char *part)
{
    struct error e = {0};
    struct cron c;

    assert_int_equal(cron_parse(slice_of(text), &c, &e), ERR_INVALID);
    CHECK(strstr(e.text, part), "%s: %s", text, e.text);
}

static void mistakes_name_the_field(void **state)
{
    (void)state;
    refuses("", "five fields");
    refuses("* * * *", "five fields");
    refuses("* * * * * *", "five fields");
    refuses("@reboot", "five fields");
    refuses("60 * * * *", "\"60\" in field minute: the value is out of range");
    refuses("* 24 * * *", "field hour");
    refuses("* * 0 * *", "field day of month");
    refuses("* * 32 * *", "field day of month");
    refuses("* * * 13 * ", "field month");
    refuses("* * * FOO *", "\"FOO\" in field month: this is no value");
    refuses("* * * * 8", "field day of week");
    refuses("*/0 * * * *", "a step is a whole number from 1");
    refuses("*/60 * * * *", "the step is longer than the field");
    refuses("5-1 * * * *", "the range ends before it begins");
    refuses("1,,2 * * * *", "\"\" in field minute");
    refuses("1, * * * *", "field minute");
    refuses("1x * * * *", "the end is not understood");
    refuses("-1 * * * *", "this is no value");
    refuses("99999999999 * * * *", "out of range");
    refuses("? * * * *", "this is no value");
    refuses("* * * * 5#6", "after #");
    refuses("* * * * 1-5#2", "single day");
    refuses("* * * * *L", "single day");
    refuses("* * LW * *", "this is no value");
    refuses("0 0 30 2 *", "never fires");
    refuses("0 0 31 4,6,9,11 *", "never fires");
}

static int64_t at(const char *text)
{
    int64_t ret = -1;

    CHECK(time_parse(slice_of(text), &ret), "%s", text);
    return ret;
}

/* What follows `after`, one after the other. NULL ends the list; "never" is no further moment. */
static void fires(const char *text, const char *zone_name, const char *after,
                  const char *const wanted[])
{
    struct zone *zone = NULL;
    struct error e = {0};
    struct cron c;
    int64_t now = at(after);

    CHECK(!cron_parse(slice_of(text), &c, &e), "%s", e.text);
    CHECK(!zone_open(slice_of(zone_name), &zone, &e), "%s", e.text);
    for (size_t i = 0; wanted[i]; i++) {
        CLEANUP(buf_fini) struct buf b = {0};
        now = cron_next(&c, zone, now);
        if (strcmp(wanted[i], "never") == 0) {
            assert_int_equal(now, -1);
            break;
        }
        time_write(&b, now);
        CHECK(now == at(wanted[i]), "%s in %s, %zu: %.*s", text, zone_name, i,
              SLICE_ARG(buf_view(&b)));
    }
    zone_close(zone);
}

#define FIRES(text, zone, after, ...) \
    fires(text, zone, after, (const char *const[]){__VA_ARGS__, NULL})

static void fields_mean_what_others_take_them_for(void **state)
{
    (void)state;
    FIRES("*/20 8-9 * * *", "UTC", "2027-01-01T08:00:00Z", "2027-01-01T08:20:00Z",
          "2027-01-01T08:40:00Z", "2027-01-01T09:00:00Z");
    FIRES("10/20 8 * * *", "UTC", "2027-01-01T08:10:00Z", "2027-01-01T08:30:00Z",
          "2027-01-01T08:50:00Z", "2027-01-02T08:10:00Z");
    FIRES("0 12 13 * FRI", "UTC", "2027-08-01T00:00:00Z", "2027-08-06T12:00:00Z",
          "2027-08-13T12:00:00Z"); /* either of the two */
    FIRES("0 12 13 * *", "UTC", "2027-08-01T00:00:00Z", "2027-08-13T12:00:00Z",
          "2027-09-13T12:00:00Z");
    FIRES("0 12 ? jan-feb 0", "UTC", "2027-02-28T12:00:00Z", "2028-01-02T12:00:00Z");
    FIRES("0 12 * * 7", "UTC", "2027-02-27T12:00:00Z", "2027-02-28T12:00:00Z");
    FIRES("0 0 L * *", "UTC", "2028-01-31T00:00:00Z", "2028-02-29T00:00:00Z",
          "2028-03-31T00:00:00Z");
    FIRES("0 0 * * 5L", "UTC", "2027-01-01T00:00:00Z", "2027-01-29T00:00:00Z",
          "2027-02-26T00:00:00Z");
    FIRES("0 0 * * 2#2", "UTC", "2027-01-01T00:00:00Z", "2027-01-12T00:00:00Z",
          "2027-02-09T00:00:00Z");
    FIRES("0 0 29 2 *", "UTC", "2096-02-29T00:00:00Z", "2104-02-29T00:00:00Z");
    FIRES("@weekly", "UTC", "2027-01-01T00:00:00Z", "2027-01-03T00:00:00Z");
    FIRES("59 23 31 12 *", "UTC", "9999-12-31T23:58:59.999Z", "9999-12-31T23:59:00Z", "never");
}

static void fixed_times_fire_once_a_day(void **state)
{
    (void)state;
    /* 02:00 to 03:00 does not exist on the 28th: it fires when the clocks are changed */
    FIRES("30 2 * * *", "Europe/Rome", "2027-03-27T00:00:00Z", "2027-03-27T01:30:00Z",
          "2027-03-28T01:00:00Z", "2027-03-29T00:30:00Z");
    FIRES("10,30 2,3 * * *", "Europe/Rome", "2027-03-28T00:00:00Z", "2027-03-28T01:00:00Z",
          "2027-03-28T01:10:00Z", "2027-03-28T01:30:00Z", "2027-03-29T00:10:00Z");
    /* 02:00 to 03:00 comes twice on the 31st */
    FIRES("30 2 * * *", "Europe/Rome", "2027-10-30T00:00:00Z", "2027-10-30T00:30:00Z",
          "2027-10-31T00:30:00Z", "2027-11-01T01:30:00Z");
    /* a change of half an hour */
    FIRES("45 1 * * *", "Australia/Lord_Howe", "2027-04-03T00:00:00Z", "2027-04-03T14:45:00Z",
          "2027-04-04T15:15:00Z");
    FIRES("15 2 * * *", "Australia/Lord_Howe", "2027-10-01T16:00:00Z", "2027-10-02T15:30:00Z",
          "2027-10-03T15:15:00Z");
    /* clocks skip midnight */
    FIRES("0 0 * * *", "America/Santiago", "2027-09-04T12:00:00Z", "2027-09-05T04:00:00Z",
          "2027-09-06T03:00:00Z");
    /* forward and back again before it fires: the offset is the same, and the hour comes twice */
    FIRES("* 23 30 9 *", "Africa/Cairo", "2010-09-01T00:00:00Z", "2010-09-30T20:00:00Z",
          "2010-09-30T20:01:00Z");
    /* the 30th of December 2011 was left out */
    FIRES("0 12 * * *", "Pacific/Apia", "2011-12-29T12:00:00Z", "2011-12-29T22:00:00Z",
          "2011-12-30T10:00:00Z", "2011-12-30T22:00:00Z");
}

static void stars_follow_real_time(void **state)
{
    (void)state;
    FIRES("30 * * * *", "Europe/Rome", "2027-03-28T00:00:00Z", "2027-03-28T00:30:00Z",
          "2027-03-28T01:30:00Z");
    FIRES("*/30 2 * * *", "Europe/Rome", "2027-03-27T02:00:00Z", "2027-03-29T00:00:00Z");
    FIRES("*/30 2 * * *", "Europe/Rome", "2027-10-30T12:00:00Z", "2027-10-31T00:00:00Z",
          "2027-10-31T00:30:00Z", "2027-10-31T01:00:00Z", "2027-10-31T01:30:00Z",
          "2027-11-01T01:00:00Z");
    FIRES("0 * 29 2 *", "America/New_York", "2027-03-01T00:00:00Z", "2028-02-29T05:00:00Z",
          "2028-02-29T06:00:00Z");
}

static void zones_are_names(void **state)
{
    static const char *const wrong[] = {
        "",
        "Nowhere",
        "Europe/Roma",
        "../../../etc/passwd",
        "/usr/share/zoneinfo/UTC",
        "UTC+2",
        "+02:00",
        "right/UTC",
        "Europe",
        "EST5EDT,M3.2.0,M11.1.0",
        "Europe/Rome\n",
        "tzdata.zi",
    };
    static const char *const right[] = {"UTC", "Europe/Rome", "America/Argentina/Buenos_Aires",
                                        "Etc/GMT+12", "America/Port-au-Prince"};
    struct error e = {0};
    (void)state;

    for (size_t i = 0; i < COUNT_OF(wrong); i++) {
        struct zone *z = NULL;
        CHECK(zone_open(slice_of(wrong[i]), &z, &e) == ERR_INVALID, "%s", wrong[i]);
        CHECK(strstr(e.text, "is no time zone"), "%s", e.text);
    }
    for (size_t i = 0; i < COUNT_OF(right); i++) {
        struct zone *z = NULL;
        CHECK(!zone_open(slice_of(right[i]), &z, &e), "%s", e.text);
        zone_close(z);
    }
}

static void changes_are_found_to_the_millisecond(void **state)
{
    struct zone *z = NULL;
    struct error e = {0};
    int64_t change = at("2027-03-28T01:00:00Z");
    (void)state;

    assert_int_equal(zone_open(SLICE("Europe/Rome"), &z, &e), ERR_OK);
    assert_int_equal(zone_change_after(z, at("2027-01-01T00:00:00Z"), at("2027-12-31T00:00:00Z")),
                     change);
    assert_int_equal(zone_change_after(z, change - 1, change), change);
    assert_int_equal(zone_change_after(z, change, change + MS_PER_D), change + MS_PER_D);
    assert_int_equal(zone_offset_ms(z, change - 1), MS_PER_H);
    assert_int_equal(zone_offset_ms(z, change), 2 * MS_PER_H);
    zone_close(z);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(mistakes_name_the_field),
        cmocka_unit_test(fields_mean_what_others_take_them_for),
        cmocka_unit_test(fixed_times_fire_once_a_day),
        cmocka_unit_test(stars_follow_real_time),
        cmocka_unit_test(zones_are_names),
        cmocka_unit_test(changes_are_found_to_the_millisecond),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
