/* Tests of webhooks without a network: URLs and patterns (url.c), signatures (sign.c), the
 * configuration (webhook_config.c) and its secrets. tests/e2e has deliveries over a network. */

#include "base/test.h"

#include <stdlib.h>

#include "webhook/webhook_config.h"
#include "webhook/webhook_secrets.h"

/* ---- URLs ---- */

static void urls_that_are_called(void **state)
{
    static const struct {
        const char *pattern, *url;
        bool is_below;
    } cases[] = {
        {"https://shop.example.org/hooks/", "https://shop.example.org/hooks/17?x=1", true},
        {"https://shop.example.org/hooks/", "https://SHOP.example.org:443/hooks/17", true},
        {"HTTPS://Shop.example.org:443/", "https://shop.example.org/a%20b", true},
        {"https://shop.example.org", "https://shop.example.org", true},
        {"https://shop.example.org/hook", "https://shop.example.org/hook?x", true},
        {"https://shop.example.org/hook", "https://shop.example.org/hook/17", true},
        {"https://shop.example.org/hook", "https://shop.example.org/hooks", false},
        {"https://shop.example.org/hooks/", "https://shop.example.org/hooks", false},
        {"https://shop.example.org/hooks/", "http://shop.example.org/hooks/", false},
        {"https://shop.example.org/hooks/", "https://shop.example.org:8443/hooks/", false},
        {"https://shop.example.org:8443/", "https://shop.example.org:8443/x", true},
        {"https://shop.example.org:8443/", "https://shop.example.org/x", false},
        {"https://shop.example.org/", "https://shop.example.org.evil.org/", false},
        {"https://shop.example.org/", "https://evil.org/shop.example.org/", false},
        {"https://shop.example.org/", "https://example.org/", false},
        {"https://*.example.org/", "https://shop.example.org/x", true},
        {"https://*.example.org/", "https://a.b.example.org/x", false},
        {"https://*.example.org/", "https://example.org/x", false},
        {"https://a.*.example.org/", "https://a.b.example.org/x", true},
        {"https://*.*.example.org/", "https://a.b.example.org/x", true},
        {"http://[::1]:8080/", "http://[::1]:8080/x", true},
        {"http://[::1]:8080/", "http://[::2]:8080/x", false},
        {"http://127.0.0.1:8080/", "http://127.0.0.1:8080/x", true},
    };
    (void)state;

    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct url pattern;
        struct url u;
        const char *fault = url_parse(slice_of(cases[i].pattern), true, &pattern);
        CHECK(!fault, "%s: %s", cases[i].pattern, fault);
        fault = url_parse(slice_of(cases[i].url), false, &u);
        CHECK(!fault, "%s: %s", cases[i].url, fault);
        CHECK(url_is_below(&u, &pattern) == cases[i].is_below, "%s below %s", cases[i].url,
              cases[i].pattern);
    }
}

static void urls_that_could_be_two(void **state)
{
    static const char *const bad[] = {"",
                                      "shop.example.org",
                                      "ftp://shop.example.org/",
                                      "https://",
                                      "https:///x",
                                      "https:/shop.example.org/",
                                      "https://user@shop.example.org/",
                                      "https://shop.example.org@evil.org/",
                                      "https://shop.example.org:x@evil.org/",
                                      "https://shop.example.org#@evil.org/",
                                      "https://shop.example.org/#x",
                                      "https://evil.org\\@shop.example.org/",
                                      "https://evil.org\\.shop.example.org/",
                                      "https://shop.example.org/ x",
                                      "https://shop.example.org/\tx",
                                      "https://shop.example.org/\r\nHost: evil",
                                      "https://sh\xc3\xb6p.example.org/",
                                      "https://shop.example.org/\xc3\xb6",
                                      "https://shop.example.org./",
                                      "https://shop..example.org/",
                                      "https://.example.org/",
                                      "https://*.example.org/",
                                      "https://shop.example.org:/",
                                      "https://shop.example.org:0/",
                                      "https://shop.example.org:65536/",
                                      "https://shop.example.org:443x/",
                                      "https://shop.example.org:+443/",
                                      "https://shop.example.org?x",
                                      "https://shop.example.org/hooks/../admin",
                                      "https://shop.example.org/hooks/..",
                                      "https://shop.example.org/hooks/./x",
                                      "https://shop.example.org/hooks/%2e%2e/admin",
                                      "https://shop.example.org/hooks/.%2E/admin",
                                      "https://shop.example.org/hooks/..%2fadmin",
                                      "https://shop.example.org/hooks/..%5cadmin",
                                      "https://shop.example.org/hooks/..;/admin",
                                      "https://shop.example.org/hooks/..%3bx=1%2fadmin",
                                      "https://shop.example.org/hooks/.;x",
                                      "https://shop.example.org/hooks/%",
                                      "https://shop.example.org/hooks/%zz",
                                      "https://[::1/",
                                      "https://[::1]x/",
                                      "https://[::1%25eth0]/",
                                      "https://[]/"};
    static const char *const bad_patterns[] = {"https://*/", "https://example.*/",
                                               "https://a*.example.org/", "https://x.org/?a",
                                               "https://*.example.org/#"};
    struct url u;
    (void)state;

    for (size_t i = 0; i < COUNT_OF(bad); i++)
        CHECK(url_parse(slice_of(bad[i]), false, &u), "%s is taken", bad[i]);
    for (size_t i = 0; i < COUNT_OF(bad_patterns); i++)
        CHECK(url_parse(slice_of(bad_patterns[i]), true, &u), "%s is taken", bad_patterns[i]);
    char *longer = malloc(URL_MAX + 2);
    ASSERT(longer);
    memset(longer, 'a', URL_MAX + 1);
    memcpy(longer, "https://x.org/", 14);
    CHECK(url_parse((struct slice){longer, URL_MAX + 1}, false, &u), "too long");
    CHECK(!url_parse((struct slice){longer, URL_MAX}, false, &u), "as long as it may be");
    free(longer);
}

/* ---- signatures ---- */

static struct sign_keys *keys_of(const char *text, struct buf *faults)
{
    static const struct secret_place place = {.env = "WEBHOOK_TEST"};

    setenv("WEBHOOK_TEST", text, 1);
    struct sign_keys *k = sign_keys_load(&place, 1, faults);
    unsetenv("WEBHOOK_TEST");
    return k;
}

static void signatures_as_specified(void **state)
{
    /* Test data of the specification's libraries. */
    static const char signed_text[] =
        "msg_p5jXN8AQM9LWM0D4loKWxJek.1614265330.{\"test\": 2432232314}";
    static const char symmetric[] = "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=";
    CLEANUP(buf_fini) struct buf faults = {0};
    CLEANUP(buf_fini) struct buf b = {0};
    struct sign_keys *k = keys_of("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw\n", &faults);
    (void)state;

    CHECK(k, "%s", faults.ptr);
    for (int i = 0; i < 3; i++) { /* keys are reused */
        buf_clear(&b);
        CHECK(sign_text(k, slice_of(signed_text), &b) && slice_is(buf_view(&b), symmetric), "%s",
              b.ptr);
    }
    sign_keys_free(k);

    k = keys_of("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw "
                "whsec_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=",
                &faults);
    CHECK(k, "%s", faults.ptr);
    buf_clear(&b);
    CHECK(sign_text(k, slice_of(signed_text), &b), "two");
    CHECK(strncmp(b.ptr, symmetric, strlen(symmetric)) == 0, "the first one first: %s", b.ptr);
    CHECK(strstr(b.ptr, "= v1,"), "and the other one: %s", b.ptr);
    sign_keys_free(k);

    k = keys_of(
        "whsk_6Xb/dCcHpPea21PS1N9VY/NZW723CEc77N4rJCubMbfVKIDij2HKpMKkioLlX0dRqSKJp4AJ6p9lMic"
        "MFs6Kvg==",
        &faults);
    CHECK(k, "%s", faults.ptr);
    buf_clear(&b);
    sign_public(k, &b);
    CHECK(slice_is(buf_view(&b), "whpk_1SiA4o9hyqTCpIqC5V9HUakiiaeACeqfZTInDBbOir4=\n"), "%s",
          b.ptr);
    buf_clear(&b);
    CHECK(sign_text(k, slice_of(signed_text), &b) && strncmp(b.ptr, "v1a,", 4) == 0 && b.len == 92,
          "%s", b.ptr);
    sign_keys_free(k);
}

static void secrets_that_are_none(void **state)
{
    static const struct {
        const char *text, *says;
    } cases[] = {
        {"", "it is empty"},
        {" \n", "it is empty"},
        {"MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "whsec_"},
        {"whsec_", "begins with whsec_"},
        {"whsec_QUJD", "24 to 64 bytes"},
        {"whsec_!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!", "24 to 64 bytes"},
        {"whsec_"
         "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"
         "AAAAAAAAAAAAAAA",
         "24 to 64 bytes"},
        {"whsk_AAAA", "32 bytes"},
        {"whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw x", "whsec_"},
    };
    static const struct secret_place nowhere = {.env = "WEBHOOK_TEST_NOT_SET"};
    (void)state;

    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        CLEANUP(buf_fini) struct buf faults = {0};
        CHECK(!keys_of(cases[i].text, &faults), "%s", cases[i].text);
        CHECK(strstr(faults.ptr, cases[i].says) && strstr(faults.ptr, "WEBHOOK_TEST"), "%s",
              faults.ptr);
        CHECK(!strstr(faults.ptr, "MfKQ"), "a secret is told: %s", faults.ptr);
    }
    CLEANUP(buf_fini) struct buf faults = {0};
    CHECK(!sign_keys_load(&nowhere, 1, &faults) && strstr(faults.ptr, "it is not set"), "%s",
          faults.ptr);
}

/* ---- configuration ---- */

struct settings {
    struct arena arena;
    struct webhook_config config;
    struct mistakes mistakes;
};

static void read_all(struct settings *s, const char *text)
{
    static const struct field fields[] = {
        FIELD("webhooks", read_webhooks, offsetof(struct settings, config))};
    struct reader r = {.arena = &s->arena, .mistakes = &s->mistakes};
    struct path root = {0};
    struct json *j = NULL;

    enum err err = read_source(&r, arena_copy(&s->arena, slice_of(text)), SOURCE_YAML, &j);
    CHECK(err == ERR_OK, "%s", text);
    read_object(&r, j, &root, fields, COUNT_OF(fields), s);
}

static void settings_are_read(void **state)
{
    struct settings *s = calloc(1, sizeof *s);
    struct error e = {0};
    (void)state;

    ASSERT(s);
    read_all(s, "webhooks:\n"
                "  - url: https://shop.example.org/hooks/\n"
                "    secret: {env: SHOP}\n"
                "  - url: https://*.example.org:8443/\n"
                "    secret: [{file: /run/new}, {env: OLD}]\n"
                "    tls: {ca: ca.pem, cert: c.pem, key: k.pem}\n"
                "    http2: false\n"
                "    private: [10.0.0.0/8]\n"
                "    batch: 50\n"
                "    connections: 3\n"
                "    connect_timeout: 2s\n"
                "    timeout: 20s\n"
                "    headers: {x-from: intact, authorization: {env: TOKEN}}\n");
    CHECK(s->mistakes.count == 0, "%s: %s", s->mistakes.list[0].path, s->mistakes.list[0].expected);
    const struct webhook_target *t = s->config.targets;
    CHECK(s->config.count == 2 && t->batch == 1 && t->net.http2 && t->timeout_ms == 10000,
          "what holds without a word");
    CHECK(t->secret_count == 1 && strcmp(t->secrets[0].env, "SHOP") == 0, "one secret");
    t = t->next;
    CHECK(t->secret_count == 2 && strcmp(t->secrets[0].file, "/run/new") == 0, "two secrets");
    CHECK(strcmp(t->net.ca, "ca.pem") == 0 && strcmp(t->net.key, "k.pem") == 0, "tls");
    CHECK(!t->net.http2 && t->net.networks.count == 1 && t->batch == 50 && t->connections == 3,
          "numbers");
    CHECK(t->net.connect_timeout_ms == 2000 && t->timeout_ms == 20000, "times");
    CHECK(slice_is(t->headers->value, "intact") && !t->headers->next->value.ptr, "headers");

    CHECK(webhook_target_find(&s->config, SLICE("https://shop.example.org/hooks/1"), &e)
              == s->config.targets,
          "%s", e.text);
    CHECK(webhook_target_find(&s->config, SLICE("https://a.example.org:8443/"), &e) == t, "%s",
          e.text);
    CHECK(!webhook_target_find(&s->config, SLICE("https://evil.org/"), &e)
              && strstr(e.text, "https://shop.example.org/hooks/, https://*.example.org:8443/"),
          "%s", e.text);
    CHECK(!webhook_target_find(&s->config, SLICE("https://u@shop.example.org/hooks/"), &e)
              && strstr(e.text, "without a user"),
          "%s", e.text);
    arena_fini(&s->arena);
    free(s);
}

static void mistakes_are_told(void **state)
{
    static const struct {
        const char *text, *path, *expected;
    } cases[] = {
        {"webhooks: {}", "webhooks", "an array"},
        {"webhooks: [{secret: {env: X}}]", "webhooks[0].url", "a key"},
        {"webhooks: [{url: 'https://x.org/'}]", "webhooks[0].secret", "a key"},
        {"webhooks: [{url: 7, secret: {env: X}}]", "webhooks[0].url", "a URL such as"},
        {"webhooks: [{url: 'https://u@x.org/', secret: {env: X}}]", "webhooks[0].url", "user"},
        {"webhooks: [{url: 'https://*/', secret: {env: X}}]", "webhooks[0].url", "a host"},
        {"webhooks: [{url: 'http://127.0.0.1/', secret: {env: X}}]", "webhooks[0].url", "private"},
        {"webhooks: [{url: 'http://169.254.169.254/', secret: {env: X}}]", "webhooks[0].url",
         "private"},
        {"webhooks: [{url: 'https://x.org/', secret: whsec_x}]", "webhooks[0].secret",
         "name its place"},
        {"webhooks: [{url: 'https://x.org/', secret: []}]", "webhooks[0].secret", "1 to 4"},
        {"webhooks: [{url: 'https://x.org/', secret: {env: X, file: y}}]", "webhooks[0].secret",
         "either"},
        {"webhooks: [{url: 'https://x.org/', secret: {env: X}, batch: 0}]", "webhooks[0].batch",
         "1 to 100"},
        {"webhooks: [{url: 'https://x.org/', secret: {env: X}, tls: {cert: x}}]", "webhooks[0].tls",
         "key"},
        {"webhooks: [{url: 'https://x.org/', secret: {env: X}, private: [x]}]",
         "webhooks[0].private[0]", "a network"},
        {"webhooks: [{url: 'https://x.org/', secret: {env: X}, headers: {webhook-id: x}}]",
         "webhooks[0].headers.webhook-id", "set already"},
        {"webhooks: [{url: 'https://x.org/', secret: {env: X}, headers: {a: \"b\\nc\"}}]",
         "webhooks[0].headers.a", "one line"},
        {"webhooks: [{url: 'https://x.org/', secret: {env: X}, retries: 3}]", "webhooks[0].retries",
         ""},
    };
    (void)state;

    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct settings *s = calloc(1, sizeof *s);
        ASSERT(s);
        read_all(s, cases[i].text);
        CHECK(s->mistakes.count == 1, "%s: %zu mistakes", cases[i].text, s->mistakes.count);
        CHECK(strcmp(s->mistakes.list[0].path, cases[i].path) == 0
                  && strstr(s->mistakes.list[0].expected, cases[i].expected),
              "%s: %s: %s", cases[i].text, s->mistakes.list[0].path, s->mistakes.list[0].expected);
        arena_fini(&s->arena);
        free(s);
    }
}

/* Certificates are read for each connection, long after the start. */
static void files_that_are_not_there_are_told(void **state)
{
    struct settings *s = calloc(1, sizeof *s);
    CLEANUP(buf_fini) struct buf faults = {0};
    (void)state;

    ASSERT(s && setenv("SHOP", "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", 1) == 0);
    read_all(s, "webhooks:\n"
                "  - url: https://shop.example.org/\n"
                "    secret: {env: SHOP}\n"
                "    tls: {ca: /proc/none/ca.pem, cert: /proc/none/c.pem, key: /proc/self/exe}\n");
    CHECK(s->mistakes.count == 0, "%s", s->mistakes.list[0].expected);
    CHECK(!webhook_secrets_load(&s->config, &faults), "they are not there");
    CHECK(strstr(faults.ptr, "tls: ca: file /proc/none/ca.pem: No such file")
              && strstr(faults.ptr, "tls: cert: file /proc/none/c.pem")
              && !strstr(faults.ptr, "exe"),
          "%s", faults.ptr);
    arena_fini(&s->arena);
    free(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(urls_that_are_called),
        cmocka_unit_test(urls_that_could_be_two),
        cmocka_unit_test(signatures_as_specified),
        cmocka_unit_test(secrets_that_are_none),
        cmocka_unit_test(settings_are_read),
        cmocka_unit_test(mistakes_are_told),
        cmocka_unit_test(files_that_are_not_there_are_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
