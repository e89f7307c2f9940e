/* The floor of the disk: the median time of appending 4 KiB and fdatasync, in a folder. Usage:
 * bench-fsync DIR [COUNT] */

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "measure.h"

int main(int argc, char **argv)
{
    static char block[4096];
    static double ms[100000];
    char path[4096];
    long count = argc > 2 ? strtol(argv[2], NULL, 10) : 1000;

    if (argc < 2 || count < 1 || count > 100000) {
        (void)fprintf(stderr, "usage: bench-fsync DIR [COUNT]\n");
        return 2;
    }
    (void)snprintf(path, sizeof path, "%s/fsync.tmp", argv[1]);
    int fd = open(path, O_CREAT | O_TRUNC | O_WRONLY, 0600);
    if (fd < 0) {
        perror(path);
        return 1;
    }
    memset(block, 'x', sizeof block);
    double begin = now_ms();
    for (long i = 0; i < count; i++) {
        double start = now_ms();
        if (write(fd, block, sizeof block) != (ssize_t)sizeof block || fdatasync(fd) != 0) {
            perror(path);
            return 1;
        }
        ms[i] = now_ms() - start;
    }
    double rate = (double)count / (now_ms() - begin) * 1e3;
    (void)close(fd);
    (void)unlink(path);
    qsort(ms, (size_t)count, sizeof *ms, by_value);
    printf("{\"fdatasync_p50_ms\": %.3f, \"fdatasync_p99_ms\": %.3f, \"fdatasync_per_s\": %.0f}\n",
           ms[count / 2], ms[count * 99 / 100], rate);
    return 0;
}
