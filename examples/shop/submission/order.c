/* Reads an order from the JSON text of a message, and refuses what is none (order.h). Pure: the
 * browser's data is checked here again, because anybody could write to the queue. submission.c
 * makes a task of it. */

#include "order.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LINES_MAX = 20, QUANTITY_MAX = 1000, CENTS_MAX = 100000000 };

__attribute__((format(printf, 2, 3))) static bool no_order(char why[WHY_SIZE], const char *words,
                                                           ...)
{
    va_list args;

    va_start(args, words);
    vsnprintf(why, WHY_SIZE, words, args);
    va_end(args);
    return false;
}

static bool is_short(const char *text, size_t max)
{
    size_t length = strlen(text);

    return length > 0 && length <= max;
}

/* What Intact takes as a task's id. */
static bool is_id(const char *text)
{
    const char *good = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._:-";

    return is_short(text, 128) && !text[strspn(text, good)] && strcmp(text, ".") != 0
           && strcmp(text, "..") != 0;
}

static bool is_line(json_t *line)
{
    const char *sku = NULL;
    json_int_t quantity = 0;

    return json_unpack(line, "{s:s, s:I!}", "sku", &sku, "quantity", &quantity) == 0
           && is_short(sku, 64) && quantity > 0 && quantity <= QUANTITY_MAX;
}

static bool are_lines(json_t *list)
{
    size_t i;
    json_t *line;

    json_array_foreach(list, i, line)
    {
        if (!is_line(line))
            return false;
    }
    return json_array_size(list) > 0 && json_array_size(list) <= LINES_MAX;
}

static bool is_sound(const struct order *o, const struct queue_message *m, char why[WHY_SIZE])
{
    if (!is_id(o->id))
        return no_order(why, "order is no id: 1 to 128 of A-Z a-z 0-9 . _ : -");
    if (!m->id || strcmp(m->id, o->id) != 0)
        return no_order(why, "it says order %s, but its message-id is %s", o->id,
                        m->id ? m->id : "missing");
    if (!are_lines(o->parts))
        return no_order(why, "lines is no list of 1 to %d {sku, quantity: 1 to %d}", LINES_MAX,
                        QUANTITY_MAX);
    if (o->cents < 0 || o->cents > CENTS_MAX)
        return no_order(why, "amount is not from 0 to %d", CENTS_MAX);
    if (!is_short(o->card, 40) || !is_short(o->address, 1000) || !is_short(o->at, 40)
        || !is_short(o->customer, 200) || !is_short(o->pay, 40))
        return no_order(why, "card, address, at, customer or pay is empty or too long");
    return true;
}

bool order_read(struct order *o, const struct queue_message *m, char why[WHY_SIZE])
{
    json_error_t e;

    *o = (struct order){.message = json_loadb(m->body, m->size, JSON_REJECT_DUPLICATES, &e)};
    if (!o->message)
        return no_order(why, "it is not JSON: %s", e.text);
    if (json_unpack_ex(o->message, &e, 0, "{s:s, s:o, s:I, s:s, s:s, s:s, s:s, s:s!}", "order",
                       &o->id, "lines", &o->parts, "amount", &o->cents, "card", &o->card, "address",
                       &o->address, "at", &o->at, "customer", &o->customer, "pay", &o->pay)
        != 0)
        return no_order(why,
                        "it is no {order, lines, amount, card, address, at, customer, pay}: %s",
                        e.text);
    if (!is_sound(o, m, why))
        return false;
    json_t *input =
        json_pack("{s:O, s:I, s:s, s:s, s:s, s:s}", "lines", o->parts, "amount", o->cents, "card",
                  o->card, "address", o->address, "customer", o->customer, "pay", o->pay);
    o->lines = json_dumps(o->parts, JSON_COMPACT | JSON_SORT_KEYS);
    o->input = json_dumps(input, JSON_COMPACT);
    json_decref(input);
    if (!o->lines || !o->input)
        abort(); /* memory alone can fail */
    size_t length = strlen(o->card);
    o->card_end = o->card + (length > 4 ? length - 4 : 0);
    snprintf(o->amount, sizeof(o->amount), "%" JSON_INTEGER_FORMAT, o->cents);
    return true;
}

void order_fini(struct order *o)
{
    json_decref(o->message);
    free(o->lines);
    free(o->input);
}
