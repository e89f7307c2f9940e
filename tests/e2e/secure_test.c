/* Tests of TLS with other implementations: curl, openssl, and a broken client; and of
 * certificates that change while the server runs. http/tls_test.c tests the HTTP layer alone. */

#include <errno.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "http/cases.h"
#include "kit.h"

static struct node node;
static char cert[96], key[96];
static const char *program;

PRINTF(1, 2) static int run(const char *fmt, ...)
{
    char command[1000];
    va_list ap;

    va_start(ap, fmt);
    int len = vsnprintf(command, sizeof command, fmt, ap);
    va_end(ap);
    CHECK(len > 0 && len < (int)sizeof command, "%s", command);
    int status = system(command); /* NOLINT: ours */
    CHECK(WIFEXITED(status), "%s", command);
    return WEXITSTATUS(status);
}

/* Both files are moved in, so that nobody finds half a file. */
static void make_certificate(const char *name)
{
    CHECK(run("openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 30 "
              "-keyout %s.new -out %s.new -subj /CN=%s "
              "-addext subjectAltName=DNS:localhost,IP:127.0.0.1 2>/dev/null "
              "&& mv %s.new %s && mv %s.new %s",
              key, cert, name, key, key, cert, cert)
              == 0,
          "openssl req");
}

static int start(void **state)
{
    node_init(&node);
    *state = &node;
    (void)snprintf(cert, sizeof cert, "%s/cert.pem", node.home);
    (void)snprintf(key, sizeof key, "%s/key.pem", node.home);
    make_certificate("first");
    node_start(&node, FLAGS("--tls-cert", cert, "--tls-key", key, "--host", "a", "--limit",
                            "head-time=10m"));
    return 0;
}

static int curl(int port, const char *flags)
{
    return run("curl -sS -o /dev/null --fail --cacert %s %s https://localhost:%d/healthz "
               "2>>%s/curl",
               cert, flags, port, node.home);
}

static void curl_is_served(void **state)
{
    REPLY r = {0};
    (void)state;

    CHECK(curl(node.port, "") == 0, "plainly");
    CHECK(curl(node.port, "--http1.1") == 0, "HTTP/1.1");
    CHECK(curl(node.port, "--http2") == 0, "offers HTTP/2, takes 1.1");
    CHECK(curl(node.port, "--tlsv1.3") == 0, "TLS 1.3");
    CHECK(curl(node.port, "--tls-max 1.2") == 0, "TLS 1.2");
    CHECK(curl(node.port, "--tls-max 1.1") != 0, "TLS 1.1 is refused");
    CHECK(run("curl -sS -o /dev/null https://localhost:%d/healthz 2>>%s/curl", node.port, node.home)
              == 60,
          "curl does not know the certificate");
    CHECK(
        run("test \"$(curl -s -o /dev/null -w '%%{http_code}' http://localhost:%d/healthz)\" = 400",
            node.port)
            == 0,
        "in clear it is told");
    get(&node, &r, "/healthz");
    expect_problem(&r, 400, "tls");
}

/* A client that does not trust the server's certificate gets that reason, and not the advice to
 * check whether the server runs. */
static void a_certificate_that_is_not_trusted_is_told(void **state)
{
    static const struct {
        const char *ca, *address, *told;
    } cases[] = {
        {NULL, "https://localhost", "INTACT_CA"},
        {"/nowhere.pem", "https://localhost", "a readable file of certificates (PEM)"},
        {cert, "https://elsewhere.localhost", "the address must use a name of the certificate"},
        {cert, "https://localhost", NULL},
    };
    (void)state;

    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        CLEANUP(buf_fini) struct buf ca = {0};
        if (cases[i].ca)
            buf_fmt(&ca, "INTACT_CA=%s", cases[i].ca);
        int status =
            run("env -u INTACT_CA %s '%s' list --limit 1 --server %s:%d "
                "--token-file %s/admin-token >%s/said 2>&1",
                ca.ptr ? ca.ptr : "", program, cases[i].address, node.port, node.data, node.home);
        CHECK(status == (cases[i].told ? 3 : 0), "case %zu: %d", i, status);
        CHECK(run("grep -q 'Is the server running' %s/said", node.home) == 1, "case %zu", i);
        CHECK(!cases[i].told || run("grep -qF '%s' %s/said", cases[i].told, node.home) == 0,
              "case %zu", i);
    }
}

/* What needs no access token needs the certificate all the same. */
static void results_come_from_elsewhere(void **state)
{
    (void)state;

    CHECK(run("curl -s --cacert %s https://localhost:%d/v1/attempts/t~0~f1~AAAAAAAAAAAAAAAAAAAAAA "
              "-H 'Content-Type: application/json' -d '{\"output\": 1}' "
              "| grep -q urn:intact:problem:unknown-attempt",
              cert, node.port)
              == 0,
          "without a token of the server's");
    CHECK(run("curl -s https://localhost:%d/v1/attempts/t -d '{}' 2>>%s/curl", node.port, node.home)
              == 60,
          "curl does not know the certificate");
}

static void openssl_is_served(void **state)
{
    (void)state;
    CHECK(
        run("printf 'GET /healthz HTTP/1.1\\r\\nHost: localhost\\r\\nConnection: close\\r\\n\\r\\n'"
            " | openssl s_client -quiet -verify_return_error -CAfile %s -connect localhost:%d "
            "-alpn http/1.1 2>/dev/null | grep -q 'HTTP/1.1 200 OK'",
            cert, node.port)
            == 0,
        "s_client");
    CHECK(run("openssl s_client -connect localhost:%d -alpn h2 </dev/null >/dev/null 2>&1",
              node.port)
              != 0,
          "only h2 is refused");
}

/* ---- a client of our own ---- */

static SSL_CTX *context;

static SSL *dial_secure(void)
{
    if (!context)
        context = SSL_CTX_new(TLS_client_method());
    SSL *ssl = SSL_new(context);
    CHECK(ssl, "a client");
    CHECK(SSL_set_fd(ssl, dial(&node)) == 1, "its socket");
    CHECK(SSL_connect(ssl) == 1, "no handshake");
    return ssl;
}

static void hang_up(SSL *ssl)
{
    int fd = SSL_get_fd(ssl);

    SSL_free(ssl);
    (void)close(fd);
}

static void say_secure(SSL *ssl, struct slice s)
{
    size_t n = 0;

    if (s.len > 0)
        (void)SSL_write_ex(ssl, s.ptr, s.len, &n); /* it may have been refused already */
}

/* What comes until the server ends the connection; must it do so in order? */
static void hear_secure(SSL *ssl, struct buf *ret)
{
    size_t n = 0;

    while (SSL_read_ex(ssl, buf_room(ret, 16384), 16384, &n) == 1)
        ret->len += n;
    ERR_clear_error();
    buf_str(ret, "");
    CHECK(SSL_get_shutdown(ssl) & SSL_RECEIVED_SHUTDOWN, "no close_notify behind %s", ret->ptr);
}

static unsigned answers_in(const struct buf *got)
{
    unsigned count = 0;

    for (const char *at = got->ptr; (at = strstr(at, "HTTP/1.1 ")); at += 9)
        count += at[9] >= '1' && at[9] <= '5';
    return count;
}

static void every_third_case_ends_as_in_clear(void **state)
{
    static const char ping[] = "GET /healthz HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";
    const struct node other = node;
    (void)state;

    node_init(&node); /* strangers would be refused before anything else is looked at */
    node_start(&node, FLAGS("--open", "--tls-cert", cert, "--tls-key", key, "--host", "a"));
    for (size_t i = 0; i < COUNT_OF(http_cases); i += 3) {
        const struct http_case *t = &http_cases[i];
        CLEANUP(buf_fini) struct buf got = {0};
        SSL *ssl = dial_secure();
        say_secure(ssl, t->bytes);
        if (!t->closes)
            say_secure(ssl, slice_of(ping));
        hear_secure(ssl, &got);
        CHECK(answers_in(&got) == t->handled + (t->status != 200 || !t->closes), "%s: %s", t->what,
              got.ptr);
        hang_up(ssl);
    }
    node_stop(&node);
    node_fini(&node);
    node = other;
}

static void half_handshakes_are_cut_off_and_disturb_nobody(void **state)
{
    static int fds[200];
    struct pollfd p = {.events = POLLIN};
    struct node strict;
    int64_t until = steady_ms() + PATIENCE_MS;
    (void)state;

    node_init(&strict);
    node_start(&strict, FLAGS("--tls-cert", cert, "--tls-key", key, "--limit", "head-time=2s"));
    for (size_t i = 0; i < COUNT_OF(fds); i++) {
        fds[i] = dial(&strict);
        say(fds[i], i % 2 ? SLICE("\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03") : SLICE(""));
    }
    while (curl(strict.port, "") != 0) /* a slow machine may be cut off itself */
        CHECK(steady_ms() < until, "others are not served");
    for (size_t i = 0; i < COUNT_OF(fds); i++) {
        char byte = 0;
        p.fd = fds[i];
        CHECK(poll(&p, 1, PATIENCE_MS) == 1, "it is open");
        CHECK(recv(fds[i], &byte, 1, 0) <= 0, "it would not understand a word");
        (void)close(fds[i]);
    }
    node_stop(&strict);
    node_fini(&strict);
}

static void name_of(const SSL *ssl, char *ret, int size)
{
    X509 *x = SSL_get1_peer_certificate(ssl);

    CHECK(x, "no certificate");
    (void)X509_NAME_get_text_by_NID(X509_get_subject_name(x), NID_commonName, ret, size);
    X509_free(x);
}

static bool serves_as(const char *name)
{
    char found[64] = "";
    SSL *ssl = dial_secure();

    name_of(ssl, found, sizeof found);
    hang_up(ssl);
    return strcmp(found, name) == 0;
}

static void until_it_serves_as(const char *name)
{
    int64_t until = steady_ms() + PATIENCE_MS;

    while (!serves_as(name)) {
        CHECK(steady_ms() < until, "it never serves as %s", name);
        sleep_ms(50);
    }
}

static void ask_on(SSL *ssl)
{
    CLEANUP(buf_fini) struct buf got = {0};
    size_t n = 0;

    say_secure(ssl, SLICE("GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"));
    while (got.len == 0 || got.ptr[got.len - 1] != '}') {
        CHECK(SSL_read_ex(ssl, buf_room(&got, 16384), 16384, &n) == 1, "the connection is gone");
        got.len += n;
    }
    CHECK(memcmp(got.ptr, "HTTP/1.1 200", 12) == 0, "%.*s", (int)got.len, got.ptr);
}

static void overwrite(const char *path, const char *text)
{
    FILE *f = fopen(path, "w");

    CHECK(f, "%s: %s", path, strerror(errno));
    (void)fputs(text, f);
    CHECK(fclose(f) == 0, "%s", path);
}

/* Whoever is connected goes on, and whoever comes finds one certificate or the other. */
static void certificates_change_under_load(void **state)
{
    SSL *old[50];
    int64_t until = steady_ms() + PATIENCE_MS;
    (void)state;

    for (size_t i = 0; i < COUNT_OF(old); i++)
        old[i] = dial_secure();
    for (int round = 0; round < 5; round++) {
        const char *name = round % 2 ? "first" : "second";
        make_certificate(name);
        if (round % 2)
            node_signal(&node, SIGHUP); /* at once */
        bool is_new = false;
        while (!is_new) {
            CHECK(steady_ms() < until, "it never serves as %s", name);
            is_new = serves_as(name);
            for (size_t i = 0; i < COUNT_OF(old); i++)
                ask_on(old[i]);
        }
    }
    for (size_t i = 0; i < COUNT_OF(old); i++)
        hang_up(old[i]);
    assert_true(node_log_has(&node, "event=certificate_loaded"));
}

static void a_broken_certificate_is_told_of_and_not_used(void **state)
{
    int64_t until = steady_ms() + PATIENCE_MS;
    (void)state;

    make_certificate("good");
    until_it_serves_as("good");
    overwrite(cert, "-----BEGIN CERTIFICATE-----\n");
    node_signal(&node, SIGHUP);
    while (!node_log_has(&node, "event=certificate_refused")) {
        CHECK(steady_ms() < until, "nobody was told");
        sleep_ms(10);
    }
    CHECK(node_log_has(&node, cert), "the log names the file");
    CHECK(serves_as("good"), "the old one stays");
    make_certificate("better");
    until_it_serves_as("better"); /* without a signal */
}

static void what_it_cannot_use_is_refused_at_the_start(void **state)
{
    char other[100];
    (void)state;

    (void)snprintf(other, sizeof other, "%s/other.pem", node.home);
    CHECK(run("openssl ecparam -name prime256v1 -genkey -noout -out %s", other) == 0, "a key");
    const struct {
        const char *cert, *key, *expected;
    } cases[] = {
        {"/nowhere/cert.pem", key, "certificate /nowhere/cert.pem: No such file"},
        {cert, "/nowhere/key.pem", "private key /nowhere/key.pem: No such file"},
        {key, key, "expected certificates in PEM"},
        {cert, other, "does not belong to the certificate"},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        CLEANUP(buf_fini) struct buf err = {0};
        char data[100];
        (void)snprintf(data, sizeof data, "%s/unused", node.home);
        int status =
            serve_briefly(FLAGS("--data", data, "--listen", "127.0.0.1:0", "--log", "error",
                                "--tls-cert", cases[i].cert, "--tls-key", cases[i].key),
                          &err);
        CHECK(status == 1, "case %zu: %d: %s", i, status, err.ptr);
        CHECK(strstr(err.ptr, cases[i].expected), "case %zu: %s", i, err.ptr);
    }
}

static void with_tls_it_listens_beyond_loopback(void **state)
{
    struct node far;
    (void)state;

    node_init(&far);
    node_start(&far, FLAGS("--tls-cert", cert, "--tls-key", key, "--listen", "0.0.0.0:0"));
    CHECK(run("curl -sS -o /dev/null --fail --cacert %s https://127.0.0.1:%d/healthz", cert,
              far.port)
              == 0,
          "curl");
    CHECK(run("test \"$(curl -sS -o /dev/null -w '%%{http_code}' --cacert %s -H 'Host: elsewhere' "
              "https://127.0.0.1:%d/healthz)\" = 403",
              cert, far.port)
              == 0,
          "a name that it was not given");
    node_stop(&far);
    node_fini(&far);
}

/* Nobody without this certificate can have set it. */
static void the_cookie_of_a_session_is_for_tls_alone(void **state)
{
    static const char cookie[] =
        "grep -qE '^Set-Cookie: __Host-intact_session=[A-Za-z0-9_-]{43}; Path=/; HttpOnly; "
        "SameSite=Strict; Max-Age=43200; Secure' %s/head";
    (void)state;

    CHECK(run("curl -sS --fail --cacert %s -D %s/head -o /dev/null -c %s/jar -X POST -H "
              "\"Authorization: Bearer $(cat %s/admin-token)\" https://localhost:%d/v1/session",
              cert, node.home, node.home, node.data, node.port)
              == 0,
          "signed in");
    CHECK(run(cookie, node.home) == 0, "the cookie");
    CHECK(run("curl -sS --fail --cacert %s -o /dev/null -b %s/jar https://localhost:%d/v1/tokens",
              cert, node.home, node.port)
              == 0,
          "it is taken");
    CHECK(run("test \"$(curl -sS --cacert %s -o /dev/null -w '%%{http_code}' -H \"Cookie: $(sed -n "
              "'s/.*__Host-\\(intact_session\\)\\t/\\1=/p' %s/jar)\" "
              "https://localhost:%d/v1/tokens)\" = 401",
              cert, node.home, node.port)
              == 0,
          "one that may come from elsewhere is not");
}

static int stop_all(void **state)
{
    SSL_CTX_free(context);
    return node_end(state);
}

int main(int argc, char **argv)
{
    kit_program(argc, argv);
    program = argv[1];
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(curl_is_served),
        cmocka_unit_test(a_certificate_that_is_not_trusted_is_told),
        cmocka_unit_test(results_come_from_elsewhere),
        cmocka_unit_test(openssl_is_served),
        cmocka_unit_test(every_third_case_ends_as_in_clear),
        cmocka_unit_test(half_handshakes_are_cut_off_and_disturb_nobody),
        cmocka_unit_test(certificates_change_under_load),
        cmocka_unit_test(a_broken_certificate_is_told_of_and_not_used),
        cmocka_unit_test(what_it_cannot_use_is_refused_at_the_start),
        cmocka_unit_test(with_tls_it_listens_beyond_loopback),
        cmocka_unit_test(the_cookie_of_a_session_is_for_tls_alone),
    };
    return cmocka_run_group_tests(tests, start, stop_all);
}
