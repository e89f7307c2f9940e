/* Finds "." and ".." in the path of a URL as a server could read it: steps.h. Callers: webhooks and
 * the HTTP agent, whose paths come from submitters. */
#include "net/steps.h"

int hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c = (char)(c | 0x20);
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* The next byte, decoded; -1: the end. A "%" without two digits is itself. */
static int next_byte(struct slice path, size_t *at)
{
    if (*at == path.len)
        return -1;
    char c = path.ptr[(*at)++];
    if (c != '%' || path.len - *at < 2 || hex_digit(path.ptr[*at]) < 0
        || hex_digit(path.ptr[*at + 1]) < 0)
        return (unsigned char)c;
    int byte = hex_digit(path.ptr[*at]) * 16 + hex_digit(path.ptr[*at + 1]);
    *at += 2;
    return byte;
}

bool path_has_steps(struct slice path)
{
    size_t dots = 0;
    size_t others = 0;
    bool left_out = false;

    for (size_t at = 0;;) {
        int byte = next_byte(path, &at);
        if (byte == -1 || byte == '/' || byte == '\\') {
            if (others == 0 && (dots == 1 || dots == 2))
                return true;
            dots = others = 0;
            left_out = false;
        } else if (byte == ';') {
            left_out = true;
        } else if (byte == '.' && !left_out) {
            dots++;
        } else if (!left_out) {
            others++;
        }
        if (byte == -1)
            return false;
    }
}
