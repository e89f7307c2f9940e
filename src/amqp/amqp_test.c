/* Tests of the AMQP configuration (amqp_config.c), of addresses and queues, and of messages as
 * bytes (amqp_message.c), without a broker. amqp_message_fuzz.c decodes arbitrary bytes. */

#include "amqp/amqp_config.h"
#include "amqp/amqp_message.h"
#include "base/test.h"

#include <proton/codec.h>
#include <proton/message.h>
#include <stdlib.h>

struct parsed {
    struct arena arena;
    struct mistakes *mistakes;
    struct amqp_config *config;
};

static void parsed_fini(struct parsed *p)
{
    arena_fini(&p->arena);
    free(p->mistakes);
}

static void parse(struct parsed *p, const char *text)
{
    p->mistakes = calloc(1, sizeof *p->mistakes);
    ASSERT(p->mistakes);
    struct reader r = {.arena = &p->arena, .mistakes = p->mistakes};
    struct json *j = NULL;
    struct path root = {0};

    CHECK(read_source(&r, slice_of(text), SOURCE_YAML, &j) == ERR_OK, "%s", text);
    amqp_config_read(&r, j, &root, &p->config);
}

/* The error, and its position. */
static const struct {
    const char *text, *path, *expected;
} mistakes[] = {
    {"{}", "", "brokers"},
    {"brokers: []", "", "at least one broker"},
    {"brokers: [{name: a}]", "brokers[0]", "url"},
    {"brokers: [{name: a, url: 'http://x'}]", "brokers[0].url", "amqps://broker.example.org"},
    {"brokers: [{name: a, url: 'amqp://x:0'}]", "brokers[0].url", "amqps://"},
    {"brokers: [{name: a, url: 'amqp://x:99999'}]", "brokers[0].url", "amqps://"},
    {"brokers: [{name: a, url: 'amqp://x/path'}]", "brokers[0].url", "without a path"},
    {"brokers: [{name: a, url: 'amqp://me:pw@x'}]", "brokers[0].url", "without a user"},
    {"brokers: [{name: a, url: 'amqp://'}]", "brokers[0].url", "amqps://"},
    {"brokers: [{name: a, url: 'amqp://['}]", "brokers[0].url", "amqps://"},
    {"brokers: [{name: a, url: 'amqps://10.0.0.1'}]", "brokers[0]", "a name in an amqps://"},
    {"brokers: [{name: a, url: 'amqps://x', user: me}]", "brokers[0]", "user and password"},
    {"brokers: [{name: a, url: 'amqps://x', user: me, password: pw}]", "brokers[0].password",
     "{file: PATH}"},
    {"brokers: [{name: a, url: 'amqps://x', user: me, password: {}}]", "brokers[0].password",
     "either file or env"},
    {"brokers: [{name: a, url: 'amqp://x', user: me, password: {env: P}}]", "brokers[0]",
     "insecure: true"},
    {"brokers: [{name: a, url: 'amqp://127.evil.example', user: me, password: {env: P}}]",
     "brokers[0]", "insecure: true"},
    {"brokers: [{name: a, url: 'amqps://x', cert: c.pem}]", "brokers[0]", "cert and key"},
    {"brokers: [{name: a, url: 'amqp://a b'}]", "brokers[0].url", "amqps://"},
    {"brokers: [{name: a, url: 'amqps://x', sasl: plain}]", "brokers[0]", "user and password"},
    {"brokers: [{name: a, url: 'amqps://x', sasl: external}]", "brokers[0]", "cert and key"},
    {"brokers: [{name: a, url: 'amqp://x', cert: c, key: k, sasl: external}]", "brokers[0]",
     "amqps://"},
    {"brokers: [{name: a, url: 'amqp://x'}]\nagents: [{agent: 'p q', queue: q}]", "agents[0].agent",
     ""},
    {"brokers: [{name: a, url: 'amqp://x'}]\nagents: [{agent: p, queue: q}, {agent: r, queue: q}]",
     "agents", "each has its own"},
    {"brokers: [{name: a, url: 'amqp://x'}]\nsubmissions: [{queue: q}]\n"
     "agents: [{agent: p, queue: q}]",
     "agents", "each has its own"},
    {"brokers: [{name: a, url: 'amqp://x'}]\nsubmissions: [{queue: q}, {queue: q}]", "submissions",
     "each has its own"},
    {"brokers: [{name: a, url: 'amqps://x', sasl: gssapi}]", "brokers[0].sasl", "plain, anonymous"},
    {"brokers: [{name: a, url: 'amqps://x', addresses: queue}]", "brokers[0].addresses", "one {}"},
    {"brokers: [{name: a, url: 'amqps://x', addresses: '{}{}'}]", "brokers[0].addresses", "one {}"},
    {"brokers: [{name: a, url: 'amqp://x'}, {name: a, url: 'amqp://y'}]", "brokers[1]",
     "a name that no other"},
    {"brokers: [{name: a, url: 'amqp://x'}]\nsubmissions: [{queue: 'a b'}]", "submissions[0].queue",
     "without spaces"},
    {"brokers: [{name: a, url: 'amqp://x'}]\nsubmissions: [{queue: q, refused: drop}]",
     "submissions[0].refused", "record"},
    {"brokers: [{name: a, url: 'amqp://x'}]\nsubmissions: [{queue: q, broker: c}]",
     "submissions[0].broker", "one in brokers"},
    {"brokers: [{name: a, url: 'amqp://x'}, {name: b, url: 'amqp://y'}]\nsubmissions: [{queue: q}]",
     "submissions[0].broker", "there are several"},
    {"brokers: [{name: a, url: 'amqp://x'}]\nagents: [{agent: 'a b', queue: q}]", "agents[0].agent",
     "a name"},
    {"brokers: [{name: a, url: 'amqp://x'}]\nagents: [{agent: a, queue: q}, {agent: b, queue: q, "
     "broker: c}]",
     "agents[1].broker", "one in brokers"},
    {"brokers: [{name: a, url: 'amqp://x'}]\nagents: [{agent: p, queue: q, places: 1001}]",
     "agents[0].places", "1000"},
    {"brokers: [{name: a, url: 'amqp://x'}]\nagents: [{agent: p, queue: q}, {agent: p, queue: r}]",
     "agents[1]", "each agent once"},
    {"brokers: [{name: a, url: 'amqp://x'}]\nmessages: {}", "messages", "allow"},
    {"brokers: [{name: a, url: 'amqp://x'}]\nqueues: []", "queues", ""},
};

static void each_mistake_is_told(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(mistakes); i++) {
        CLEANUP(parsed_fini) struct parsed p = {0};
        parse(&p, mistakes[i].text);
        CHECK(p.mistakes->count >= 1, "%s: no mistake", mistakes[i].text);
        const struct mistake *m = &p.mistakes->list[0];
        CHECK(strncmp(m->path, mistakes[i].path, strlen(mistakes[i].path)) == 0, "%s: at %s",
              mistakes[i].text, m->path);
        CHECK(strstr(m->expected, mistakes[i].expected), "%s: expected %s", mistakes[i].text,
              m->expected);
    }
}

static void urls_have_hosts_and_ports(void **state)
{
    CLEANUP(parsed_fini) struct parsed p = {0};
    (void)state;

    parse(&p, "brokers:\n"
              "  - {name: a, url: 'amqp://x'}\n"
              "  - {name: b, url: 'amqps://broker.example.org'}\n"
              "  - {name: c, url: 'amqp://[::1]:99', user: u, password: {env: P}}\n");
    CHECK(p.mistakes->count == 0, "%s", p.mistakes->list[0].expected);
    const struct broker_config *b = p.config->brokers;
    CHECK(slice_is(b->host, "x") && b->port == 5672 && !b->is_tls, "port %u", b->port);
    b = b->next;
    CHECK(slice_is(b->host, "broker.example.org") && b->port == 5671 && b->is_tls, "port %u",
          b->port);
    b = b->next;
    CHECK(slice_is(b->host, "::1") && b->port == 99, "%.*s", SLICE_ARG(b->host));
}

static void passwords_are_loaded_where_they_are_kept(void **state)
{
    CLEANUP(parsed_fini) struct parsed p = {0};
    struct error e = {0};
    char *password = NULL;
    (void)state;

    parse(&p, "brokers:\n"
              "  - {name: none, url: 'amqps://x'}\n"
              "  - {name: unset, url: 'amqps://x', user: u, password: {env: AMQP_TEST_UNSET}}\n"
              "  - {name: set, url: 'amqps://x', user: u, password: {env: AMQP_TEST_SET}}\n"
              "  - {name: empty, url: 'amqps://x', user: u, password: {file: /dev/null}}\n");
    CHECK(p.mistakes->count == 0, "%s", p.mistakes->list[0].expected);
    const struct broker_config *b = p.config->brokers;
    CHECK(amqp_password(b, &password, &e) == ERR_OK && !password, "%s", e.text);
    b = b->next;
    (void)unsetenv("AMQP_TEST_UNSET");
    CHECK(amqp_password(b, &password, &e) == ERR_INVALID && !password, "it is not set");
    CHECK(strcmp(e.text,
                 "the password of broker unset: environment variable AMQP_TEST_UNSET: it is "
                 "not set")
              == 0,
          "%s", e.text);
    b = b->next;
    (void)setenv("AMQP_TEST_SET", "pass word\r\n", 1);
    CHECK(amqp_password(b, &password, &e) == ERR_OK && password, "%s", e.text);
    CHECK(strcmp(password, "pass word") == 0, "\"%s\"", password);
    secret_wipe(password, strlen(password));
    (void)setenv("AMQP_TEST_SET", "\n", 1);
    CHECK(amqp_password(b, &password, &e) == ERR_INVALID && !password, "it is empty");
    CHECK(strstr(e.text, "it is empty"), "%s", e.text);
    b = b->next;
    CHECK(amqp_password(b, &password, &e) == ERR_INVALID && !password, "it is a device");
    CHECK(strstr(e.text, "file /dev/null: it is not a regular file"), "%s", e.text);
}

static void messages_go_where_they_may(void **state)
{
    CLEANUP(parsed_fini) struct parsed p = {0};
    (void)state;

    parse(&p, "brokers: [{name: a, url: 'amqp://x'}]\nmessages: {allow: ['reply.*', one]}");
    CHECK(p.mistakes->count == 0, "%s", p.mistakes->list[0].expected);
    CHECK(amqp_config_allows(p.config, SLICE("reply.shop")), "by its pattern");
    CHECK(amqp_config_allows(p.config, SLICE("one")), "by its name");
    CHECK(!amqp_config_allows(p.config, SLICE("two")), "not named");
    CHECK(!amqp_config_allows(p.config, SLICE("a-reply.shop")), "it has to begin so");
    CHECK(slice_is(amqp_target_queue(SLICE("amqp:one")), "one"), "a target");
    CHECK(!amqp_target_queue(SLICE("amqp:")).ptr, "no queue");
    CHECK(!amqp_target_queue(SLICE("https://x")).ptr, "a URL");
    CHECK(!amqp_target_queue(SLICE("amqp:a b")).ptr, "a space");
}

static void addresses_and_queues(void **state)
{
    static const struct {
        const char *pattern, *address, *queue;
    } cases[] = {
        {"{}", "orders", "orders"},
        {"/queue/{}", "/queue/orders", "orders"},
        {"/queue/{}", "orders", "orders"},
        {"/queue/{}", "/queue/", "/queue/"},
        {"/q/{}/in", "/q/orders/in", "orders"},
        {"/q/{}/in", "/q/orders", "/q/orders"},
    };
    (void)state;

    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        CLEANUP(buf_fini) struct buf b = {0};
        const struct broker_config c = {.addresses = cases[i].pattern};
        struct slice queue = amqp_queue_of(&c, slice_of(cases[i].address));
        CHECK(slice_is(queue, cases[i].queue), "%s: %.*s", cases[i].address, SLICE_ARG(queue));
        amqp_address(&c, SLICE("x"), &b);
        CHECK(slice_is(amqp_queue_of(&c, buf_view(&b)), "x"), "%s", b.ptr);
    }
}

static void a_message_comes_back_as_it_was(void **state)
{
    CLEANUP(arena_fini) struct arena a = {0};
    struct amqp_property second = {NULL, SLICE("b"), SLICE("2")};
    struct amqp_property first = {&second, SLICE("a"), SLICE("1")};
    const struct amqp_message m = {.id = SLICE("id"),
                                   .correlation_id = SLICE("c"),
                                   .reply_to = SLICE("r"),
                                   .subject = SLICE("s"),
                                   .group_id = SLICE("g"),
                                   .content_type = SLICE("text/plain"),
                                   .body = SLICE("{\"a\": 1}"),
                                   .properties = &first};
    struct amqp_message back;
    struct error e = {0};
    size_t refused = 0;
    size_t size = 0;
    char *bytes = amqp_message_encode(&m, &size);
    (void)state;

    CHECK(amqp_message_decode(&a, (struct slice){bytes, size}, &back, &e) == ERR_OK, "%s", e.text);
    CHECK(slice_eq(back.id, m.id) && slice_eq(back.correlation_id, m.correlation_id), "ids");
    CHECK(slice_eq(back.reply_to, m.reply_to) && slice_eq(back.subject, m.subject), "texts");
    CHECK(slice_eq(back.group_id, m.group_id), "group");
    CHECK(slice_eq(back.body, m.body), "%.*s", SLICE_ARG(back.body));
    CHECK(slice_is(amqp_message_property(&back, "a"), "1"), "a property");
    CHECK(slice_is(amqp_message_property(&back, "b"), "2"), "another one");
    CHECK(!amqp_message_property(&back, "c").ptr, "one that is not there");
    /* Each truncated message is refused, without worse effects. */
    for (size_t len = 0; len < size; len++) {
        struct amqp_message part;
        char *copy = malloc(len + 1);
        ASSERT(copy);
        memcpy(copy, bytes, len);
        refused += amqp_message_decode(&a, (struct slice){copy, len}, &part, &e) != ERR_OK;
        free(copy);
    }
    CHECK(refused > 0, "half a message was taken for one");
    free(bytes);
}

static void put_body(pn_data_t *d)
{
    (void)pn_data_put_map(d);
    (void)pn_data_enter(d);
    (void)pn_data_put_string(d, pn_bytes(4, "list"));
    (void)pn_data_put_list(d);
    (void)pn_data_enter(d);
    (void)pn_data_put_ulong(d, 7);
    (void)pn_data_put_int(d, -7);
    (void)pn_data_put_bool(d, true);
    (void)pn_data_put_null(d);
    (void)pn_data_put_double(d, 0.5);
    (void)pn_data_put_string(d, pn_bytes(3, "\"x\""));
    (void)pn_data_exit(d);
    (void)pn_data_exit(d);
}

static void values_are_read_as_json(void **state)
{
    CLEANUP(arena_fini) struct arena a = {0};
    pn_message_t *p = pn_message();
    pn_rwbytes_t bytes = {0};
    struct amqp_message m;
    struct error e = {0};
    (void)state;

    put_body(pn_message_body(p));
    (void)pn_message_set_id(p, (pn_msgid_t){.type = PN_ULONG, .u.as_ulong = 17});
    ssize_t size = pn_message_encode2(p, &bytes);
    CHECK(size > 0, "encoded");
    CHECK(amqp_message_decode(&a, (struct slice){bytes.start, (size_t)size}, &m, &e) == ERR_OK,
          "%s", e.text);
    CHECK(slice_is(m.body, "{\"list\":[7,-7,true,null,0.5,\"\\\"x\\\"\"]}"), "%.*s",
          SLICE_ARG(m.body));
    CHECK(slice_is(m.id, "17"), "%.*s", SLICE_ARG(m.id));
    free(bytes.start);
    pn_message_free(p);
}

static void a_body_in_several_sections_is_one(void **state)
{
    /* With short and long lengths, both forms of a section's number, and an empty section. */
    static const char text[] = "\0\x53\x75\xa0\x02{\""
                               "\0\x80\0\0\0\0\0\0\0\x75\xb0\0\0\0\x02"
                               "a\""
                               "\0\x53\x75\xa0\x00"
                               "\0\x53\x75\xa0\x03:1}";
    CLEANUP(arena_fini) struct arena a = {0};
    struct amqp_message m;
    struct error e = {0};
    (void)state;

    CHECK(amqp_message_decode(&a, (struct slice){text, sizeof text - 1}, &m, &e) == ERR_OK, "%s",
          e.text);
    CHECK(slice_is(m.body, "{\"a\":1}"), "%.*s", SLICE_ARG(m.body));
}

/* A list of `count` small numbers, encoded. */
static struct slice list_of(struct arena *a, uint32_t count)
{
    size_t size = 12 + (size_t)count * 2;
    unsigned char *p = arena_alloc(a, size);
    const uint32_t heads[] = {count * 2 + 4, count};

    memcpy(p, "\0\x53\x77\xd0", 4);
    for (size_t i = 0; i < 8; i++)
        p[4 + i] = (unsigned char)(heads[i / 4] >> (24 - i % 4 * 8));
    for (size_t i = 12; i < size; i += 2) {
        p[i] = 0x54;
        p[i + 1] = 7;
    }
    return (struct slice){(const char *)p, size};
}

static void a_value_is_read_whole_or_not_at_all(void **state)
{
    (void)state;
    for (uint32_t count = 60000; count <= 80000; count += 10000) {
        CLEANUP(arena_fini) struct arena a = {0};
        struct amqp_message m;
        struct error e = {0};
        enum err err = amqp_message_decode(&a, list_of(&a, count), &m, &e);
        CHECK((err == ERR_OK) == (count == 60000), "%u: %s", count, e.text);
        if (err == ERR_OK)
            CHECK(m.body.len == count * 2 + 1, "%zu bytes", m.body.len);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_mistake_is_told),
        cmocka_unit_test(urls_have_hosts_and_ports),
        cmocka_unit_test(passwords_are_loaded_where_they_are_kept),
        cmocka_unit_test(messages_go_where_they_may),
        cmocka_unit_test(addresses_and_queues),
        cmocka_unit_test(a_message_comes_back_as_it_was),
        cmocka_unit_test(values_are_read_as_json),
        cmocka_unit_test(a_body_in_several_sections_is_one),
        cmocka_unit_test(a_value_is_read_whole_or_not_at_all),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
