/* Known vulnerabilities of libcurl: see holes.h. The list is short on purpose: cookies, .netrc,
 * redirects by libcurl, other protocols and TLS libraries other than OpenSSL are not used here. */

#include "net/holes.h"

#include <curl/curl.h>

#include "base/log.h"

static const struct {
    const char *cve;
    unsigned first, last; /* versions */
    unsigned used;        /* any of these */
} holes[] = {
    /* a response that was compressed a thousand times exhausts memory */
    {"CVE-2023-23916", 0x073900, 0x075700, HOLES_HTTP},
    /* a long host name overflows a heap buffer */
    {"CVE-2023-38545", 0x074500, 0x080300, HOLES_SOCKS},
    /* a descriptor is closed twice after a name lookup */
    {"CVE-2025-0665", 0x080b01, 0x080b01, HOLES_HTTP},
};

void holes_find(unsigned version, unsigned used, struct buf *ret)
{
    const char *between = "";

    for (size_t i = 0; i < COUNT_OF(holes); i++) {
        if (!(holes[i].used & used) || version < holes[i].first || version > holes[i].last)
            continue;
        buf_fmt(ret, "%s%s", between, holes[i].cve);
        between = ", ";
    }
}

void holes_warn(unsigned used)
{
    CLEANUP(buf_fini) struct buf found = {0};
    const curl_version_info_data *libcurl = curl_version_info(CURLVERSION_NOW);

    holes_find(libcurl->version_num, used, &found);
    if (found.len > 0)
        log_line(LOG_WARN,
                 "event=libcurl_has_known_holes version=%s cve=\"%s\" reason=\"this version has "
                 "vulnerabilities that concern what is configured: upgrade libcurl, unless your "
                 "distribution has fixed them (distributions do so without a new version number)\"",
                 libcurl->version, found.ptr);
}
