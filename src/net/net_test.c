/* Tests of addresses and networks (address.c: which may be called), and of the list of
 * vulnerabilities of libcurl (holes.c). No connection is made. */

#include "base/test.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdlib.h>

#include "base/buf.h"
#include "net/address.h"
#include "net/holes.h"

/* ---- addresses ---- */

static bool may_call(const char *address, const char *const *networks)
{
    struct networks n = {0};
    struct sockaddr_storage to = {0};
    struct sockaddr_in *v4 = (struct sockaddr_in *)&to;
    struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)&to;

    for (; networks && *networks; networks++)
        CHECK(network_parse(slice_of(*networks), &n.list[n.count++]), "%s", *networks);
    if (inet_pton(AF_INET, address, &v4->sin_addr) == 1) {
        v4->sin_family = AF_INET;
    } else {
        CHECK(inet_pton(AF_INET6, address, &v6->sin6_addr) == 1, "%s", address);
        v6->sin6_family = AF_INET6;
    }
    return address_is_allowed((const struct sockaddr *)&to, &n);
}

static void closed_networks_stay_closed(void **state)
{
    static const char *const closed[] = {"127.0.0.1",
                                         "127.255.255.254",
                                         "0.0.0.0",
                                         "10.0.0.1",
                                         "10.255.255.255",
                                         "172.16.0.1",
                                         "172.31.255.255",
                                         "192.168.1.1",
                                         "169.254.169.254",
                                         "100.64.0.1",
                                         "100.127.255.255",
                                         "192.0.0.8",
                                         "198.18.0.1",
                                         "198.19.255.255",
                                         "224.0.0.1",
                                         "239.1.1.1",
                                         "240.0.0.1",
                                         "255.255.255.255",
                                         "::",
                                         "::1",
                                         "::7f00:1",
                                         "::ffff:127.0.0.1",
                                         "::ffff:10.1.2.3",
                                         "::ffff:169.254.169.254",
                                         "64:ff9b::7f00:1",
                                         "64:ff9b::a9fe:a9fe",
                                         "64:ff9b:1::1",
                                         "2002:7f00:1::",
                                         "2002:a00:1::1",
                                         "2001::1",
                                         "2001:db8::1",
                                         "fc00::1",
                                         "fdff::1",
                                         "fe80::1",
                                         "febf::1",
                                         "fec0::1",
                                         "ff02::1",
                                         "::ffff:0:7f00:1",
                                         "64:ff9b:0:1::1",
                                         "100:0:0:1::1",
                                         "3fff::1",
                                         "4000::1",
                                         "5f00::1",
                                         "100::1"};
    static const char *const open[] = {"1.1.1.1",         "8.8.8.8",          "9.255.255.255",
                                       "11.0.0.0",        "172.15.255.255",   "172.32.0.0",
                                       "100.63.255.255",  "100.128.0.0",      "169.253.255.255",
                                       "192.167.255.255", "223.255.255.255",  "2606:4700::1111",
                                       "::ffff:8.8.8.8",  "64:ff9b::808:808", "2002:808:808::1",
                                       "2a00::1"};
    (void)state;

    for (size_t i = 0; i < COUNT_OF(closed); i++)
        CHECK(!may_call(closed[i], NULL), "%s", closed[i]);
    for (size_t i = 0; i < COUNT_OF(open); i++)
        CHECK(may_call(open[i], NULL), "%s", open[i]);
}

static void networks_open_what_they_say(void **state)
{
    static const char *const ten[] = {"10.1.0.0/16", "fd00::/8", NULL};
    static const char *const one[] = {"127.0.0.1", NULL};
    static const char *const bad[] = {"",           "10.0.0.0/33", "10.0.0.0/",   "10.0.0/8",
                                      "fd00::/129", "localhost",   "10.0.0.0/8x", "/8",
                                      "1.2.3.4/-1"};
    struct network n;
    (void)state;

    CHECK(may_call("10.1.255.1", ten) && may_call("fdaa::1", ten), "within");
    CHECK(may_call("::ffff:10.1.0.1", ten), "mapped");
    CHECK(may_call("64:ff9b::a01:1", ten), "by NAT64");
    CHECK(!may_call("10.2.0.1", ten) && !may_call("127.0.0.1", ten), "outside");
    CHECK(may_call("127.0.0.1", one) && !may_call("127.0.0.2", one), "one address");
    CHECK(!may_call("::1", one), "IPv6 is another one");
    for (size_t i = 0; i < COUNT_OF(bad); i++)
        CHECK(!network_parse(slice_of(bad[i]), &n), "%s", bad[i]);
}

static void has(unsigned version, unsigned used, const char *expected)
{
    CLEANUP(buf_fini) struct buf found = {0};

    buf_str(&found, "");
    holes_find(version, used, &found);
    CHECK(strcmp(found.ptr, expected) == 0, "%x, %u: \"%s\"", version, used, found.ptr);
}

static void holes_are_known_by_version_and_use(void **state)
{
    const unsigned all = HOLES_HTTP | HOLES_SOCKS;
    (void)state;

    has(0x074400, HOLES_SOCKS, ""); /* 7.68.0 */
    has(0x074500, HOLES_SOCKS, "CVE-2023-38545");
    has(0x075801, HOLES_SOCKS, "CVE-2023-38545"); /* 7.88.1, Debian 12's */
    has(0x075801, HOLES_HTTP, "");
    has(0x080300, HOLES_SOCKS, "CVE-2023-38545");
    has(0x080400, all, "");
    has(0x075700, all, "CVE-2023-23916, CVE-2023-38545"); /* 7.87.0 */
    has(0x080b01, HOLES_HTTP, "CVE-2025-0665");           /* 8.11.1 */
    has(0x080b01, HOLES_SOCKS, "");
    has(0x080c00, all, "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(closed_networks_stay_closed),
        cmocka_unit_test(networks_open_what_they_say),
        cmocka_unit_test(holes_are_known_by_version_and_use),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
