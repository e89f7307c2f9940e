/*
 * Opens and closes the state store in PostgreSQL, and its table of operations. body.h lists what
 * the other files of this folder do.
 */
#include "store/postgres/body.h"

#include <stdlib.h>
#include <sys/random.h>

#include "base/clock.h"

static void pg_close(struct store *base)
{
    struct postgres_store *s = postgres_store_of(base);

    pg_unwatch(s);
    connection_drop(s);
    for (size_t i = 0; i < PG_COUNT; i++)
        free(s->sql[i]);
    pg_abandoned_free(s);
    pg_hosts_free(s);
    free(s->node);
    store_time_fini(&s->time);
    free(s);
}

static enum err pg_generations(struct store *base, struct generations *ret, struct error *e)
{
    CLEANUP(arena_fini) struct arena own = {0};
    struct postgres_store *s = postgres_store_of(base);
    struct query q;

    query_of(&q, s, PG_GENERATIONS, &own);
    CLEANUP(result_end) PGresult *r = pg_read(s, &q, e, "look for what is new");
    if (!r)
        return e->code;
    *ret = (struct generations){(uint64_t)result_number(r, 0, 0), (uint64_t)result_number(r, 0, 1),
                                (uint64_t)result_number(r, 0, 2), (uint64_t)result_number(r, 0, 3)};
    return ERR_OK;
}

static const unsigned char *pg_secret(struct store *base)
{
    return postgres_store_of(base)->secret;
}

static const char *pg_installation(struct store *base)
{
    return postgres_store_of(base)->installation;
}

static uint64_t pg_boot(struct store *base)
{
    return postgres_store_of(base)->boot;
}

/* Other nodes may have been at work all the time. */
static int64_t pg_used_until(struct store *base)
{
    (void)base;
    return 0;
}

static const struct store_outbox_ops outbox_ops = {
    .read = pg_outbox_read,
    .settle = pg_outbox_settle,
    .targets = pg_outbox_targets,
    .list = pg_outbox_list,
    .apply = pg_outbox_do,
    .census = pg_outbox_census,
};

static const struct store_submission_ops submissions_ops = {
    .describe = pg_workflow_describe,
    .take = pg_submissions_take,
    .settle = pg_submissions_settle,
    .put = pg_submissions_put,
    .list = pg_submissions_list,
    .apply = pg_submissions_verb,
};

static const struct store_notice_ops notices_ops = {
    .read = pg_notices_read,
    .refused = pg_notices_refused,
    .told = pg_notices_told,
    .settle = pg_notices_settle,
    .put = pg_notices_put,
};

static const struct store_alert_ops alerts_ops = {
    .stopped = pg_stopped,
    .put = pg_alert_put,
    .list = pg_alert_list,
    .acknowledge = pg_alert_acknowledge,
};

static const struct store_schedule_ops schedules_ops = {
    .write = pg_schedule_write,
    .look = pg_schedule_look,
    .list = pg_schedule_list,
    .version = pg_schedule_version,
    .remove = pg_schedule_remove,
};

static const struct store_item_ops items_ops = {
    .read = pg_items_read,
    .outputs = pg_items_outputs,
};

static const struct store_session_ops sessions_ops = {
    .put = pg_session_put,
    .remove = pg_session_delete,
    .list = pg_session_list,
};

static const struct store_lock_ops locks_ops = {
    .list = pg_lock_list,
    .held = pg_lock_held,
};

static const struct store_operation_ops operations_ops = {
    .put = pg_operation_put,
    .list = pg_operation_list,
};

static const struct store_retention_ops retention_ops = {
    .look = pg_retire_look,
    .retire = pg_retire,
    .reserved = pg_reserved,
    .sweep = pg_reserved_sweep,
};

static const struct store_count_ops counts_ops = {
    .census = pg_census,
    .owners = pg_owners,
};

static const struct store_node_ops nodes_ops = {
    .workflow_since = pg_workflow_since,
    .generations = pg_generations,
    .survey = pg_survey,
    .put = pg_node_put,
    .list = pg_node_list,
};

static const struct store_ops ops = {
    .close = pg_close,
    .reading = pg_reading_new,
    .commit = pg_commit,
    .probe = pg_probe,
    .get = pg_get,
    .get_many = pg_get_many,
    .records = pg_records,
    .glance = pg_glance,
    .overdue = pg_overdue,
    .list = pg_list,
    .workflow_put = pg_workflow_put,
    .workflow_get = pg_workflow_get,
    .workflow_list = pg_workflow_list,
    .watch = pg_watch,
    .token_put = pg_token_put,
    .token_change = pg_token_change,
    .token_delete = pg_token_delete,
    .token_list = pg_token_list,
    .audit_list = pg_audit_list,
    .audit_put = pg_audit_put,
    .agent_put = pg_agent_put,
    .agent_since = pg_agent_since,
    .overrun_count = pg_overrun_count,
    .overrun_list = pg_overrun_list,
    .requested = pg_requested,
    .lease = pg_lease,
    .secret = pg_secret,
    .installation = pg_installation,
    .boot = pg_boot,
    .used_until = pg_used_until,
    .now = pg_now,
    .outbox = &outbox_ops,
    .submissions = &submissions_ops,
    .notices = &notices_ops,
    .alerts = &alerts_ops,
    .locks = &locks_ops,
    .items = &items_ops,
    .operations = &operations_ops,
    .schedules = &schedules_ops,
    .retention = &retention_ops,
    .counts = &counts_ops,
    .sessions = &sessions_ops,
    .nodes = &nodes_ops,
};

static bool is_schema(const char *name)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyz_0123456789";

    return *name && (*name < '0' || *name > '9') && strlen(name) < 64
           && strspn(name, letters) == strlen(name);
}

static struct postgres_store *make(const struct postgres_options *o, const char *schema)
{
    struct postgres_store *s = calloc(1, sizeof *s);

    ASSERT(s);
    s->base = (struct store){.ops = &ops, .shared = true};
    s->node = strdup(o->node);
    ASSERT(s->node);
    (void)snprintf(s->schema, sizeof s->schema, "%s", schema);
    (void)snprintf(s->prefix, sizeof s->prefix, "\"%s\".", schema);
    s->wait_ms = o->wait_ms ? o->wait_ms : 10000;
    if (getrandom(&s->random, sizeof s->random, 0) != sizeof s->random)
        s->random.state =
            (uint64_t)clock_steady_ms(); /* pauses that are less by chance, at worst */
    pg_settings_make(s);
    store_time_init(&s->time, 0);
    for (size_t i = 0; i < PG_COUNT; i++) {
        CLEANUP(buf_fini) struct buf text = {0};
        struct buf b = {0};
        buf_fmt(&text, "%s%s", pg_sql_text((enum pg_sql)i), pg_sql_end((enum pg_sql)i));
        pg_sql_expand(&b, text.ptr, s->prefix);
        s->sql[i] = b.ptr;
    }
    return s;
}

/* One that takes connections and acknowledges nothing is not the last word: then the next one. */
static enum err begin(struct postgres_store *s, struct error *e)
{
    enum err err = ERR_IO;

    for (size_t i = 0; i < s->host_count && err_is_transient(err); i++) {
        s->connect_at = 0;
        err = pg_schema_check(s, e);
        if (err == ERR_OK)
            err = pg_schema_node(s, e);
        if (err != ERR_OK) {
            connection_drop(s);
            s->host_at = (s->host_at + 1) % s->host_count;
        }
    }
    return err;
}

static enum err prepare(const struct postgres_options *o, struct postgres_store **ret,
                        struct error *e)
{
    const char *schema = o->schema ? o->schema : "intact";

    if (!is_schema(schema)) {
        (void)error_set(e, ERR_INVALID, "the schema is \"%s\", expected a name of a-z, 0-9 and _",
                        schema);
        return ERR_INVALID; /* a literal, for analysers */
    }
    struct postgres_store *s = make(o, schema);
    enum err err = pg_hosts_read(s, o->conninfo, e);
    if (err == ERR_OK)
        *ret = s;
    else
        pg_close(&s->base);
    return err;
}

enum err postgres_store_open(const struct postgres_options *o, struct store **ret, struct error *e)
{
    struct postgres_store *s = NULL;
    enum err err = prepare(o, &s, e);

    if (err == ERR_OK)
        err = begin(s, e);
    if (err == ERR_OK)
        *ret = &s->base;
    else if (s)
        pg_close(&s->base);
    return err;
}

enum err postgres_store_migrate(const struct postgres_options *o, struct error *e)
{
    struct postgres_store *s = NULL;
    enum err err = prepare(o, &s, e);

    if (err != ERR_OK)
        return err;
    err = pg_schema_check(s, e);
    pg_close(&s->base);
    return err;
}
