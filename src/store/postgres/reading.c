/*
 * The second handle on the store, for a thread that only reads: a connection of its own, made and
 * proven like the first one. Each statement has a time limit, which the database enforces.
 *
 * Both handles must use one server. This one sees what the first one wrote because both ask the
 * same primary, but after a failover the old primary may answer for a while. So whenever the first
 * connection is lost, is made, or warns of a lack of durability, this one is made again, to the
 * same host, and proves itself before it is read from.
 */
#include "store/postgres/body.h"

#include <stdlib.h>

void pg_turn(struct postgres_store *s)
{
    (void)atomic_fetch_add(&s->turns, 1);
}

void pg_follow(struct postgres_store *s)
{
    unsigned turns = atomic_load(&s->of->turns);

    if (turns == s->turns_seen)
        return;
    s->turns_seen = turns;
    connection_drop(s);
    s->host_at = atomic_load(&s->of->turned_to);
    s->connect_at = 0;
}

static bool reading_is_usable(struct store *base)
{
    (void)base;
    return true; /* why not, it finds out like the other one */
}

static void reading_close(struct store *base)
{
    struct postgres_store *s = postgres_store_of(base);

    connection_drop(s);
    pg_abandoned_free(s);
    store_time_fini(&s->time);
    free(s);
}

static const struct store_outbox_ops outbox_ops = {
    .targets = pg_outbox_targets,
    .list = pg_outbox_list,
};

static const struct store_submission_ops submissions_ops = {
    .list = pg_submissions_list,
};

static const struct store_alert_ops alerts_ops = {
    .list = pg_alert_list,
};

static const struct store_schedule_ops schedules_ops = {
    .list = pg_schedule_list,
    .version = pg_schedule_version,
};

static const struct store_item_ops items_ops = {
    .read = pg_items_read,
    .outputs = pg_items_outputs,
};

static const struct store_lock_ops locks_ops = {
    .list = pg_lock_list,
    .held = pg_lock_held,
};

static const struct store_operation_ops operations_ops = {
    .list = pg_operation_list,
};

static const struct store_retention_ops retention_ops = {
    .reserved = pg_reserved,
};

static const struct store_count_ops counts_ops = {
    .census = pg_census,
    .owners = pg_owners,
};

static const struct store_node_ops nodes_ops = {
    .list = pg_node_list,
};

static const struct store_ops ops = {
    .close = reading_close,
    .is_usable = reading_is_usable,
    .get = pg_get,
    .list = pg_list,
    .audit_list = pg_audit_list,
    .records = pg_records,
    .outbox = &outbox_ops,
    .submissions = &submissions_ops,
    .alerts = &alerts_ops,
    .locks = &locks_ops,
    .items = &items_ops,
    .operations = &operations_ops,
    .schedules = &schedules_ops,
    .retention = &retention_ops,
    .counts = &counts_ops,
    .nodes = &nodes_ops,
};

/* What is known of the database is the other one's, and lives longer. */
struct store *pg_reading_new(struct store *base)
{
    struct postgres_store *of = postgres_store_of(base);
    struct postgres_store *s = calloc(1, sizeof *s);

    ASSERT(s);
    s->base = (struct store){.ops = &ops, .shared = true};
    s->options = of->options;
    memcpy(s->hosts, of->hosts, sizeof s->hosts);
    s->host_count = of->host_count;
    s->host_at = of->host_at;
    memcpy(s->schema, of->schema, sizeof s->schema);
    memcpy(s->prefix, of->prefix, sizeof s->prefix);
    memcpy(s->sql, of->sql, sizeof s->sql);
    memcpy(s->write_settings, of->write_settings, sizeof s->write_settings);
    memcpy(s->read_settings, of->read_settings, sizeof s->read_settings);
    s->settings_count = of->settings_count;
    s->node = of->node;
    s->wait_ms = of->wait_ms;
    s->random = (struct prng){of->random.state + 1};
    s->boot = of->boot;
    store_time_init(&s->time, 0);
    s->of = of;
    s->turns_seen = atomic_load(&of->turns);
    return &s->base;
}
