/* Encodes and decodes messages as bytes of AMQP 1.0, by Proton (message.h). Uses no connection:
 * broker.c sends and receives the bytes. */

#include "message.h"

#include <proton/codec.h>
#include <proton/message.h>
#include <stdlib.h>
#include <string.h>

/* A copy with a NUL behind it. */
static char *text_of(pn_bytes_t bytes)
{
    char *text = calloc(1, bytes.size + 1);

    if (!text)
        abort(); /* a process that is started again is better than one that goes on without */
    if (bytes.size > 0)
        memcpy(text, bytes.start, bytes.size);
    return text;
}

pn_rwbytes_t message_encode(const struct queue_message *m)
{
    pn_rwbytes_t bytes = {0};
    pn_message_t *p = pn_message();

    pn_message_set_durable(p, true);
    pn_message_set_inferred(p, true); /* the body is bytes, not a value */
    pn_message_set_content_type(p, "application/json");
    if (m->id)
        pn_message_set_id(p, (pn_msgid_t){PN_STRING, {.as_bytes = {strlen(m->id), m->id}}});
    if (m->subject)
        pn_message_set_subject(p, m->subject);
    pn_data_put_binary(pn_message_body(p), pn_bytes(m->size, m->body));
    ssize_t size = pn_message_encode2(p, &bytes);
    if (size < 0)
        abort(); /* memory alone can fail */
    pn_message_free(p);
    return pn_rwbytes((size_t)size, bytes.start); /* what is there may be longer */
}

static pn_bytes_t body_of(pn_message_t *p)
{
    pn_data_t *d = pn_message_body(p);

    if (pn_data_next(d) && pn_data_type(d) == PN_BINARY)
        return pn_data_get_binary(d);
    return pn_data_type(d) == PN_STRING ? pn_data_get_string(d) : pn_bytes(0, NULL);
}

enum queue_verdict message_deliver(const char *queue, pn_rwbytes_t bytes, queue_fn *fn, void *arg)
{
    pn_message_t *p = pn_message();
    pn_bytes_t body = {bytes.size, bytes.start};
    char *id = NULL;
    const char *subject = NULL;

    if (bytes.size > 0 && pn_message_decode(p, bytes.start, bytes.size) == 0) {
        pn_msgid_t given = pn_message_get_id(p);
        body = body_of(p);
        id = given.type == PN_STRING ? text_of(given.u.as_bytes) : NULL;
        subject = pn_message_get_subject(p);
    }
    char *text = text_of(body);
    struct queue_message m = {queue, id, subject, text, body.size};
    enum queue_verdict verdict = fn(arg, &m);
    free(text);
    free(id);
    pn_message_free(p);
    return verdict;
}
