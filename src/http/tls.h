#ifndef HTTP_TLS_H
#define HTTP_TLS_H

/*
 * The server's side of TLS 1.2 and 1.3 (OpenSSL), without sockets: bytes of the wire in, bytes of
 * the client out, and the other way round. Offers "http/1.1" by ALPN; a client that names only
 * other protocols is refused. No renegotiation, no early data (it could be replayed), no list of
 * sessions: clients keep theirs, as tickets.
 *
 * A connection that is quiet holds no buffers. One thread at a time may use a connection, any
 * thread; all else belongs to one thread.
 */

#include "base/buf.h"
#include "base/err.h"

struct tls_keys; /* certificate and key, as they were last read */
struct tls;      /* one connection */

/* Reads both files, PEM: the certificate with those that it needs on the way to its root, and its
 * key without a passphrase. The error names the file and what is wrong with it. */
enum err tls_keys_new(const char *cert_file, const char *key_file, struct tls_keys **ret,
                      struct error *e) MUST_USE;
void tls_keys_free(struct tls_keys *k); /* connections may outlive it; NULL is fine */

/* Have the files changed since they were last read, whatever came of that? */
bool tls_keys_changed(const struct tls_keys *k);

/* Reads them again, for connections to come. On error the old ones stay. */
enum err tls_keys_reload(struct tls_keys *k, struct error *e) MUST_USE;

struct tls *tls_new(const struct tls_keys *k); /* NULL: no memory */
void tls_free(struct tls *t);                  /* NULL is fine */
bool tls_is_up(const struct tls *t);           /* the handshake is done */

enum tls_state {
    TLS_GOES_ON,
    TLS_ENDED,     /* the client says that it will send nothing more */
    TLS_NOT_TLS,   /* it speaks HTTP in clear */
    TLS_IS_BROKEN, /* nothing can be read or sent any more */
};

/* Takes all of `wire`. Appends what the client says to `plain`, and what must go back to `reply`,
 * even if it ends here: the client may learn why. */
enum tls_state tls_receive(struct tls *t, struct slice wire, struct buf *plain,
                           struct buf *reply) MUST_USE;

/* Appends `plain` in its sealed form to `wire`. False: it is broken. */
bool tls_send(struct tls *t, struct slice plain, struct buf *wire) MUST_USE;

void tls_end(struct tls *t, struct buf *wire); /* says that nothing more will be sent */

#endif
