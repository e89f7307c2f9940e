/* Records of TLS that no library sends, encrypted here with the keys of the client's connection: a
 * message of a handshake that comes when the handshake is over. */

#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "http/test_kit.h"

enum { SECRET = 32, KEY = 16, IV = 12, TAG = 16, HEAD = 5, HANDSHAKE = 22 };

static unsigned char secret[SECRET];

/* The client's secret, when its connection is up: "CLIENT_TRAFFIC_SECRET_0 RANDOM SECRET". */
static void on_secret(const SSL *ssl, const char *line)
{
    static const char label[] = "CLIENT_TRAFFIC_SECRET_0 ";
    long len = 0;
    (void)ssl;

    if (strncmp(line, label, strlen(label)) != 0)
        return;
    unsigned char *bytes = OPENSSL_hexstr2buf(strrchr(line, ' ') + 1, &len);
    CHECK(bytes && len == SECRET, "%s", line);
    memcpy(secret, bytes, SECRET);
    OPENSSL_free(bytes);
}

/* HKDF-Expand-Label (RFC 8446, 7.1) of at most one block. */
static void derive(const char *label, unsigned char *ret, size_t len)
{
    unsigned char text[32] = {0, (unsigned char)len, (unsigned char)(6 + strlen(label))};
    unsigned char out[EVP_MAX_MD_SIZE];

    memcpy(text + 3, "tls13 ", 6);
    memcpy(text + 9, label, strlen(label));
    size_t at = 9 + strlen(label);
    text[at + 1] = 1; /* behind an empty context: the number of the block */
    CHECK(HMAC(EVP_sha256(), secret, SECRET, text, at + 2, out, NULL), "derived");
    memcpy(ret, out, len);
}

/* The n-th record that the client sends with these keys (RFC 8446, 5.2). */
static void record_send(const struct client *c, unsigned n, struct slice message)
{
    unsigned char key[KEY];
    unsigned char iv[IV];
    unsigned char plain[16];
    unsigned char wire[64] = {23, 3, 3, 0, (unsigned char)(message.len + 1 + TAG)};
    int len = 0;

    derive("key", key, KEY);
    derive("iv", iv, IV);
    iv[IV - 1] ^= (unsigned char)n;
    memcpy(plain, message.ptr, message.len);
    plain[message.len] = HANDSHAKE;
    EVP_CIPHER_CTX *cipher = EVP_CIPHER_CTX_new();
    CHECK(EVP_EncryptInit_ex(cipher, EVP_aes_128_gcm(), NULL, key, iv) == 1
              && EVP_EncryptUpdate(cipher, NULL, &len, wire, HEAD) == 1
              && EVP_EncryptUpdate(cipher, wire + HEAD, &len, plain, (int)message.len + 1) == 1
              && EVP_EncryptFinal_ex(cipher, wire + HEAD + len, &len) == 1
              && EVP_CIPHER_CTX_ctrl(cipher, EVP_CTRL_GCM_GET_TAG, TAG,
                                     wire + HEAD + message.len + 1)
                     == 1,
          "encrypted");
    EVP_CIPHER_CTX_free(cipher);
    size_t size = HEAD + message.len + 1 + TAG;
    CHECK(send(c->fd, wire, size, MSG_NOSIGNAL) == (ssize_t)size, "sent");
}

/* One that has a stream; its next record is the one with number 1. */
static void open_stream(struct client *c)
{
    client_open_in_clear(c);
    c->ssl = client_tls(TLS1_3_VERSION);
    CHECK(SSL_set_ciphersuites(c->ssl, "TLS_AES_128_GCM_SHA256") == 1, "ciphers");
    SSL_CTX_set_keylog_callback(SSL_get_SSL_CTX(c->ssl), on_secret);
    client_secure(c);
    client_say(c, "GET /stream HTTP/1.1\r\nHost: a\r\n\r\n");
    UNTIL(c, w.parked_count == 1, "it did not begin");
}

/* Without this one, the others would pass if no record could be decrypted. */
static void new_keys_in_one_record_are_taken(void **state)
{
    struct client c;
    (void)state;

    begin_secure(NULL);
    open_stream(&c);
    record_send(&c, 1, SLICE("\x18\0\0\1\0"));
    for (int i = 0; i < 20; i++)
        turn();
    CHECK(http_stream_write(w.parked[0], SLICE("alive")), "taken");
    EXPECT(&c, "alive");
    http_stream_end(w.parked[0]);
    EXPECT(&c, "\r\n0\r\n\r\n");
    client_close(&c);
    end();
}

static void half_a_message_closes_the_connection(void **state)
{
    struct client c;
    (void)state;

    begin_secure(NULL);
    open_stream(&c);
    record_send(&c, 1, SLICE("\x18\0\0\1"));
    EXPECT_END(&c);
    CHECK(w.lost == 1, "its stream has ended: %u", w.lost);
    client_close(&c);
    end();
}

/* The server does not read on a thread what it reads in the loop. */
static void whoever_goes_on_after_half_a_message_disturbs_nobody(void **state)
{
    struct client c;
    struct client other;
    (void)state;

    begin_secure(NULL);
    open_stream(&c);
    record_send(&c, 1, SLICE("\x18\0\0\1"));
    turn();
    record_send(&c, 2, SLICE("\0"));
    turn();
    (void)send(c.fd, "\x17\3\3\0\1x", 6, MSG_NOSIGNAL); /* it may be closed already */
    EXPECT_END(&c);
    client_open(&other);
    client_say(&other, "GET /after HTTP/1.1\r\nHost: a\r\n\r\n");
    EXPECT(&other, "GET /after? ");
    client_close(&other);
    client_close(&c);
    end();
}

static int finish(void **state)
{
    (void)state;
    certificate_forget();
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(new_keys_in_one_record_are_taken),
        cmocka_unit_test(half_a_message_closes_the_connection),
        cmocka_unit_test(whoever_goes_on_after_half_a_message_disturbs_nobody),
    };
    return cmocka_run_group_tests(tests, NULL, finish);
}
