#ifndef CLI_VERBS_TEST_FILES_H
#define CLI_VERBS_TEST_FILES_H

/* The files of `intact test`: which ones there are, and what they and their definitions say. */

#include "testing/suite.h"

struct file_list {
    struct test_path {
        char *path;
        int64_t stamp; /* what tells whether it has changed since it was added */
    } * list;
    size_t count, cap;
};

void file_list_fini(struct file_list *l);
void file_list_add(struct file_list *l, const char *path);

/* Whether that is the name of a test file: *.test.yaml (.yml, .json). */
bool test_file_is(const char *name);

/* All of them below a folder, without hidden folders, by name. False: it was not
 * read, which was reported. */
bool test_files_find(const char *folder, struct file_list *ret);

/* Reads a test file and its definitions. Mistakes are printed; NULL: there are some. The files that
 * were read, or were to be, are added to *read (NULL: not wanted). */
struct suite *test_file_load(const char *path, struct file_list *read);

/* The same of a text that stands in no file; `path` is where it would stand. */
struct suite *test_text_load(const char *path, struct slice text);

/* Waits until one of the files has changed, appeared or gone since it was added, or until the
 * folder (unless NULL) has another number of test files than `count`. False: interrupted. */
bool test_files_wait(const struct file_list *files, const char *folder, size_t count);

/* Replaces the content of a file, which has the old one or the new one, whatever happens. A link
 * stays a link; a pipe gets the text. False: an error, which was reported. */
bool test_file_write(const char *path, struct slice text);

#endif
