#ifndef HTTP_TLS_H
#define HTTP_TLS_H

/*
 * The server's side of TLS 1.2 and 1.3 (OpenSSL), without sockets: encrypted bytes in, plain bytes
 * out, and the reverse. Offers "http/1.1" by ALPN; a client that names only other protocols is
 * refused. No renegotiation, no early data (it could be replayed), no session cache: clients keep
 * their sessions, as tickets.
 *
 * An idle connection holds no buffers. A connection may be used by any thread, one at a time;
 * everything else belongs to one thread.
 */

#include "base/buf.h"
#include "base/err.h"

struct tls_keys; /* certificate and key, as they were last read */
struct tls;      /* one connection */

/* Reads both files, PEM: the certificate with its chain up to the root, and its key without a
 * passphrase. The error names the file and its problem. */
enum err tls_keys_new(const char *cert_file, const char *key_file, struct tls_keys **ret,
                      struct error *e) MUST_USE;
void tls_keys_free(struct tls_keys *k); /* connections may outlive it; NULL is allowed */

/* Whether the files have changed since the last attempt to read them. */
bool tls_keys_changed(const struct tls_keys *k);

/* Reloads them for new connections. On error the old ones stay. */
enum err tls_keys_reload(struct tls_keys *k, struct error *e) MUST_USE;

struct tls *tls_new(const struct tls_keys *k); /* NULL: no memory */
void tls_free(struct tls *t);                  /* NULL is allowed */
bool tls_is_up(const struct tls *t);           /* the handshake is done */

enum { TLS_RECORD_MAX = 16384 /* plain bytes of one record */ };

enum tls_state {
    TLS_GOES_ON,
    TLS_ENDED,     /* the client will send no more */
    TLS_NOT_TLS,   /* it speaks plain HTTP */
    TLS_IS_BROKEN, /* nothing can be read or sent any more */
};

/* Consumes all of `wire`. Appends decrypted data to `plain`, and what must be sent back to `reply`,
 * even on failure: it may tell the client the reason. A connection that is up stays up, or is
 * broken. */
enum tls_state tls_receive(struct tls *t, struct slice wire, struct buf *plain,
                           struct buf *reply) MUST_USE;

/* Appends `plain`, encrypted, to `wire`. False: the connection is broken. */
bool tls_send(struct tls *t, struct slice plain, struct buf *wire) MUST_USE;

void tls_end(struct tls *t, struct buf *wire); /* announces that nothing more will be sent */

#endif
