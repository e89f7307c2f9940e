/* `intact serve --virtual-time` (serve_virtual.h): reads its flags, refuses those that make no
 * sense with it, and opens the store in memory. Used by serve.c. */

#include "cli/verbs/serve_virtual.h"

#include <openssl/rand.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/uuid.h"
#include "base/when.h"
#include "cli/verbs/serve_settings.h"
#include "store/memory/memory.h"

int serve_virtual_read(const struct invocation *in, struct virtual_time *vt, bool *ret_is)
{
    static const char *const others[] = {"clock", "clock-at", "end-with-stdin"};
    const char *mode = given(in, "clock");
    int64_t now = clock_wall_ms();

    *ret_is = given(in, "virtual-time") != NULL;
    for (size_t i = 0; i < COUNT_OF(others) && !*ret_is; i++)
        if (given(in, others[i]))
            return verb_misused(in, "--%s is for servers whose time is virtual: --virtual-time",
                                others[i]);
    if (!given_moment(in, "clock-at"))
        return CLI_USAGE;
    if (given(in, "clock-at") && !time_parse(slice_of(given(in, "clock-at")), &now))
        return CLI_USAGE;
    *vt = (struct virtual_time){.mode = VIRTUAL_AUTO};
    atomic_init(&vt->now_ms, now);
    atomic_init(&vt->jumped_ms, 0);
    if (mode && !virtual_mode_find(mode, &vt->mode))
        return CLI_USAGE; /* the table of flags has refused it */
    return CLI_OK;
}

int serve_virtual_check(const struct invocation *in, const struct serve_settings *s)
{
    static const struct {
        const char *flag, *why;
    } refused[] = {
        {"data", "it keeps nothing"},
        {"store", "its store is in memory"},
        {"schema", "its store is in memory"},
        {"migrate", "its store is in memory"},
        {"adopt", "it keeps nothing"},
        {"node", "it is the only node"},
        {"roles", "it is the only node"},
        {"advertise", "it is the only node"},
        {"tls-cert", "it is for tests on one machine"},
        {"tls-key", "it is for tests on one machine"},
        {"behind-proxy", "it is for tests on one machine"},
        {"grace", "it is never started again"},
    };
    const char *url = getenv("INTACT_STORE");

    for (size_t i = 0; i < COUNT_OF(refused); i++)
        if (given(in, refused[i].flag))
            return verb_misused(in, "--%s makes no sense with --virtual-time: %s", refused[i].flag,
                                refused[i].why);
    if (url && *url)
        return verb_misused(in, "$INTACT_STORE names a database, and with --virtual-time the store "
                                "is in memory: unset it");
    if (s->retention.archive.folder)
        return verb_misused(in, "the configuration has an archive, and with --virtual-time nothing "
                                "is kept: leave `archive` out");
    return CLI_OK;
}

enum err serve_virtual_open(struct virtual_time *vt, struct store **ret, struct error *e)
{
    unsigned char random[48];
    char installation[UUID_SIZE];

    if (RAND_bytes(random, sizeof random) != 1)
        return error_set(e, ERR_IO, "no random numbers are available");
    uuid_write(random + 32, installation);
    *ret = memory_store_of_node(&vt->now_ms, installation, random);
    return ERR_OK;
}
