/* Reads the section `amqp` of the configuration, and answers questions about queues and addresses:
 * see amqp_config.h. */
#include "amqp/amqp_config.h"

#include <arpa/inet.h>
#include <fnmatch.h>
#include <stdlib.h>

enum { IDLE_DEFAULT_MS = 60000, IDLE_MIN_MS = 1000 };

static struct amqp_config *config_of(const struct reader *r)
{
    return r->subject;
}

/* ---- values ---- */

static bool queue_name_is_sound(struct slice name)
{
    for (size_t i = 0; i < name.len; i++)
        if ((unsigned char)name.ptr[i] <= ' ' || name.ptr[i] == 0x7f)
            return false;
    return name.len > 0 && name.len <= AMQP_QUEUE_NAME_MAX;
}

static void read_queue(struct reader *r, const struct json *j, const struct path *path,
                       void *target)
{
    if (j->type != JSON_STRING || !queue_name_is_sound(j->text))
        mistake_in(r, path, j, "the name of a queue, of at most %d bytes without spaces",
                   AMQP_QUEUE_NAME_MAX);
    else
        *(struct slice *)target = arena_copy(r->arena, j->text);
}

static void read_slice(struct reader *r, const struct json *j, const struct path *path,
                       void *target)
{
    if (j->type != JSON_STRING || j->text.len == 0)
        mistake_in(r, path, j, "a name");
    else
        *(struct slice *)target = arena_copy(r->arena, j->text);
}

static void read_addresses(struct reader *r, const struct json *j, const struct path *path,
                           void *target)
{
    const char *hole = j->type == JSON_STRING ? strstr(j->text.ptr, "{}") : NULL;

    if (!hole || strstr(hole + 2, "{}"))
        mistake_in(r, path, j, "a pattern with one {} for the queue's name, such as /queue/{}");
    else
        *(const char **)target = arena_copy(r->arena, j->text).ptr;
}

static void read_sasl(struct reader *r, const struct json *j, const struct path *path, void *target)
{
    static const char *const words[] = {"plain", "anonymous", "external"};
    static const char *const mechanisms[] = {"PLAIN", "ANONYMOUS", "EXTERNAL"};

    for (size_t i = 0; j->type == JSON_STRING && i < COUNT_OF(words); i++)
        if (slice_is(j->text, words[i])) {
            *(const char **)target = mechanisms[i];
            return;
        }
    mistake_in(r, path, j, "plain, anonymous or external");
}

/* ---- brokers ---- */

/* A name or an address, within the length limit. */
static bool host_is_sound(struct slice host)
{
    static const char others[] = ".-_:%";

    for (size_t i = 0; i < host.len; i++) {
        char c = host.ptr[i];
        if (!((c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z')
              || (c && strchr(others, c))))
            return false;
    }
    return host.len > 0 && host.len <= 253;
}

/* "amqps://HOST[:PORT]". NULL, or what is expected. */
static const char *url_fault(struct broker_config *b, const char *text)
{
    static const char what[] = "a URL such as amqps://broker.example.org:5671, without a path";
    const char *host = NULL;

    if (strncmp(text, "amqps://", 8) == 0)
        host = text + 8;
    else if (strncmp(text, "amqp://", 7) == 0)
        host = text + 7;
    else
        return what;
    b->is_tls = host == text + 8;
    if (strchr(host, '@'))
        return "a URL without a user and a password: set user and password beside it";
    bool is_v6 = *host == '[';
    const char *end = is_v6 ? strchr(host, ']') : host + strcspn(host, ":/");
    if (!end || end == host || (is_v6 && end == host + 1))
        return what;
    b->host = (struct slice){host + is_v6, (size_t)(end - host) - is_v6};
    if (!host_is_sound(b->host))
        return what;
    end += is_v6;
    b->port = b->is_tls ? 5671 : 5672;
    if (*end == 0)
        return NULL;
    char *rest = NULL;
    unsigned long port =
        *end == ':' && end[1] >= '0' && end[1] <= '9' ? strtoul(end + 1, &rest, 10) : 0;
    if (port == 0 || port > 65535 || *rest)
        return what;
    b->port = (uint16_t)port;
    return NULL;
}

static bool is_address(struct slice host)
{
    char text[64] = "";
    unsigned char ignored[16];

    memcpy(text, host.ptr, host.len < sizeof text ? host.len : 0);
    return inet_pton(AF_INET, text, ignored) == 1 || inet_pton(AF_INET6, text, ignored) == 1;
}

static void read_url(struct reader *r, const struct json *j, const struct path *path, void *target)
{
    struct broker_config *b = target;
    struct slice text = j->type == JSON_STRING ? arena_copy(r->arena, j->text) : SLICE("");
    const char *fault = url_fault(b, text.ptr);

    if (fault)
        mistake_in(r, path, j, "%s", fault);
    else
        b->host = arena_copy(r->arena, b->host);
}

static bool is_loopback(struct slice host)
{
    return slice_is(host, "localhost") || slice_is(host, "::1")
           || (host.len > 4 && memcmp(host.ptr, "127.", 4) == 0 && is_address(host));
}

static struct broker_config *broker_find(const struct amqp_config *c, struct slice name)
{
    for (struct broker_config *b = c->brokers; b; b = b->next)
        if (slice_eq(b->name, name))
            return b;
    return NULL;
}

static void check_broker(struct reader *r, const struct json *j, const struct path *path,
                         const struct broker_config *b)
{
    bool has_password = b->password.file || b->password.env;

    if (b->name.ptr && broker_find(config_of(r), b->name))
        mistake_in(r, path, j, "a name that no other broker has");
    if (b->host.ptr && b->is_tls && is_address(b->host))
        mistake_in(r, path, j,
                   "a name in an amqps:// URL, not an address: the certificate is checked by it");
    if (!b->user != !has_password)
        mistake_in(r, path, j, "user and password beside each other");
    if (b->sasl && strcmp(b->sasl, "PLAIN") == 0 && !has_password)
        mistake_in(r, path, j, "user and password beside sasl: plain");
    if (b->sasl && strcmp(b->sasl, "EXTERNAL") == 0 && !(b->cert && b->is_tls))
        mistake_in(r, path, j, "an amqps:// URL, cert and key beside sasl: external");
    if (!b->cert != !b->key)
        mistake_in(r, path, j, "cert and key beside each other");
    if (b->host.ptr && !b->is_tls && has_password && !b->insecure && !is_loopback(b->host))
        mistake_in(
            r, path, j,
            "an amqps:// URL, since a password is sent; or insecure: true if nobody can read "
            "along");
}

static void read_broker(struct reader *r, const struct json *j, const struct path *path,
                        void *target)
{
    static const struct field fields[] = {
        REQUIRED("name", read_slice, offsetof(struct broker_config, name)),
        REQUIRED("url", read_url, 0),
        TEXT_FIELD("user", struct broker_config, user, 0),
        FIELD("password", read_secret_place, offsetof(struct broker_config, password)),
        FIELD("sasl", read_sasl, offsetof(struct broker_config, sasl)),
        TEXT_FIELD("ca", struct broker_config, ca, 0),
        TEXT_FIELD("cert", struct broker_config, cert, 0),
        TEXT_FIELD("key", struct broker_config, key, 0),
        FIELD("addresses", read_addresses, offsetof(struct broker_config, addresses)),
        FIELD("insecure", read_bool, offsetof(struct broker_config, insecure)),
        FIELD("idle_timeout", read_length, offsetof(struct broker_config, idle_ms)),
    };
    struct broker_config *b = arena_alloc(r->arena, sizeof *b);
    struct broker_config **end = &config_of(r)->brokers;

    (void)target; /* the list is in the configuration */
    *b = (struct broker_config){.addresses = "{}", .idle_ms = IDLE_DEFAULT_MS};
    read_object(r, j, path, fields, COUNT_OF(fields), b);
    b->idle_ms = max_i64(b->idle_ms, IDLE_MIN_MS);
    check_broker(r, j, path, b);
    while (*end)
        end = &(*end)->next;
    *end = b;
}

/* ---- queues ---- */

/* Brokers may be defined later in the text, so names are resolved at the end. */
static void find_broker(struct reader *r, const struct json *j, const struct path *path,
                        struct slice name, struct broker_config **ret)
{
    struct amqp_config *c = config_of(r);
    struct path at = {path, SLICE("broker"), 0};
    const struct json *said = json_get(j, "broker");

    *ret = name.ptr ? broker_find(c, name) : c->brokers;
    if (!*ret && c->brokers)
        mistake_in(r, &at, said ? said : j, "the name of one in brokers");
    else if (!name.ptr && c->brokers && c->brokers->next)
        mistake_in(r, &at, j, "broker beside it: there are several");
}

static const char *const refused_words[] = {
    [AMQP_RECORD] = "record", [AMQP_REJECT] = "reject", NULL};

static void read_submission_queue(struct reader *r, const struct json *j, const struct path *path,
                                  void *target)
{
    static const struct field fields[] = {
        REQUIRED("queue", read_queue, offsetof(struct submissions_config, queue)),
        FIELD("broker", read_slice, offsetof(struct submissions_config, broker_name)),
        FIELD("workflow", read_name, offsetof(struct submissions_config, workflow)),
        WORD_FIELD("refused", 0, struct submissions_config, poison, refused_words,
                   "record (kept among the submissions) or reject (the broker's dead letters)"),
        NUMBER_FIELD("credit", struct submissions_config, credit, 1, AMQP_CREDIT_MAX),
        FIELD("unknown_task", read_length, offsetof(struct submissions_config, unknown_task_ms)),
    };
    struct submissions_config *s = arena_alloc(r->arena, sizeof *s);
    struct submissions_config **end = &config_of(r)->submissions;

    (void)target; /* the list is in the configuration */
    *s = (struct submissions_config){.credit = AMQP_CREDIT_DEFAULT,
                                     .unknown_task_ms = AMQP_UNKNOWN_TASK_MS};
    read_object(r, j, path, fields, COUNT_OF(fields), s);
    while (*end)
        end = &(*end)->next;
    *end = s;
}

static void read_agent_queue(struct reader *r, const struct json *j, const struct path *path,
                             void *target)
{
    static const struct field fields[] = {
        REQUIRED("agent", read_name, offsetof(struct agent_queue_config, agent)),
        REQUIRED("queue", read_queue, offsetof(struct agent_queue_config, queue)),
        FIELD("broker", read_slice, offsetof(struct agent_queue_config, broker_name)),
        NUMBER_FIELD("places", struct agent_queue_config, places, 1, AMQP_PLACES_MAX),
    };
    struct agent_queue_config *a = arena_alloc(r->arena, sizeof *a);
    struct agent_queue_config **end = &config_of(r)->agents;

    (void)target; /* the list is in the configuration */
    *a = (struct agent_queue_config){.places = AMQP_PLACES_DEFAULT};
    read_object(r, j, path, fields, COUNT_OF(fields), a);
    for (; *end; end = &(*end)->next)
        if (a->agent.ptr && slice_eq((*end)->agent, a->agent))
            mistake_in(r, path, j, "each agent once");
    *end = a;
}

static void read_pattern(struct reader *r, const struct json *j, const struct path *path,
                         void *target)
{
    struct queue_pattern **end = &config_of(r)->allow;
    struct slice text = SLICE_NONE;

    (void)target; /* the list is in the configuration */
    read_queue(r, j, path, &text);
    if (!text.ptr)
        return;
    struct queue_pattern *p = arena_alloc(r->arena, sizeof *p);
    *p = (struct queue_pattern){NULL, text.ptr};
    while (*end)
        end = &(*end)->next;
    *end = p;
}

static void read_messages(struct reader *r, const struct json *j, const struct path *path,
                          void *target)
{
    static const struct field fields[] = {
        FIELD("broker", read_slice, offsetof(struct amqp_config, messages_broker_name)),
        LIST_FIELD("allow", true, read_pattern, AMQP_LIST_MAX,
                   "names of queues, with * for anything"),
    };

    read_object(r, j, path, fields, COUNT_OF(fields), target);
}

/* ---- the section ---- */

/* Two readers of one queue would take messages that only the other can use. */
static bool is_read_before(const struct amqp_config *c, const struct broker_config *b,
                           struct slice queue, const void *self)
{
    for (const struct submissions_config *s = c->submissions; s; s = s->next) {
        if (s == self)
            return false;
        if (s->broker == b && slice_eq(s->queue, queue))
            return true;
    }
    for (const struct agent_queue_config *a = c->agents; a && a != self; a = a->next)
        if (a->broker == b && slice_eq(a->queue, queue))
            return true;
    return false;
}

static void check_queue(struct reader *r, const struct json *item, const struct path *path,
                        const struct broker_config *b, struct slice queue, const void *self)
{
    if (b && queue.ptr && is_read_before(config_of(r), b, queue, self))
        mistake_in(r, path, item, "a queue that nothing else here stands for: each has its own");
}

static void resolve(struct reader *r, const struct json *j, const struct path *path,
                    struct amqp_config *c)
{
    struct path at_submissions = {path, SLICE("submissions"), 0};
    struct path at_agents = {path, SLICE("agents"), 0};
    struct path at_submission = {&at_submissions, SLICE_NONE, 0};
    struct path at_agent = {&at_agents, SLICE_NONE, 0};
    struct path at_messages = {path, SLICE("messages"), 0};
    const struct json *item = json_get(j, "submissions");

    item = item ? item->child : NULL;
    for (struct submissions_config *s = c->submissions; s && item; s = s->next, item = item->next) {
        find_broker(r, item, &at_submission, s->broker_name, &s->broker);
        check_queue(r, item, &at_submission, s->broker, s->queue, s);
        at_submission.index++;
    }
    item = json_get(j, "agents");
    item = item ? item->child : NULL;
    for (struct agent_queue_config *a = c->agents; a && item; a = a->next, item = item->next) {
        find_broker(r, item, &at_agent, a->broker_name, &a->broker);
        check_queue(r, item, &at_agent, a->broker, a->queue, a);
        at_agent.index++;
    }
    if (json_get(j, "messages"))
        find_broker(r, json_get(j, "messages"), &at_messages, c->messages_broker_name,
                    &c->messages_broker);
}

void amqp_config_read(struct reader *r, const struct json *j, const struct path *path, void *target)
{
    static const struct field fields[] = {
        LIST_FIELD("brokers", true, read_broker, AMQP_LIST_MAX, "brokers"),
        LIST_FIELD("submissions", false, read_submission_queue, AMQP_LIST_MAX, "queues"),
        LIST_FIELD("agents", false, read_agent_queue, AMQP_LIST_MAX, "agents"),
        FIELD("messages", read_messages, 0),
        FIELD("replies", read_queue, offsetof(struct amqp_config, replies)),
    };
    struct amqp_config *c = arena_alloc(r->arena, sizeof *c);
    void *before = r->subject;

    *c = (struct amqp_config){.replies = SLICE("intact.replies.{node}")};
    r->subject = c;
    read_object(r, j, path, fields, COUNT_OF(fields), c);
    if (j->type == JSON_OBJECT) {
        resolve(r, j, path, c);
        if (json_get(j, "brokers") && !c->brokers)
            mistake_in(r, path, j, "at least one broker");
    }
    r->subject = before;
    *(struct amqp_config **)target = c;
}

/* ---- queues and addresses ---- */

struct slice amqp_target_queue(struct slice target)
{
    static const char prefix[] = "amqp:";
    const size_t skip = sizeof prefix - 1;

    if (target.len <= skip || memcmp(target.ptr, prefix, skip) != 0)
        return SLICE_NONE;
    struct slice queue = {target.ptr + skip, target.len - skip};
    for (size_t i = 0; i < queue.len; i++)
        if ((unsigned char)queue.ptr[i] >= 0x7f)
            return SLICE_NONE;
    return queue_name_is_sound(queue) ? queue : SLICE_NONE;
}

bool amqp_config_allows(const struct amqp_config *c, struct slice queue)
{
    char name[AMQP_QUEUE_NAME_MAX + 1];

    if (!c->messages_broker || !queue.ptr || queue.len >= sizeof name)
        return false;
    memcpy(name, queue.ptr, queue.len);
    name[queue.len] = 0;
    for (const struct queue_pattern *p = c->allow; p; p = p->next)
        if (fnmatch(p->text, name, FNM_NOESCAPE) == 0)
            return true;
    return false;
}

void amqp_address(const struct broker_config *b, struct slice queue, struct buf *ret)
{
    const char *hole = strstr(b->addresses, "{}");

    ASSERT(hole);
    buf_add(ret, b->addresses, (size_t)(hole - b->addresses));
    buf_slice(ret, queue);
    buf_str(ret, hole + 2);
}

struct slice amqp_queue_of(const struct broker_config *b, struct slice address)
{
    const char *hole = strstr(b->addresses, "{}");

    ASSERT(hole);
    size_t before = (size_t)(hole - b->addresses);
    size_t after = strlen(hole + 2);
    if (address.len <= before + after || memcmp(address.ptr, b->addresses, before) != 0
        || memcmp(address.ptr + address.len - after, hole + 2, after) != 0)
        return address;
    return (struct slice){address.ptr + before, address.len - before - after};
}

/* ---- passwords ---- */

enum err amqp_password(const struct broker_config *b, char **ret, struct error *e)
{
    CLEANUP(buf_fini) struct buf story = {0};
    const struct secret_place *place = &b->password;
    size_t len = 0;

    *ret = NULL;
    if (!place->file && !place->env)
        return ERR_OK;
    const char *fault = secret_place_load(place, ret, &len);
    if (!fault && len > 0)
        return ERR_OK;
    secret_wipe(*ret, len);
    *ret = NULL;
    secret_place_fault(place, fault ? fault : "it is empty", &story);
    return error_set(e, ERR_INVALID, "the password of broker %.*s: %s", SLICE_ARG(b->name),
                     story.ptr);
}
