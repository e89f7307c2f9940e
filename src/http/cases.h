#ifndef HTTP_CASES_H
#define HTTP_CASES_H

/* Bytes from a client, and what must come of them. Used by both tests of this folder. */

#include "base/base.h"

struct http_case {
    const char *what;
    struct slice bytes;
    int status;       /* of the last answer */
    bool closes;      /* the connection ends with it */
    unsigned handled; /* requests that reach the handler; one too many is a smuggled one */
};

#define CASE(what, text, ...)                       \
    {                                               \
        what, {text, sizeof(text) - 1}, __VA_ARGS__ \
    }
#define BAD(what, text) CASE(what, text, 400, true, 0)
#define OK(what, text)  CASE(what, text, 200, false, 1)
#define H               " HTTP/1.1\r\nHost: a\r\n"
#define NEXT            "GET /smuggled" H "\r\n"

/* clang-format off */
static const struct http_case http_cases[] = {
    /* what everybody sends */
    OK("a plain request", "GET /" H "\r\n"),
    OK("an empty line in front", "\r\n\r\nGET /" H "\r\n"),
    OK("a body", "POST /" H "Content-Length: 5\r\n\r\nhello"),
    OK("an empty body", "POST /" H "Content-Length: 0\r\n\r\n"),
    OK("no body at all", "POST /" H "\r\n"),
    OK("chunks", "POST /" H "Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n1\r\n!\r\n0\r\n\r\n"),
    OK("chunks of any case",
        "POST /" H "transfer-encoding: Chunked\r\n\r\nA\r\n0123456789\r\n0\r\n\r\n"),
    OK("extensions of chunks",
        "POST /" H "Transfer-Encoding: chunked\r\n\r\n5;a=b;c=\"d\"\r\nhello\r\n0;x\r\n\r\n"),
    OK("trailers",
        "POST /" H "Transfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\nA: b\r\nC: d\r\n\r\n"),
    OK("white space around values", "GET /" H "A: \t b \t\r\n\r\n"),
    OK("an empty value", "GET /" H "A:\r\nB: \r\n\r\n"),
    OK("bytes beyond ASCII in a value", "GET /" H "A: \xc3\xa4\r\n\r\n"),
    OK("a URL as target", "GET http://a/x?y" H "\r\n"),
    OK("a URL without path as target", "GET http://A" H "\r\n"),
    OK("OPTIONS *", "OPTIONS *" H "\r\n"),
    OK("upgrades are ignored",
        "GET /" H "Connection: Upgrade, HTTP2-Settings\r\n"
        "Upgrade: h2c\r\nHTTP2-Settings: x\r\n\r\n"),
    OK("upgrades with a body",
        "POST /" H "Connection: Upgrade\r\nUpgrade: x\r\nContent-Length: 2\r\n\r\nhi"),
    OK("a Host with a port", "GET / HTTP/1.1\r\nHost: [::1]:7420\r\n\r\n"),
    OK("HTTP/1.0 that wants to go on", "GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n"),
    CASE("two in a row", "GET /" H "\r\nPOST /" H "Content-Length: 2\r\n\r\nhi", 200, false, 2),
    CASE("the client wants to close", "GET /" H "Connection: close\r\n\r\n" NEXT, 200, true, 1),
    CASE("HTTP/1.0", "GET / HTTP/1.0\r\n\r\n", 200, true, 1),
    CASE("HTTP/1.0 with a body", "POST / HTTP/1.0\r\nContent-Length: 2\r\n\r\nhi", 200, true, 1),
    CASE("a good one and a bad one", "GET /" H "\r\nGET /" H "A : b\r\n\r\n", 400, true, 1),

    /* where does the body end? */
    BAD("both framings",
        "POST /" H "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" NEXT),
    BAD("both, the other way round",
        "POST /" H "Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n" NEXT),
    BAD("two equal lengths", "POST /" H "Content-Length: 2\r\nContent-Length: 2\r\n\r\nhi" NEXT),
    BAD("two lengths", "POST /" H "Content-Length: 2\r\nContent-Length: 3\r\n\r\nhi!" NEXT),
    BAD("a list of lengths", "POST /" H "Content-Length: 2, 2\r\n\r\nhi" NEXT),
    BAD("a length with a sign", "POST /" H "Content-Length: +2\r\n\r\nhi" NEXT),
    BAD("a negative length", "POST /" H "Content-Length: -2\r\n\r\nhi" NEXT),
    BAD("a hexadecimal length", "POST /" H "Content-Length: 0x2\r\n\r\nhi" NEXT),
    BAD("a length in two words", "POST /" H "Content-Length: 1 2\r\n\r\nhi" NEXT),
    BAD("an empty length", "POST /" H "Content-Length: \r\n\r\nhi" NEXT),
    BAD("a length beyond 64 bits", "POST /" H "Content-Length: 99999999999999999999\r\n\r\n" NEXT),
    BAD("a hidden length", "POST /" H "Content-Length : 2\r\n\r\nhi" NEXT),
    BAD("a length in a folded line", "POST /" H "A: b\r\n Content-Length: 2\r\n\r\nhi" NEXT),
    BAD("a coding in a folded line",
        "POST /" H "Transfer-Encoding:\r\n chunked\r\n\r\n0\r\n\r\n" NEXT),
    BAD("a coding after a tab", "POST /" H "Transfer-Encoding:\r\n\tchunked\r\n\r\n0\r\n\r\n" NEXT),
    BAD("chunked twice", "POST /" H "Transfer-Encoding: chunked, chunked\r\n\r\n0\r\n\r\n" NEXT),
    BAD("two codings",
        "POST /" H "Transfer-Encoding: chunked\r\n"
        "Transfer-Encoding: identity\r\n\r\n0\r\n\r\n" NEXT),
    BAD("two codings, chunked last",
        "POST /" H "Transfer-Encoding: identity\r\n"
        "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n" NEXT),
    BAD("chunked is not last", "POST /" H "Transfer-Encoding: chunked, gzip\r\n\r\n0\r\n\r\n" NEXT),
    BAD("an empty coding", "POST /" H "Transfer-Encoding: \r\n\r\n0\r\n\r\n" NEXT),
    BAD("a hidden coding", "POST /" H "Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n" NEXT),
    BAD("a vertical tab before the coding",
        "POST /" H "Transfer-Encoding: \x0b" "chunked\r\n\r\n0\r\n\r\n" NEXT),
    BAD("chunks in HTTP/1.0",
        "POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" NEXT),
    CASE("a coding unknown here",
        "POST /" H "Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n" NEXT, 501, true, 0),
    CASE("identity is no coding",
        "POST /" H "Transfer-Encoding: identity\r\n\r\n" NEXT, 501, true, 0),
    CASE("not quite chunked",
        "POST /" H "Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n" NEXT, 501, true, 0),
    CASE("chunked in quotes",
        "POST /" H "Transfer-Encoding: \"chunked\"\r\n\r\n0\r\n\r\n" NEXT, 501, true, 0),

    /* where does the chunk end? */
#define CHUNKED "POST /" H "Transfer-Encoding: chunked\r\n\r\n"
    BAD("a chunk with 0x", CHUNKED "0x2\r\nhi\r\n0\r\n\r\n" NEXT),
    BAD("a chunk with a sign", CHUNKED "+2\r\nhi\r\n0\r\n\r\n" NEXT),
    BAD("a negative chunk", CHUNKED "-2\r\nhi\r\n0\r\n\r\n" NEXT),
    BAD("a chunk without a size", CHUNKED "\r\nhi\r\n0\r\n\r\n" NEXT),
    BAD("an extension without a size", CHUNKED ";x\r\nhi\r\n0\r\n\r\n" NEXT),
    BAD("a size of letters", CHUNKED "xyz\r\nhi\r\n0\r\n\r\n" NEXT),
    BAD("a space before the size", CHUNKED " 2\r\nhi\r\n0\r\n\r\n" NEXT),
    BAD("a space behind the size", CHUNKED "2 \r\nhi\r\n0\r\n\r\n" NEXT),
    BAD("a size beyond 64 bits", CHUNKED "10000000000000002\r\nhi\r\n0\r\n\r\n" NEXT),
    BAD("a size beyond sixteen digits", CHUNKED "00000000000000002\r\nhi\r\n0\r\n\r\n" NEXT),
    BAD("a lone LF behind the size", CHUNKED "2\nhi\r\n0\r\n\r\n" NEXT),
    BAD("a lone CR behind the size", CHUNKED "2\rhi\r\n0\r\n\r\n" NEXT),
    BAD("a lone LF in an extension", CHUNKED "2;\nxx\r\nhi\r\n0\r\n\r\n" NEXT),
    BAD("a chunk that is longer than it says", CHUNKED "2\r\nhello\r\n0\r\n\r\n" NEXT),
    BAD("a lone LF behind the chunk", CHUNKED "2\r\nhi\n0\r\n\r\n" NEXT),
    BAD("nothing behind the chunk", CHUNKED "2\r\nhi0\r\n\r\n" NEXT),
    BAD("a lone LF at the end", CHUNKED "2\r\nhi\r\n0\r\n\n" NEXT),
    BAD("a folded trailer", CHUNKED "0\r\nA: b\r\n c\r\n\r\n" NEXT),
    BAD("a trailer that is none", CHUNKED "0\r\n" NEXT),
    BAD("a trailer without a name", CHUNKED "0\r\n: b\r\n\r\n" NEXT),
    BAD("a trailer with a space before its colon", CHUNKED "0\r\nA : b\r\n\r\n" NEXT),
    BAD("a NUL in a trailer", CHUNKED "0\r\nA: \0\r\n\r\n" NEXT),

    /* lines and characters */
    BAD("lone LFs", "GET / HTTP/1.1\nHost: a\n\n" NEXT),
    BAD("a lone LF at the end of the head", "GET /" H "\n" NEXT),
    BAD("a lone LF behind a field", "GET / HTTP/1.1\r\nHost: a\nA: b\r\n\r\n" NEXT),
    BAD("a lone CR behind a field", "GET / HTTP/1.1\r\nHost: a\rA: b\r\n\r\n" NEXT),
    BAD("a lone CR in a value", "GET /" H "A: b\rc\r\n\r\n" NEXT),
    BAD("CR CR LF", "GET /" H "A: b\r\r\n\r\n" NEXT),
    BAD("a lone LF in front", "\nGET /" H "\r\n"),
    BAD("a folded line", "GET /" H "A: b\r\n c\r\n\r\n" NEXT),
    BAD("white space before the first field", "GET / HTTP/1.1\r\n Host: a\r\n\r\n" NEXT),
    BAD("a space before the colon", "GET /" H "A : b\r\n\r\n" NEXT),
    BAD("a tab before the colon", "GET /" H "A\t: b\r\n\r\n" NEXT),
    BAD("a field without a colon", "GET /" H "A\r\n\r\n" NEXT),
    BAD("a field without a name", "GET /" H ": b\r\n\r\n" NEXT),
    BAD("a name in brackets", "GET /" H "A(b): c\r\n\r\n" NEXT),
    BAD("a name beyond ASCII", "GET /" H "\xc3\xa4: c\r\n\r\n" NEXT),
    BAD("a NUL in a name", "GET /" H "A\0b: c\r\n\r\n" NEXT),
    BAD("a NUL in a value", "GET /" H "A: b\0c\r\n\r\n" NEXT),
    BAD("a control character in a value", "GET /" H "A: b\x01\r\n\r\n" NEXT),
    BAD("a DEL in a value", "GET /" H "A: b\x7f\r\n\r\n" NEXT),
    BAD("TLS", "\x16\x03\x01\x02"),

    /* the request line */
    BAD("no version", "GET /\r\nHost: a\r\n\r\n" NEXT),
    BAD("no target", "GET HTTP/1.1\r\nHost: a\r\n\r\n" NEXT),
    BAD("two spaces", "GET  /" H "\r\n" NEXT),
    BAD("two spaces behind the target", "GET / " H "\r\n" NEXT),
    BAD("a space behind the version", "GET / HTTP/1.1 \r\nHost: a\r\n\r\n" NEXT),
    BAD("a space in the target", "GET /a b" H "\r\n" NEXT),
    BAD("tabs for spaces", "GET\t/\tHTTP/1.1\r\nHost: a\r\n\r\n" NEXT),
    BAD("a method of small letters", "get /" H "\r\n" NEXT),
    BAD("a method unknown to all", "FETCH /" H "\r\n" NEXT),
    BAD("a method unknown here", "PROPFIND /" H "\r\n" NEXT),
    BAD("CONNECT", "CONNECT a:80" H "\r\n" NEXT),
    BAD("TRACE", "TRACE /" H "\r\n" NEXT),
    BAD("another protocol", "GET / HTTQ/1.1\r\nHost: a\r\n\r\n" NEXT),
    BAD("a protocol in small letters", "GET / http/1.1\r\nHost: a\r\n\r\n" NEXT),
    BAD("a long version", "GET / HTTP/1.10\r\nHost: a\r\n\r\n" NEXT),
    CASE("HTTP/2 in clear", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 505, true, 0),
    CASE("HTTP/1.2", "GET / HTTP/1.2\r\nHost: a\r\n\r\n" NEXT, 505, true, 0),
    CASE("HTTP/0.9", "GET / HTTP/0.9\r\n\r\n" NEXT, 505, true, 0),
    CASE("HTTP/3.0", "GET / HTTP/3.0\r\nHost: a\r\n\r\n" NEXT, 505, true, 0),

    /* whom is it for? */
    BAD("no Host", "GET / HTTP/1.1\r\n\r\n" NEXT),
    BAD("two Hosts", "GET /" H "Host: a\r\n\r\n" NEXT),
    BAD("two Hosts in HTTP/1.0", "GET / HTTP/1.0\r\nHost: a\r\nHost: b\r\n\r\n" NEXT),
    BAD("an empty Host", "GET / HTTP/1.1\r\nHost:\r\n\r\n" NEXT),
    BAD("a Host that is a path", "GET / HTTP/1.1\r\nHost: a/b\r\n\r\n" NEXT),
    BAD("a Host with a user", "GET / HTTP/1.1\r\nHost: u@a\r\n\r\n" NEXT),
    BAD("a Host in two words", "GET / HTTP/1.1\r\nHost: a b\r\n\r\n" NEXT),
    BAD("a URL of another host", "GET http://b/" H "\r\n" NEXT),
    BAD("a URL of a longer host", "GET http://a.b/" H "\r\n" NEXT),
    BAD("a URL with a user", "GET http://u@a/" H "\r\n" NEXT),
    BAD("a URL without a host", "GET http:///x" H "\r\n" NEXT),
    BAD("a URL of another kind", "GET ftp://a/" H "\r\n" NEXT),
    BAD("a target that is no path", "GET a" H "\r\n" NEXT),
    BAD("GET *", "GET *" H "\r\n" NEXT),
    BAD("a fragment", "GET /#a" H "\r\n" NEXT),
    BAD("a target beyond ASCII", "GET /\xc3\xa4" H "\r\n" NEXT),
    BAD("a broken percent-encoding", "GET /%4" H "\r\n" NEXT),
    BAD("a NUL in the path", "GET /%00" H "\r\n" NEXT),
    BAD("a NUL in the query", "GET /?a=%00" H "\r\n" NEXT),
    BAD("a percent-encoding of letters", "GET /?%zz" H "\r\n" NEXT),

    CASE("an expectation unknown here",
        "POST /" H "Expect: magic\r\nContent-Length: 1\r\n\r\nx", 417, true, 0),
};
/* clang-format on */

#endif
