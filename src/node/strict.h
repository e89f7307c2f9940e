#ifndef NODE_STRICT_H
#define NODE_STRICT_H

/*
 * Rejects unknown members and parameters of a request, and names what was found and what is
 * expected: a misspelt member must not be ignored, and a misspelt parameter must not change the
 * meaning of a request.
 */

#include "http/http.h"
#include "json/json.h"

/* Names that are known in some place, ended by NULL. */
#define NAMES(...) ((const char *const[]){__VA_ARGS__, NULL})

/* Are these all the members that the object has? If not, *ret_story names the first unknown one:
 * `there is no member "prioritty" in a submission, did you mean "priority"?` */
bool members_known(const struct json *object, const char *const *known, const char *where,
                   struct buf *ret_story);

/* The same; false: answered with 422. */
bool members_ok(struct http_request *r, const struct json *object, const char *const *known,
                const char *where);

/* Answers with 422: there is no such parameter. */
void answer_unknown_parameter(struct http_request *r, struct slice name, const char *const *known);

/* Are these all the parameters of the query, each at most once? False: answered. */
bool parameters_ok(struct http_request *r, const char *const *known);

/* Why the text is no JSON: "line 2, column 7: key "a" appears twice, at "a": 5". `line` is the
 * number of its first line. Printable, whatever the text holds. */
void refusal_write(struct buf *b, struct slice text, const struct json_fault *f, uint32_t line);

/* Is the body of that type, by its name and with no parameter but charset=utf-8? */
bool content_type_is(const struct http_request *r, const char *type);

/* 415: says what was found and what is expected ("application/json"). */
void answer_content_type(struct http_request *r, const char *expected);

/* Bodies come as they are. False: answered. */
bool content_encoding_ok(struct http_request *r);

#endif
