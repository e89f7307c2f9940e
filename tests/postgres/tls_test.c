/* Tests of TLS between the store and PostgreSQL, with the test's own root certificate and with
 * a wrong one: the server must prove who it is, and everything that a store does works through
 * TLS. */

#include "base/test.h"
#include "base/test_port.h"

#include <pwd.h>
#include <stdlib.h>
#include <unistd.h>

#include "cluster.h"
#include "store/postgres/postgres.h"

static struct arena arena;
static struct error e;
static int port;

static void shell(const char *text)
{
    char command[2000];

    (void)snprintf(command, sizeof command, "cd %s && (%s) >>tls.log 2>&1", cluster_dir(), text);
    CHECK(system(command) == 0, "%s; see %s/tls.log", text, cluster_dir());
}

static void make_certificates(void)
{
    const struct passwd *who = getpwnam("postgres");
    char path[128];

    shell("for ca in root other; do openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj "
          "/CN=$ca -keyout $ca.key -out $ca.crt; done");
    shell("openssl req -newkey rsa:2048 -nodes -subj /CN=localhost -keyout server.key -out "
          "server.csr && printf 'subjectAltName=DNS:localhost' >san && openssl x509 -req -days 2 "
          "-in server.csr -CA root.crt -CAkey root.key -CAcreateserial -extfile san -out "
          "server.crt && chmod 600 server.key");
    (void)snprintf(path, sizeof path, "%s/server.key", cluster_dir());
    CHECK(getuid() != 0 || (who && chown(path, who->pw_uid, who->pw_gid) == 0), "its owner");
    shell("sed -i 's/^host /hostssl /' data/pg_hba.conf");
}

static void start_with_tls(void)
{
    char number[16];
    char setting[24];
    const char *const settings[] = {
        "listen_addresses=localhost", setting, "ssl=on", "ssl_cert_file=../server.crt",
        "ssl_key_file=../server.key", NULL};

    (void)cluster_conninfo();
    make_certificates();
    cluster_kill();
    port = test_port();
    CHECK(port, "no free port");
    (void)snprintf(number, sizeof number, "%d", port);
    (void)snprintf(setting, sizeof setting, "port=%d", port);
    (void)setenv("PGPORT", number, 1); /* for its socket as well */
    cluster_start_with(settings);
}

static enum err open_with(const char *host, const char *mode, const char *root, struct store **ret)
{
    char conninfo[400];
    const struct postgres_options o = {.conninfo = conninfo,
                                       .schema = "intact_tls",
                                       .node = "n1",
                                       .wait_ms = 60000};

    (void)snprintf(conninfo, sizeof conninfo,
                   "host=%s user=intact dbname=postgres sslmode=%s sslrootcert=%s/%s", host, mode,
                   cluster_dir(), root);
    *ret = NULL;
    return postgres_store_open(&o, ret, &e);
}

static void refused(const char *host, const char *mode, const char *root, const char *why)
{
    struct store *s;

    CHECK(open_with(host, mode, root, &s) == ERR_IO, "%s %s %s", host, mode, root);
    CHECK(strstr(e.text, why), "%s", e.text);
}

static void the_server_has_to_be_who_it_says(void **state)
{
    (void)state;
    refused("localhost", "verify-full", "other.crt", "certificate verify failed");
    refused("127.0.0.1", "verify-full", "root.crt", "does not match host name");
    refused("localhost", "verify-full", "missing.crt", "does not exist");
    refused("localhost", "disable", "root.crt", "no encryption");
}

/* More than one record of TLS holds, there and back. */
static void batches_and_listings_go_through_it(void **state)
{
    enum { TASKS = 200, SIZE = 20000 };
    struct list_query q = {.limit = TASKS};
    struct row_page page;
    static struct change c[TASKS];
    struct batch b = {.changes = c, .change_count = TASKS};
    char *doc = arena_bytes(&arena, SIZE);
    struct store *s;

    (void)state;
    CHECK(open_with("localhost", "verify-full", "root.crt", &s) == ERR_OK, "%s", e.text);
    memset(doc, ' ', SIZE);
    memcpy(doc, "{}", 2);
    for (size_t i = 0; i < TASKS; i++) {
        char id[16];
        (void)snprintf(id, sizeof id, "t-%zu", i);
        c[i] = (struct change){.kind = CHANGE_INSERT,
                               .row = {.id = arena_copy(&arena, slice_of(id)),
                                       .workflow = SLICE("w"),
                                       .version = 1,
                                       .revision = 1,
                                       .doc = {doc, SIZE}}};
    }
    CHECK(s->ops->commit(s, &b, &arena, &e) == ERR_OK, "%s", e.text);
    for (int i = 0; i < 5; i++) {
        CHECK(s->ops->list(s, &q, &arena, &page, &e) == ERR_OK && page.count == TASKS, "%s",
              e.text);
        CHECK(page.rows[0].doc.len == SIZE, "whole");
    }
    s->ops->close(s);
}

static int begin(void **state)
{
    (void)state;
    start_with_tls();
    return 0;
}

static int end(void **state)
{
    (void)state;
    arena_fini(&arena);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_server_has_to_be_who_it_says),
        cmocka_unit_test(batches_and_listings_go_through_it),
    };
    return cmocka_run_group_tests_name("TLS to PostgreSQL", tests, begin, end);
}
