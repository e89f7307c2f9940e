/* The same server with TLS: which clients are accepted, which are refused, and the cleanup after
 * each. */

#include "http/tls.h"

#include <errno.h>
#include <openssl/err.h>
#include <openssl/x509.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "http/cases.h"
#include "http/connection.h"
#include "http/http_message.h"
#include "http/test_kit.h"

#define ASK(path) "GET " path " HTTP/1.1\r\nHost: a\r\n\r\n"

static void up(struct client *c)
{
    UNTIL(c, SSL_is_init_finished(c->ssl), "no handshake");
}

static void every_case_ends_as_it_must(void **state)
{
    (void)state;
    begin_secure(NULL);
    for (size_t i = 0; i < COUNT_OF(http_cases); i++) {
        const struct http_case *t = &http_cases[i];
        unsigned before = w.handled;
        struct client c;
        client_open(&c);
        client_send(&c, t->bytes);
        if (!t->closes)
            client_say(&c, "GET /ping HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
        UNTIL(&c, c.is_ended, "%s: the connection is open: %s", t->what, c.got.ptr);
        CHECK(!c.is_reset, "%s: it did not end in order", t->what);
        CHECK(client_status(&c) == t->status, "%s: %s", t->what, c.got.ptr);
        CHECK(w.handled - before == t->handled + !t->closes, "%s: handled %u", t->what, w.handled);
        CHECK(!client_has(&c, "/smuggled"), "%s", t->what);
        client_close(&c);
    }
    end();
}

static void requests_and_answers_pass_whole(void **state)
{
    CLEANUP(buf_fini) struct buf body = {0};
    struct client c;
    size_t len = 0;
    (void)state;
    begin_secure(NULL);
    w.big = 20000000;
    client_open(&c);
    buf_str(&body, "POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 4000000\r\n\r\n");
    memset(buf_room(&body, 4000000), 'y', 4000000);
    body.len += 4000000;
    client_send(&c, buf_view(&body));
    UNTIL(&c, c.got.len > 4000000, "only %zu bytes came", c.got.len);
    buf_clear(&c.got);
    client_say(&c, ASK("/big") ASK("/after"));
    UNTIL(&c, c.got.len > w.big, "only %zu bytes came", c.got.len);
    EXPECT(&c, "GET /after? ");
    const char *at = strstr(c.got.ptr, "\r\n\r\n") + 4;
    while (at[len] == 'x')
        len++;
    CHECK(len == w.big, "%zu", len);
    CHECK(w.sent == 3, "%u", w.sent);
    client_close(&c);
    end();
}

static void a_slow_reader_of_a_stream_gets_all_of_it(void **state)
{
    char bytes[10000];
    unsigned count = 0;
    struct client c;
    (void)state;
    begin_secure(NULL);
    client_open(&c);
    client_say(&c, ASK("/stream"));
    UNTIL(&c, w.parked_count == 1, "it did not begin");
    memset(bytes, 'x', sizeof bytes);
    while (http_stream_write(w.parked[0], (struct slice){bytes, sizeof bytes}))
        count++;
    CHECK(http_stream_backlog(w.parked[0]) > 0, "it waits");
    UNTIL(&c, http_stream_backlog(w.parked[0]) == 0, "it reads");
    http_stream_end(w.parked[0]);
    EXPECT(&c, "0\r\n\r\n");
    CHECK(client_count(&c, "\r\n2710\r\nx") == count, "%u", count);
    client_close(&c);
    end();
}

/* A turn encrypts its slice, and the end of TLS follows the last one. */
static void much_is_encrypted_by_turns(void **state)
{
    enum { SIZE = 3000000, CLIENTS = 2, ROUND_MAX = 4 * (HTTP_OUTPUT_SLICE + TLS_RECORD_MAX) };
    struct buf bytes = {0};
    struct client c[CLIENTS];
    (void)state;
    begin_secure(NULL);
    for (int i = 0; i < SIZE; i++)
        buf_byte(&bytes, (char)('a' + i % 23));
    struct http_text *text = http_text_new(&bytes);
    for (size_t i = 0; i < CLIENTS; i++) {
        client_open(&c[i]);
        client_say(&c[i], "GET /stream HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
        UNTIL(&c[i], w.parked_count == i + 1, "it did not begin");
        CHECK(http_stream_write_text(w.parked[i], text), "taken");
        http_stream_end(w.parked[i]);
        const struct http_queue *plain = &http_message_of(w.parked[i])->connection->output.plain;
        size_t left = http_queue_len(plain);
        CHECK(left >= SIZE - HTTP_OUTPUT_SLICE, "%zu", left);
        for (int n = 0; n < 4; n++) {
            (void)uv_run(&w.loop, UV_RUN_NOWAIT);
            CHECK(left - http_queue_len(plain) <= ROUND_MAX, "%zu of %zu left",
                  http_queue_len(plain), left);
            left = http_queue_len(plain);
        }
        CHECK(SSL_key_update(c[i].ssl, SSL_KEY_UPDATE_REQUESTED) == 1, "new keys");
        client_say(&c[i], ASK("/never")); /* the keys come with it */
    }
    for (size_t i = 0; i < CLIENTS; i++) {
        EXPECT_END(&c[i]);
        CHECK(SSL_get_shutdown(c[i].ssl) & SSL_RECEIVED_SHUTDOWN, "no close_notify");
        CHECK(memmem(c[i].got.ptr, c[i].got.len, text->bytes.ptr, SIZE), "all of it, in order");
        CHECK(client_has(&c[i], "\r\n0\r\n\r\n"), "the end");
        client_close(&c[i]);
    }
    CHECK(text->refs == 1, "%u", text->refs);
    http_text_drop(text);
    CHECK(http_held(w.server) == 0, "%zu", http_held(w.server));
    end();
}

static void a_connection_ends_with_a_word(void **state)
{
    static const char *const requests[] = {
        "GET /x HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n",
        "GET /stream?short HTTP/1.0\r\n\r\n",
        "GET / HTTP/7.1\r\n\r\n",
        "GET /half HTTP/1.1\r\nHo",
        ASK("/idle"),
    };
    struct http_limits l = http_limits_default;
    (void)state;
    l.head_ms = l.idle_ms = 2000;
    for (size_t i = 0; i < COUNT_OF(requests); i++) {
        struct client c;
        begin_secure(&l);
        client_open(&c);
        up(&c);
        client_say(&c, requests[i]);
        EXPECT_END(&c);
        CHECK(!c.is_reset, "case %zu", i);
        CHECK(SSL_get_shutdown(c.ssl) & SSL_RECEIVED_SHUTDOWN, "case %zu: no close_notify", i);
        client_close(&c);
        end();
    }
}

/* Closing, closing TLS only, a reset, garbage. */
static void a_client_that_goes_while_parked_is_noticed(void **state)
{
    (void)state;
    for (int how = 0; how < 4; how++) {
        struct client c;
        begin_secure(NULL);
        client_open(&c);
        client_say(&c, ASK("/park"));
        UNTIL(&c, w.parked_count == 1, "parked");
        if (how == 0)
            client_close(&c);
        else if (how == 1)
            (void)SSL_shutdown(c.ssl);
        else if (how == 2)
            client_reset(&c);
        else
            CHECK(send(c.fd, "garbage garbage", 15, MSG_NOSIGNAL) == 15, "sent");
        UNTIL(NULL, w.lost == 1, "nobody noticed (%d)", how);
        CHECK(http_connection_count(w.server) == 0, "closed");
        client_close(&c);
        end();
    }
}

static void who_speaks_in_clear_is_told(void **state)
{
    struct client c;
    (void)state;
    begin_secure(NULL);
    client_open_in_clear(&c);
    client_say(&c, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 26\r\n\r\n" ASK("/smuggled"));
    EXPECT_END(&c);
    CHECK(client_status(&c) == 400, "%s", c.got.ptr);
    CHECK(client_has(&c, "https://"), "%s", c.got.ptr);
    CHECK(w.handled == 0, "%u", w.handled);
    client_close(&c);
    end();
}

static void garbage_is_refused(void **state)
{
    static const char *const texts[] = {"\r\n\r\n",
                                        "SSH-2.0-x\r\n",
                                        "\x16\x03\x01\xff\xff\x01garbage and more of it",
                                        "\x16\x03\x01\x00\x05\x02zzzz",
                                        "\x80\x2e\x01\x03\x01",
                                        "\x15\x03\x03\x01\x02\x02\x28",
                                        "\x17\x03\x03\x40\x01x"};
    (void)state;
    begin_secure(NULL);
    for (size_t i = 0; i < COUNT_OF(texts); i++) {
        struct client c;
        client_open_in_clear(&c);
        client_say(&c, texts[i]);
        client_say(&c, "................................................................");
        shutdown(c.fd, SHUT_WR);
        EXPECT_END(&c);
        client_close(&c);
        UNTIL(NULL, http_connection_count(w.server) == 0, "case %zu: it is open", i);
    }
    CHECK(w.handled == 0, "%u", w.handled);
    end();
}

/* The bytes of the first handshake message. */
static void hello(struct buf *ret)
{
    SSL *ssl = client_tls(0);
    BIO *out = BIO_new(BIO_s_mem());
    char *bytes = NULL;

    SSL_set_bio(ssl, BIO_new(BIO_s_mem()), out);
    SSL_set_connect_state(ssl);
    CHECK(SSL_do_handshake(ssl) < 0, "it waits for the answer");
    long len = BIO_get_mem_data(out, &bytes);
    CHECK(len > 100, "%ld", len);
    buf_add(ret, bytes, (size_t)len);
    SSL_free(ssl);
}

static void a_client_may_go_after_any_byte_of_the_handshake(void **state)
{
    CLEANUP(buf_fini) struct buf first = {0};
    (void)state;
    hello(&first);
    begin_secure(NULL);
    for (size_t len = 0; len < first.len * 2; len++) {
        struct client c;
        client_open_in_clear(&c);
        client_send(&c, (struct slice){first.ptr, len / 2});
        turn();
        if (len % 2)
            client_reset(&c);
        else
            client_close(&c);
        UNTIL(NULL, http_connection_count(w.server) == 0, "open after %zu", len / 2);
    }
    end();
}

static void any_byte_of_the_handshake_may_be_wrong(void **state)
{
    CLEANUP(buf_fini) struct buf first = {0};
    (void)state;
    hello(&first);
    begin_secure(NULL);
    for (size_t at = 0; at < first.len; at++) {
        struct client c;
        client_open_in_clear(&c);
        first.ptr[at] = (char)(first.ptr[at] ^ 0x55);
        client_send(&c, buf_view(&first));
        first.ptr[at] = (char)(first.ptr[at] ^ 0x55);
        shutdown(c.fd, SHUT_WR);
        EXPECT_END(&c);
        client_close(&c);
    }
    UNTIL(NULL, http_connection_count(w.server) == 0, "one is open");
    end();
}

enum { THREADS = 4 /* of libuv's pool */, CROWD = 6 };

static uv_sem_t go;

static void hold(uv_work_t *work)
{
    (void)work;
    uv_sem_wait(&go);
}

/* No handshake can proceed while all threads are held. Existing clients are served, and clients may
 * disconnect. */
static void handshakes_hold_up_nobody(void **state)
{
    CLEANUP(buf_fini) struct buf first = {0};
    uv_work_t held[THREADS];
    struct client there;
    struct client crowd[CROWD];
    (void)state;
    hello(&first);
    begin_secure(NULL);
    client_open(&there);
    client_say(&there, "GET /1 HTTP/1.1\r\nHost: a\r\n\r\n");
    EXPECT(&there, "GET /1? ");
    CHECK(uv_sem_init(&go, 0) == 0, "a semaphore");
    for (int i = 0; i < THREADS; i++)
        CHECK(uv_queue_work(&w.loop, &held[i], hold, NULL) == 0, "a thread");
    for (int i = 0; i < CROWD; i++) {
        client_open_in_clear(&crowd[i]);
        client_send(&crowd[i], buf_view(&first));
    }
    UNTIL(NULL, http_connection_count(w.server) == CROWD + 1, "all are there");
    client_say(&there, "GET /2 HTTP/1.1\r\nHost: a\r\n\r\n");
    EXPECT(&there, "GET /2? ");
    for (int i = 0; i < CROWD; i++) {
        client_poll(&crowd[i]);
        CHECK(crowd[i].got.len == 0, "the loop has made the handshake of %d", i);
        if (i % 2)
            client_reset(&crowd[i]);
    }
    for (int i = 0; i < THREADS; i++)
        uv_sem_post(&go);
    for (int i = 0; i < CROWD; i += 2) {
        UNTIL(&crowd[i], crowd[i].got.len > 0, "client %d is forgotten", i);
        client_close(&crowd[i]);
    }
    client_close(&there);
    UNTIL(NULL, http_connection_count(w.server) == 0, "one is open");
    end();
    uv_sem_destroy(&go);
}

/* The server closes while a thread works for it. */
static void a_server_may_close_in_the_middle_of_handshakes(void **state)
{
    CLEANUP(buf_fini) struct buf first = {0};
    uv_work_t held[THREADS];
    struct client crowd[CROWD];
    (void)state;
    hello(&first);
    begin_secure(NULL);
    CHECK(uv_sem_init(&go, 0) == 0, "a semaphore");
    for (int i = 0; i < THREADS; i++)
        CHECK(uv_queue_work(&w.loop, &held[i], hold, NULL) == 0, "a thread");
    for (int i = 0; i < CROWD; i++) {
        client_open_in_clear(&crowd[i]);
        client_send(&crowd[i], buf_view(&first));
    }
    UNTIL(NULL, http_connection_count(w.server) == CROWD, "all are there");
    for (int i = 0; i < 10; i++)
        turn();
    http_close(w.server);
    w.is_closed = true;
    for (int i = 0; i < 10; i++)
        turn();
    for (int i = 0; i < THREADS; i++)
        uv_sem_post(&go);
    end();
    for (int i = 0; i < CROWD; i++)
        client_close(&crowd[i]);
    uv_sem_destroy(&go);
}

static void slow_handshakes_are_cut_off(void **state)
{
    CLEANUP(buf_fini) struct buf first = {0};
    struct http_limits l = http_limits_default;
    struct client silent;
    struct client slow;
    size_t at = 0;
    (void)state;
    l.head_ms = 100;
    hello(&first);
    begin_secure(&l);
    client_open_in_clear(&silent);
    client_open_in_clear(&slow);
    while (!slow.is_ended) {
        CHECK(at + 1 < first.len, "it drips on");
        client_send(&slow, (struct slice){first.ptr + at++, 1});
        client_poll(&slow);
        test_pause();
    }
    EXPECT_END(&silent);
    CHECK(slow.got.len == 0, "nothing it could understand");
    client_close(&silent);
    client_close(&slow);
    end();
}

static void old_versions_and_other_protocols_are_refused(void **state)
{
    static const struct {
        int version;
        const char *protocols;
        bool ok;
    } cases[] = {
        {TLS1_1_VERSION, NULL, false},     {TLS1_2_VERSION, NULL, true},
        {TLS1_3_VERSION, NULL, true},      {TLS1_2_VERSION, "\x08http/1.1", true},
        {0, "\x02h2\x08http/1.1", true},   {0, "\x02h2", false},
        {TLS1_2_VERSION, "\x02h2", false},
    };
    (void)state;
    begin_secure(NULL);
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        const char *names = cases[i].protocols;
        const unsigned char *chosen = NULL;
        unsigned len = 0;
        struct client c;
        client_open_in_clear(&c);
        c.ssl = client_tls(cases[i].version);
        if (names)
            CHECK(SSL_set_alpn_protos(c.ssl, (const unsigned char *)names, (unsigned)strlen(names))
                      == 0,
                  "protocols");
        client_secure(&c);
        client_say(&c, ASK("/x"));
        UNTIL(&c, c.is_ended || client_has(&c, "GET /x? "), "case %zu", i);
        CHECK(c.is_ended != cases[i].ok, "case %zu: %s", i, c.got.ptr);
        SSL_get0_alpn_selected(c.ssl, &chosen, &len);
        CHECK(len == (names && cases[i].ok ? 8 : 0), "case %zu: %u", i, len);
        client_close(&c);
    }
    end();
}

static void renegotiation_is_refused(void **state)
{
    struct client c;
    (void)state;
    begin_secure(NULL);
    client_open_in_clear(&c);
    c.ssl = client_tls(TLS1_2_VERSION);
    client_secure(&c);
    client_say(&c, ASK("/1"));
    EXPECT(&c, "GET /1? ");
    CHECK(SSL_renegotiate(c.ssl) == 1, "it may ask");
    client_say(&c, ASK("/2"));
    UNTIL(&c, c.is_ended || client_has(&c, "GET /2? "), "nothing came of it");
    CHECK(SSL_num_renegotiations(c.ssl) <= 1, "%ld", SSL_num_renegotiations(c.ssl));
    client_close(&c);
    UNTIL(NULL, http_connection_count(w.server) == 0, "it has gone");
    end();
}

static void sessions_are_resumed(void **state)
{
    SSL_SESSION *session = NULL;
    SSL *ssl = client_tls(0);
    (void)state;
    begin_secure(NULL);
    for (int i = 0; i < 2; i++) {
        struct client c;
        client_open_in_clear(&c);
        c.ssl = SSL_new(SSL_get_SSL_CTX(ssl));
        if (session)
            SSL_set_session(c.ssl, session);
        client_secure(&c);
        client_say(&c, ASK("/x"));
        EXPECT(&c, "GET /x? ");
        CHECK(SSL_session_reused(c.ssl) == (i == 1), "round %d", i);
        SSL_SESSION_free(session);
        session = SSL_get1_session(c.ssl);
        (void)SSL_shutdown(c.ssl);
        client_close(&c);
    }
    SSL_SESSION_free(session);
    SSL_free(ssl);
    end();
}

/* ---- reloading files ---- */

static void expect_name(const char *name)
{
    char text[100] = "";
    struct client c;

    client_open(&c);
    client_say(&c, ASK("/x"));
    EXPECT(&c, "GET /x? ");
    X509 *cert = SSL_get1_peer_certificate(c.ssl);
    CHECK(cert, "a certificate");
    (void)X509_NAME_get_text_by_NID(X509_get_subject_name(cert), NID_commonName, text, sizeof text);
    X509_free(cert);
    CHECK(strcmp(text, name) == 0, "it is %s, not %s", text, name);
    client_close(&c);
}

static void overwrite(const char *path, const char *text)
{
    FILE *f = fopen(path, "w");

    CHECK(f, "%s", path);
    (void)fputs(text, f);
    CHECK(fclose(f) == 0, "%s", path);
}

static void a_changed_certificate_is_taken_and_a_broken_one_is_not(void **state)
{
    struct client old;
    (void)state;
    begin_secure(NULL);
    expect_name("first");
    client_open(&old);
    client_say(&old, ASK("/old"));
    EXPECT(&old, "GET /old? ");

    certificate_make(certificate_file(), key_file(), "second");
    w.server->tls_look_at = 0; /* makes the check due */
    expect_name("second");
    CHECK(w.certificates == 1, "%u", w.certificates);
    w.server->tls_look_at = 0;
    expect_name("second");
    CHECK(w.certificates == 1, "nothing has changed");

    overwrite(certificate_file(), "not a certificate\n");
    for (int i = 0; i < 3; i++) {
        w.server->tls_look_at = 0;
        expect_name("second");
    }
    CHECK(w.certificates_refused == 1, "told once, not %u times", w.certificates_refused);
    CHECK(strstr(w.refusal.text, certificate_file()), "%s", w.refusal.text);

    CHECK(unlink(certificate_file()) == 0, "%s", strerror(errno));
    for (int i = 0; i < 3; i++) {
        w.server->tls_look_at = 0;
        expect_name("second");
    }
    CHECK(w.certificates_refused == 2, "told once, not %u times", w.certificates_refused);
    CHECK(strstr(w.refusal.text, "No such file"), "%s", w.refusal.text);
    http_secure_reload(w.server);
    CHECK(w.certificates_refused == 3, "who asks is told");

    certificate_make(certificate_file(), key_file(), "first");
    http_secure_reload(w.server);
    CHECK(w.certificates == 2, "%u", w.certificates);
    expect_name("first");
    client_say(&old, ASK("/still"));
    EXPECT(&old, "GET /still? ");
    client_close(&old);
    end();
}

static void files_that_do_not_fit_are_refused_with_a_reason(void **state)
{
    static const char pem[] = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
    char other_cert[80];
    char other_key[80];
    char text[80];
    char locked[80];
    char command[300];
    (void)state;
    begin_secure(NULL);
    (void)snprintf(other_cert, sizeof other_cert, "%s.other", certificate_file());
    (void)snprintf(other_key, sizeof other_key, "%s.other", key_file());
    (void)snprintf(text, sizeof text, "%s.text", key_file());
    (void)snprintf(locked, sizeof locked, "%s.locked", key_file());
    certificate_make(other_cert, other_key, "other");
    overwrite(text, pem);
    (void)snprintf(command, sizeof command,
                   "openssl ec -in %s -out %s -aes128 -passout pass:secret 2>/dev/null", key_file(),
                   locked);
    CHECK(system(command) == 0, "%s", command);
    const struct {
        const char *cert, *key, *reason;
    } cases[] = {
        {"/nowhere/cert.pem", key_file(), "certificate /nowhere/cert.pem: No such file"},
        {certificate_file(), "/nowhere/key.pem", "private key /nowhere/key.pem: No such file"},
        {"/tmp", key_file(), "certificate /tmp: not a file"},
        {"/dev/null", key_file(), "certificate /dev/null: not a file"},
        {text, key_file(), "expected certificates in PEM"},
        {key_file(), key_file(), "expected certificates in PEM"},
        {certificate_file(), certificate_file(), "expected a key in PEM"},
        {certificate_file(), text, "expected a key in PEM"},
        {certificate_file(), locked, "without a passphrase"},
        {certificate_file(), other_key, "does not belong to the certificate"},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct tls_keys *k = NULL;
        struct error e = {0};
        enum err err = tls_keys_new(cases[i].cert, cases[i].key, &k, &e);
        CHECK(err == ERR_INVALID, "case %zu: %s", i, e.text);
        CHECK(strstr(e.text, cases[i].reason), "case %zu: %s", i, e.text);
    }
    CHECK(ERR_peek_error() == 0, "nothing is left for the next one to stumble on");
    unlink(other_cert);
    unlink(other_key);
    unlink(text);
    unlink(locked);
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
        cmocka_unit_test(every_case_ends_as_it_must),
        cmocka_unit_test(requests_and_answers_pass_whole),
        cmocka_unit_test(a_slow_reader_of_a_stream_gets_all_of_it),
        cmocka_unit_test(much_is_encrypted_by_turns),
        cmocka_unit_test(a_connection_ends_with_a_word),
        cmocka_unit_test(a_client_that_goes_while_parked_is_noticed),
        cmocka_unit_test(who_speaks_in_clear_is_told),
        cmocka_unit_test(garbage_is_refused),
        cmocka_unit_test(a_client_may_go_after_any_byte_of_the_handshake),
        cmocka_unit_test(any_byte_of_the_handshake_may_be_wrong),
        cmocka_unit_test(handshakes_hold_up_nobody),
        cmocka_unit_test(a_server_may_close_in_the_middle_of_handshakes),
        cmocka_unit_test(slow_handshakes_are_cut_off),
        cmocka_unit_test(old_versions_and_other_protocols_are_refused),
        cmocka_unit_test(renegotiation_is_refused),
        cmocka_unit_test(sessions_are_resumed),
        cmocka_unit_test(a_changed_certificate_is_taken_and_a_broken_one_is_not),
        cmocka_unit_test(files_that_do_not_fit_are_refused_with_a_reason),
    };
    return cmocka_run_group_tests(tests, NULL, finish);
}
