/* Fuzz target of the HTTP reader: any bytes as client input. The same requests and the same
 * refusal must result however the bytes are split; paths and queries are parsed as well.
 * transcript.h writes down what was read. */

#include "base/fuzz.h"
#include "http/transcript.h"

static const struct http_limits limits = {.body_max = 300,
                                          .line_max = 100,
                                          .head_max = 400,
                                          .header_count_max = 8};

static void compare(struct slice in, const struct buf *whole, size_t first, size_t further)
{
    CLEANUP(buf_fini) struct buf cut = {0};

    transcript_write(&cut, &limits, in, first, further);
    ASSERT(slice_eq(buf_view(&cut), buf_view(whole)));
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    CLEANUP(buf_fini) struct buf whole = {0};
    struct slice in = {(const char *)bytes, len};

    if (len < 2 || len > 4096)
        return 0;
    transcript_write(&whole, &limits, in, len, len);
    compare(in, &whole, 1, 1);
    compare(in, &whole, 1 + (size_t)(bytes[len - 1] * 7) % (len - 1), 1 + bytes[0] % 13);
    return 0;
}
