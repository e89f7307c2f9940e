/* The server's side of TLS with OpenSSL, without sockets: encrypted bytes in, plain bytes out,
 * and the reverse (tls.h). Certificates are loaded again when their files change. secure.c
 * connects it to a connection; output.c sends what it encrypts. */

#include "http/tls.h"

#include <errno.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

struct tls_keys {
    char *cert_file, *key_file;
    struct stat cert_seen, key_seen; /* as they were before they were last read */
    BIO_METHOD *wire;
    SSL_CTX *ctx;
};

/* OpenSSL reads input from one place and writes output to another. Both are only set during one of
 * the calls below: an idle connection keeps nothing. */
struct tls {
    SSL *ssl;
    struct slice in;
    struct buf *out;
    bool is_broken;
};

/* --- the wire --- */

static int wire_read(BIO *bio, char *to, int max)
{
    struct tls *t = BIO_get_data(bio);
    size_t len = t->in.len < (size_t)max ? t->in.len : (size_t)max;

    BIO_clear_retry_flags(bio);
    if (len == 0) {
        BIO_set_retry_read(bio);
        return -1;
    }
    memcpy(to, t->in.ptr, len);
    t->in = (struct slice){t->in.ptr + len, t->in.len - len};
    return (int)len;
}

static int wire_write(BIO *bio, const char *from, int len)
{
    struct tls *t = BIO_get_data(bio);

    BIO_clear_retry_flags(bio);
    ASSERT(len >= 0);
    if (t->out) /* SSL_free may write, and nothing is sent then */
        buf_add(t->out, from, (size_t)len);
    return len;
}

static long wire_ctrl(BIO *bio, int what, long number, void *ptr)
{
    (void)bio;
    (void)number;
    (void)ptr;
    return what == BIO_CTRL_FLUSH;
}

static BIO_METHOD *wire_method(void)
{
    BIO_METHOD *m = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "wire");

    ASSERT(m);
    (void)BIO_meth_set_read(m, wire_read); /* these always succeed */
    (void)BIO_meth_set_write(m, wire_write);
    (void)BIO_meth_set_ctrl(m, wire_ctrl);
    return m;
}

/* --- certificate and key --- */

/* RFC 7301: a client that offers only other protocols is refused. */
static int on_alpn(SSL *ssl, const unsigned char **ret, unsigned char *ret_len,
                   const unsigned char *offered, unsigned len, void *arg)
{
    static const unsigned char ours[] = "\x08http/1.1";
    unsigned char *found = NULL;
    (void)ssl;
    (void)arg;

    if (SSL_select_next_proto(&found, ret_len, ours, sizeof ours - 1, offered, len)
        != OPENSSL_NPN_NEGOTIATED)
        return SSL_TLSEXT_ERR_ALERT_FATAL;
    *ret = found;
    return SSL_TLSEXT_ERR_OK;
}

/* There is nobody to ask. NOLINTNEXTLINE: its parameters are as OpenSSL wants them. */
static int no_passphrase(char *to, int max, int is_writing, void *arg)
{
    (void)to;
    (void)max;
    (void)is_writing;
    (void)arg;
    return -1;
}

static SSL_CTX *context_new(void)
{
    SSL_CTX *ctx = SSL_CTX_new(TLS_server_method());

    if (!ctx)
        return NULL;
    bool ok = SSL_CTX_set_min_proto_version(ctx, TLS1_2_VERSION) == 1
              && SSL_CTX_set_cipher_list(ctx, "ECDHE+AESGCM:ECDHE+CHACHA20") == 1;
    (void)SSL_CTX_set_options(ctx, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION
                                       | SSL_OP_CIPHER_SERVER_PREFERENCE);
    (void)SSL_CTX_set_mode(ctx, SSL_MODE_RELEASE_BUFFERS);
    (void)SSL_CTX_set_session_cache_mode(ctx, SSL_SESS_CACHE_OFF);
    (void)SSL_CTX_set_num_tickets(ctx, 1);
    SSL_CTX_set_alpn_select_cb(ctx, on_alpn, NULL);
    SSL_CTX_set_default_passwd_cb(ctx, no_passphrase);
    if (ok)
        return ctx;
    SSL_CTX_free(ctx);
    return NULL;
}

/* OpenSSL's error for an unreadable file is unclear; the system's is not. */
static enum err file_check(const char *what, const char *path, struct stat *ret, struct error *e)
{
    if (stat(path, ret) != 0) {
        *ret = (struct stat){0};
        return error_set(e, ERR_INVALID, "%s %s: %s", what, path, strerror(errno));
    }
    if (!S_ISREG(ret->st_mode)) /* opening a pipe would block until there is a writer */
        return error_set(e, ERR_INVALID, "%s %s: not a file", what, path);
    if (access(path, R_OK) != 0)
        return error_set(e, ERR_INVALID, "%s %s: %s", what, path, strerror(errno));
    return ERR_OK;
}

static enum err context_fill(SSL_CTX *ctx, const struct tls_keys *k, struct error *e)
{
    if (SSL_CTX_use_certificate_chain_file(ctx, k->cert_file) != 1)
        return error_set(e, ERR_INVALID,
                         "certificate %s: expected certificates in PEM, its own first, of a key "
                         "that is strong enough",
                         k->cert_file);
    if (SSL_CTX_use_PrivateKey_file(ctx, k->key_file, SSL_FILETYPE_PEM) != 1
        && ERR_GET_REASON(ERR_peek_last_error()) != X509_R_KEY_VALUES_MISMATCH
        && ERR_GET_REASON(ERR_peek_last_error()) != X509_R_KEY_TYPE_MISMATCH)
        return error_set(e, ERR_INVALID,
                         "private key %s: expected a key in PEM without a passphrase", k->key_file);
    if (SSL_CTX_check_private_key(ctx) != 1)
        return error_set(e, ERR_INVALID, "private key %s does not belong to the certificate in %s",
                         k->key_file, k->cert_file);
    return ERR_OK;
}

enum err tls_keys_reload(struct tls_keys *k, struct error *e)
{
    enum err err = file_check("certificate", k->cert_file, &k->cert_seen, e);
    enum err key_err = file_check("private key", k->key_file, &k->key_seen, e);

    if (err == ERR_OK)
        err = key_err;
    if (err != ERR_OK)
        return err;
    SSL_CTX *ctx = context_new();
    if (!ctx)
        return error_set(e, ERR_IO, "TLS cannot be set up");
    err = context_fill(ctx, k, e);
    ERR_clear_error();
    if (err != ERR_OK) {
        SSL_CTX_free(ctx);
        return err;
    }
    SSL_CTX_free(k->ctx); /* connections hold their own reference */
    k->ctx = ctx;
    return ERR_OK;
}

enum err tls_keys_new(const char *cert_file, const char *key_file, struct tls_keys **ret,
                      struct error *e)
{
    struct tls_keys *k = calloc(1, sizeof *k);

    ASSERT(k);
    k->cert_file = strdup(cert_file);
    k->key_file = strdup(key_file);
    ASSERT(k->cert_file);
    ASSERT(k->key_file);
    enum err err = tls_keys_reload(k, e);
    if (err != ERR_OK) {
        tls_keys_free(k);
        return err;
    }
    k->wire = wire_method();
    *ret = k;
    return ERR_OK;
}

void tls_keys_free(struct tls_keys *k)
{
    if (!k)
        return;
    SSL_CTX_free(k->ctx);
    BIO_meth_free(k->wire);
    free(k->cert_file);
    free(k->key_file);
    free(k);
}

static bool file_changed(const char *path, const struct stat *seen)
{
    struct stat now = {0};

    if (stat(path, &now) != 0)
        now = (struct stat){0};
    return now.st_ino != seen->st_ino || now.st_dev != seen->st_dev || now.st_size != seen->st_size
           || now.st_mtim.tv_sec != seen->st_mtim.tv_sec
           || now.st_mtim.tv_nsec != seen->st_mtim.tv_nsec
           || now.st_ctim.tv_sec != seen->st_ctim.tv_sec
           || now.st_ctim.tv_nsec != seen->st_ctim.tv_nsec;
}

bool tls_keys_changed(const struct tls_keys *k)
{
    return file_changed(k->cert_file, &k->cert_seen) || file_changed(k->key_file, &k->key_seen);
}

/* --- connections --- */

struct tls *tls_new(const struct tls_keys *k)
{
    struct tls *t = calloc(1, sizeof *t);

    ASSERT(t);
    BIO *bio = BIO_new(k->wire);
    t->ssl = SSL_new(k->ctx);
    if (!bio || !t->ssl) {
        BIO_free(bio);
        tls_free(t);
        return NULL;
    }
    BIO_set_data(bio, t);
    BIO_set_init(bio, 1);
    SSL_set_bio(t->ssl, bio, bio);
    SSL_set_accept_state(t->ssl);
    return t;
}

void tls_free(struct tls *t)
{
    if (!t)
        return;
    SSL_free(t->ssl);
    free(t);
}

bool tls_is_up(const struct tls *t)
{
    return SSL_is_init_finished(t->ssl) == 1 && !t->is_broken;
}

static enum tls_state fail(struct tls *t)
{
    bool is_http = ERR_GET_REASON(ERR_peek_error()) == SSL_R_HTTP_REQUEST;

    t->is_broken = true;
    ERR_clear_error();
    return is_http ? TLS_NOT_TLS : TLS_IS_BROKEN;
}

static enum tls_state read_all(struct tls *t, struct buf *plain)
{
    for (;;) {
        size_t len = 0;
        char *room = buf_room(plain, TLS_RECORD_MAX);
        if (SSL_read_ex(t->ssl, room, TLS_RECORD_MAX, &len) == 1) {
            plain->len += len;
            plain->ptr[plain->len] = 0;
            continue;
        }
        switch (SSL_get_error(t->ssl, 0)) {
        case SSL_ERROR_WANT_READ:
            return TLS_GOES_ON;
        case SSL_ERROR_ZERO_RETURN:
            return TLS_ENDED;
        default:
            return fail(t);
        }
    }
}

enum tls_state tls_receive(struct tls *t, struct slice wire, struct buf *plain, struct buf *reply)
{
    bool was_up = tls_is_up(t);

    if (t->is_broken)
        return TLS_IS_BROKEN;
    ERR_clear_error();
    t->in = wire;
    t->out = reply;
    enum tls_state state = read_all(t, plain); /* includes the handshake */
    ASSERT(state != TLS_GOES_ON || t->in.len == 0);
    t->in = SLICE_NONE;
    t->out = NULL;
    /* A message of a handshake has begun and not ended, such as a KeyUpdate that is cut in two.
     * OpenSSL counts the connection as not up until the rest comes: nothing could be sent. */
    return state == TLS_GOES_ON && was_up && !tls_is_up(t) ? fail(t) : state;
}

bool tls_send(struct tls *t, struct slice plain, struct buf *wire)
{
    size_t len = 0;

    if (!tls_is_up(t))
        return false;
    if (plain.len == 0)
        return true;
    ERR_clear_error();
    t->out = wire;
    bool ok = SSL_write_ex(t->ssl, plain.ptr, plain.len, &len) == 1;
    t->out = NULL;
    if (!ok)
        (void)fail(t); /* the caller sees it in the result */
    return ok;
}

void tls_end(struct tls *t, struct buf *wire)
{
    if (!tls_is_up(t))
        return;
    ERR_clear_error();
    t->out = wire;
    (void)SSL_shutdown(t->ssl); /* the client's close_notify is not awaited */
    t->out = NULL;
    ERR_clear_error();
}
