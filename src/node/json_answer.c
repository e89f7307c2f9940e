/*
 * Answers in JSON, and failures of the store as problem documents (RFC 9457). The only place that
 * chooses the type of problem for an error of the store.
 */

#include "node/json_answer.h"

#include "node/node.h"

void answer_json(struct http_request *r, int status, const struct buf *b, const char *headers)
{
    http_answer(r, status, "application/json", buf_view(b), headers);
}

void answer_json_taken(struct http_request *r, int status, struct buf *b)
{
    struct http_text *text = http_text_new(b);

    http_answer_text(r, status, "application/json", text, NULL);
    http_text_drop(text);
}

/* Errors on which a client can act have a type of their own. The detail distinguishes the others,
 * for people. Errors of a store that is not Intact's, or too new, occur at the start only. */
const char *trouble_type(enum err err)
{
    switch (err) {
    case ERR_NOT_FOUND:
        return "no-such-task";
    case ERR_CONFLICT:
        return "conflict";
    case ERR_TAKEN:
        return "lock-taken";
    case ERR_TOO_BIG:
        return "too-big";
    case ERR_FULL:
        return "full";
    case ERR_BUSY:
        return "busy";
    case ERR_IO:
    case ERR_UNKNOWN:
    case ERR_LOCKED:
        return "io";
    case ERR_OK:
    case ERR_PARSE:
    case ERR_INVALID:
    case ERR_CORRUPT:
    case ERR_NOT_A_STORE:
    case ERR_NEWER:
    case ERR_COPIED:
        return "corrupt";
    }
    UNREACHABLE();
}

const char *signal_problem(enum obstacle o)
{
    return o == OBSTACLE_SIGNAL_UNWANTED ? "no-such-signal"
           : o == OBSTACLE_SIGNAL_FULL   ? "too-many-signals"
                                         : "conflict";
}

void answer_trouble(struct http_request *r, enum err err, const char *story)
{
    int status = err_http_status(err);

    http_problem(r, status, trouble_type(err), "%s%s", story, status == 503 ? "; try again" : "");
}
