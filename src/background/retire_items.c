/* Pages of items at rest as lines of the archive (retire_items.h). retire.c reads and writes them
 * in turn. */

#include "background/retire_items.h"

#include "store/codec/codec.h"

enum {
    PAGE_ROWS = 256,
    PAGE_BYTES = 1 << 20, /* one item is read whatever it has */
};

/* Goes to the first list of the next step with items, from `step` on. */
static void find_step(struct retire_items *x, uint16_t step)
{
    while (step < x->workflow->step_count && x->workflow->steps[step].kind != KIND_EACH)
        step++;
    x->step = step;
    x->generation = 0;
    x->from = 0;
}

bool retire_items_begin(struct retire_items *x, const struct workflow *w, const struct task *t)
{
    *x = (struct retire_items){.workflow = w, .task = t};
    find_step(x, 0);
    return retire_items_more(x);
}

bool retire_items_more(const struct retire_items *x)
{
    return x->step < x->workflow->step_count;
}

enum err retire_items_read(struct retire_items *x, struct store *store, struct error *e)
{
    ASSERT(retire_items_more(x));
    x->page = (struct item_read){.task = x->task->id,
                                 .step = x->workflow->steps[x->step].name,
                                 .generation = x->generation,
                                 .order = ITEMS_UP,
                                 .from = x->from,
                                 .limit = PAGE_ROWS,
                                 .bytes_max = PAGE_BYTES};
    return store->ops->items->read(store, &x->page, &x->arena, e);
}

static enum err decode(struct retire_items *x, struct step **ret, struct error *e)
{
    struct step *rows = arena_alloc(&x->arena, (x->page.count + 1) * sizeof *rows);
    enum err err = ERR_OK;

    for (size_t i = 0; err == ERR_OK && i < x->page.count; i++)
        err = item_decode(x->workflow, x->step, &x->page.rows[i], &x->arena, &rows[i], e);
    *ret = rows;
    return err;
}

static void go_on(struct retire_items *x)
{
    if (x->page.more && x->page.count > 0)
        x->from = (int64_t)x->page.rows[x->page.count - 1].number + 1;
    else if (x->generation < x->task->steps[x->step].generation) {
        x->generation++;
        x->from = 0;
    } else
        find_step(x, (uint16_t)(x->step + 1));
}

enum err retire_items_write(struct retire_items *x, struct buf *lines, struct error *e)
{
    struct archived_items page = {.step = x->step, .generation = x->generation};
    struct step *rows = NULL;

    enum err err = decode(x, &rows, e);
    if (err == ERR_OK && x->page.count > 0) {
        page.part = ++x->part;
        page.rows = rows;
        page.row_count = x->page.count;
        render_archived_items(lines, x->workflow, x->task, &page);
        buf_byte(lines, '\n');
    }
    if (err == ERR_OK)
        go_on(x);
    arena_fini(&x->arena);
    return err;
}

void retire_items_end(struct retire_items *x)
{
    arena_fini(&x->arena);
}
