/* Tests of archives: what was written is read again, no failure of the disk loses what was
 * archived (writer.c), and a file that was cut or damaged is read up to its last complete
 * frame. */

#include "archive/archive.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fault.h"
#include "base/test.h"

enum { NOON = 1769860800 /* 2026-01-31T12:00:00Z, s */ };
static const int64_t noon = INT64_C(1000) * NOON;

static char folder[] = "/tmp/intact-archive-XXXXXX";
static char place[64];

static int start(void **state)
{
    (void)state;
    (void)strcpy(folder + strlen(folder) - 6, "XXXXXX");
    CHECK(mkdtemp(folder), "a folder");
    (void)snprintf(place, sizeof place, "%s/a", folder);
    return 0;
}

static int end(void **state)
{
    char command[100];
    (void)state;

    fault_plan = (struct fault_plan){0};
    (void)snprintf(command, sizeof command, "rm -rf %s", folder);
    return system(command);
}

static struct archive_writer *writer(int64_t max_size, bool plain)
{
    const struct archive_config c = {.folder = place, .max_size = max_size, .plain = plain};

    return archive_writer_new(&c, "n1");
}

/* Writes "t-N" lines. */
static enum err put(struct archive_writer *w, int from, int count, int64_t now)
{
    CLEANUP(buf_fini) struct buf b = {0};
    struct error e = {0};

    for (int i = from; i < from + count; i++)
        buf_fmt(&b, "{\"id\":\"t-%d\"}\n", i);
    return archive_write(w, buf_view(&b), now, &e);
}

static struct archive_file *list(struct arena *a, size_t *count)
{
    struct archive_file *files = NULL;
    struct error e = {0};

    CHECK(archive_list(place, a, &files, count, &e) == ERR_OK, "%s", e.text);
    return files;
}

/* Counts how often each of `count` tasks is in the archive. */
static void read_all(int *seen, int count, bool *ret_cut)
{
    CLEANUP(arena_fini) struct arena a = {0};
    size_t files = 0;
    struct archive_file *list_of = list(&a, &files);
    struct error e = {0};

    memset(seen, 0, (size_t)count * sizeof *seen);
    *ret_cut = false;
    for (size_t i = 0; i < files; i++) {
        struct archive_reader *r = archive_reader_open(place, list_of[i].name, &e);
        struct slice line;
        CHECK(r, "%s", e.text);
        while (archive_next(r, &line, &e) == ERR_OK && line.ptr) {
            char text[64];
            int n = -1;
            (void)snprintf(text, sizeof text, "%.*s", SLICE_ARG(line));
            CHECK(sscanf(text, "{\"id\":\"t-%d\"}", &n) == 1 && n >= 0 && n < count, "%s", text);
            seen[n]++;
        }
        CHECK(e.code == ERR_OK, "%s", e.text);
        *ret_cut |= archive_reader_is_cut(r);
        archive_reader_close(r);
    }
}

static void what_is_written_is_read(void **state)
{
    static int seen[5000];
    bool cut = false;
    (void)state;

    for (int plain = 0; plain < 2; plain++) {
        struct archive_writer *w = writer(0, plain);
        for (int i = 0; i < 5000; i += 250)
            CHECK(put(w, i, 250, noon) == ERR_OK, "written");
        archive_writer_free(w);
        read_all(seen, 5000, &cut);
        for (int i = 0; i < 5000; i++)
            CHECK(seen[i] == plain + 1, "t-%d: %d", i, seen[i]);
        CHECK(!cut, "whole");
    }
}

static void files_are_by_day_and_size_and_of_one_process(void **state)
{
    CLEANUP(arena_fini) struct arena a = {0};
    struct archive_writer *w = writer(300, true);
    size_t count = 0;
    (void)state;

    CHECK(put(w, 0, 10, noon) == ERR_OK, "one");
    CHECK(put(w, 10, 30, noon + 1) == ERR_OK, "the same, which is large now");
    CHECK(put(w, 40, 1, noon + 2) == ERR_OK, "another");
    CHECK(put(w, 41, 1, noon + 86400000) == ERR_OK, "the next day's");
    struct archive_writer *other = writer(300, true);
    CHECK(put(other, 42, 1, noon + 86400000) == ERR_OK, "another process, in the same millisecond");
    archive_writer_free(w);
    archive_writer_free(other);
    const struct archive_file *files = list(&a, &count);
    CHECK(count == 4, "%zu files", count);
    CHECK(strcmp(files[0].name, "n1-20260131T120000.000Z.ndjson") == 0, "%s", files[0].name);
    CHECK(strcmp(files[1].name, "n1-20260131T120000.002Z.ndjson") == 0, "%s", files[1].name);
    CHECK(strcmp(files[2].name, "n1-20260201T120000.000Z-1.ndjson") == 0, "%s", files[2].name);
    CHECK(files[0].begun_at == noon && files[3].begun_at == noon + 86400000, "times");
}

/* Injects each failure of the system once. Acknowledged data must be there. */
static void what_failed_is_tried_again_and_nothing_is_lost(void **state)
{
    static int seen[60];
    bool cut = false;
    (void)state;

    for (int plain = 0; plain < 2; plain++)
        for (uint32_t n = 0;; n++) {
            struct archive_writer *w = writer(0, plain);
            bool good[60] = {false};
            fault_plan = (struct fault_plan){.skip = n, .fire = 1};
            for (int i = 0; i < 60; i += 20) {
                bool ok = put(w, i, 20, noon + n) == ERR_OK;
                for (int k = i; k < i + 20; k++)
                    good[k] = ok;
            }
            bool fired = fault_plan.fired > 0;
            fault_plan = (struct fault_plan){0};
            CHECK(put(w, 0, 1, noon + n) == ERR_OK, "it goes on");
            archive_writer_free(w);
            read_all(seen, 60, &cut);
            for (int i = 0; i < 60; i++)
                CHECK(!good[i] || seen[i] > 0, "t-%d was acknowledged, fault %u", i, n);
            if (!fired)
                break;
        }
}

/* Two failures, one some time after the other: the effects of the first must not destroy what was
 * acknowledged after it. Returns how many occurred. */
static uint32_t two_failures(uint32_t first, uint32_t then, bool plain)
{
    enum { PARTS = 5, EACH = 4 };
    struct archive_writer *w = writer(0, plain);
    bool good[PARTS] = {false};
    int seen[PARTS * EACH];
    uint32_t fired = 0;
    bool cut = false;

    fault_plan = (struct fault_plan){.skip = first, .fire = 1};
    for (int i = 0; i < PARTS; i++) {
        good[i] = put(w, i * EACH, EACH, noon + first * 1000 + then) == ERR_OK;
        fired += fault_plan.fired;
        if (fault_plan.fired > 0)
            fault_plan = (struct fault_plan){.skip = then, .fire = fired < 2};
    }
    fault_plan = (struct fault_plan){0};
    archive_writer_free(w);
    read_all(seen, PARTS * EACH, &cut);
    for (int i = 0; i < PARTS * EACH; i++)
        CHECK(!good[i / EACH] || seen[i] > 0, "t-%d was acknowledged, faults %u and %u", i, first,
              then);
    return fired;
}

static void a_second_failure_takes_nothing_of_what_came_after_the_first(void **state)
{
    for (int plain = 0; plain < 2; plain++)
        for (uint32_t first = 0, met = 1; met > 0; first++)
            for (uint32_t then = 0;; then++) {
                (void)end(state);
                (void)start(state);
                met = two_failures(first, then, plain);
                if (met < 2)
                    break;
            }
}

/* A crash truncates a frame anywhere: everything before it is read, and the truncation reported. */
/* A write that the disk takes in part, up to each of its bytes: what it took is taken back, and the
 * file goes on behind what was acknowledged. */
static void what_a_full_disk_took_in_part_is_taken_back(void **state)
{
    const struct rlimit no_limit = {RLIM_INFINITY, RLIM_INFINITY};
    int seen[3];
    bool cut = false;
    (void)state;

    (void)signal(SIGXFSZ, SIG_IGN);
    for (int plain = 0; plain < 2; plain++)
        for (rlim_t room = 0; room < 13; room++) {
            CLEANUP(arena_fini) struct arena a = {0};
            CLEANUP(buf_fini) struct buf path = {0};
            struct archive_writer *w = writer(0, plain);
            struct stat st;
            size_t count = 0;
            CHECK(put(w, 0, 1, noon) == ERR_OK, "the first");
            buf_fmt(&path, "%s/%s", place, list(&a, &count)[0].name);
            CHECK(count == 1 && stat(path.ptr, &st) == 0, "its file");
            const struct rlimit little = {(rlim_t)st.st_size + room, RLIM_INFINITY};
            CHECK(setrlimit(RLIMIT_FSIZE, &little) == 0, "a limit");
            enum err err = put(w, 1, 1, noon);
            CHECK(setrlimit(RLIMIT_FSIZE, &no_limit) == 0, "no limit");
            CHECK(err != ERR_OK, "%d bytes are too few", (int)room);
            CHECK(put(w, 2, 1, noon) == ERR_OK, "there is room again");
            archive_writer_free(w);
            read_all(seen, 3, &cut);
            CHECK(seen[0] == 1 && seen[1] == 0 && seen[2] == 1 && !cut, "%d bytes: %d %d %d",
                  (int)room, seen[0], seen[1], seen[2]);
            CHECK(list(&a, &count) && count == 1, "the file goes on");
            CHECK(unlink(path.ptr) == 0, "removed");
        }
    (void)signal(SIGXFSZ, SIG_DFL);
}

static void a_file_that_is_cut_is_read_up_to_there(void **state)
{
    static int seen[40];
    CLEANUP(arena_fini) struct arena a = {0};
    CLEANUP(buf_fini) struct buf path = {0};
    struct archive_writer *w = writer(0, false);
    size_t count = 0;
    struct stat st;
    bool cut = false;
    (void)state;

    CHECK(put(w, 0, 20, noon) == ERR_OK, "the first frame");
    buf_fmt(&path, "%s/%s", place, list(&a, &count)[0].name);
    CHECK(stat(path.ptr, &st) == 0, "its size");
    off_t first = st.st_size;
    CHECK(put(w, 20, 20, noon) == ERR_OK, "the second one");
    archive_writer_free(w);
    CHECK(stat(path.ptr, &st) == 0, "its size");
    for (off_t size = st.st_size - 1; size >= first; size--) {
        CHECK(truncate(path.ptr, size) == 0, "cut");
        read_all(seen, 40, &cut);
        for (int i = 0; i < 40; i++)
            CHECK(seen[i] == (i < 20), "t-%d: %d at %d", i, seen[i], (int)size);
        CHECK(cut == (size > first), "told at %d", (int)size);
    }
}

static void a_damaged_file_is_told(void **state)
{
    CLEANUP(arena_fini) struct arena a = {0};
    CLEANUP(buf_fini) struct buf path = {0};
    struct archive_writer *w = writer(0, false);
    struct error e = {0};
    size_t count = 0;
    struct slice line;
    (void)state;

    CHECK(put(w, 0, 20, noon) == ERR_OK, "written");
    archive_writer_free(w);
    const char *name = list(&a, &count)[0].name;
    buf_fmt(&path, "%s/%s", place, name);
    int fd = open(path.ptr, O_WRONLY);
    CHECK(fd >= 0 && pwrite(fd, "nonsense", 8, 0) == 8 && close(fd) == 0, "damaged");
    struct archive_reader *r = archive_reader_open(place, name, &e);
    CHECK(r && archive_next(r, &line, &e) == ERR_CORRUPT, "%s", e.text);
    archive_reader_close(r);
    CHECK(!archive_reader_open(place, "none", &e) && e.code == ERR_NOT_FOUND, "%s", e.text);
}

static void a_folder_that_cannot_be_written_is_told(void **state)
{
    const struct archive_config c = {.folder = "/proc/no-such-folder/x"};
    struct error e = {0};
    (void)state;

    CHECK(archive_check(&c, &e) == ERR_IO, "%d", (int)e.code);
    CHECK(strstr(e.text, c.folder), "%s", e.text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(what_is_written_is_read, start, end),
        cmocka_unit_test_setup_teardown(files_are_by_day_and_size_and_of_one_process, start, end),
        cmocka_unit_test_setup_teardown(what_failed_is_tried_again_and_nothing_is_lost, start, end),
        cmocka_unit_test_setup_teardown(a_second_failure_takes_nothing_of_what_came_after_the_first,
                                        start, end),
        cmocka_unit_test_setup_teardown(what_a_full_disk_took_in_part_is_taken_back, start, end),
        cmocka_unit_test_setup_teardown(a_file_that_is_cut_is_read_up_to_there, start, end),
        cmocka_unit_test_setup_teardown(a_damaged_file_is_told, start, end),
        cmocka_unit_test(a_folder_that_cannot_be_written_is_told),
    };
    return cmocka_run_group_tests_name("archive", tests, NULL, NULL);
}
