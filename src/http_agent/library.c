#include "http_agent/library.h"

#include "libintact/request.h"

const char *library_token(const struct intact_request *r)
{
    return r->token.ptr; /* decoded strings have a NUL behind them */
}
