/*
 * Decodes any bytes as a message: the result has a body that can be sent, ids and properties.
 * Proton must not crash: it asserts what it takes for granted.
 */

#include "amqp/amqp_message.h"
#include "base/fuzz.h"
#include "json/json.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    CLEANUP(arena_fini) struct arena a = {0};
    struct amqp_message m;
    struct error e = {0};

    if (amqp_message_decode(&a, (struct slice){(const char *)bytes, len}, &m, &e) != ERR_OK) {
        ASSERT(e.text[0]);
        return 0;
    }
    ASSERT(m.body.ptr);
    for (const struct amqp_property *p = m.properties; p; p = p->next)
        ASSERT(p->name.ptr && p->value.ptr);
    return 0;
}
