/* SPDX-License-Identifier: Apache-2.0
 * Temporary folders, and IDX files good and bad in them. */
#ifndef TESTS_TRAIN_FILES_H
#define TESTS_TRAIN_FILES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** Makes an empty folder of this test. @return its path, static. */
const char *files_folder(void);
/** Removes it with everything in it. */
void files_remove(void);

/** The two as a test's set-up and tear-down. */
int files_set_up(void **state);
int files_tear_down(void **state);

/** @return folder/name, in one of a few static buffers. */
const char *files_path(const char *name);

void files_write(const char *name, const void *data, size_t bytes);
/** The same, compressed as gzip does. */
void files_write_gz(const char *name, const void *data, size_t bytes);
/** @return the content, terminated by NUL, to be free()d; NULL if there is no such file. */
char *files_read(const char *path, size_t *bytes);

/** @return the bytes of an IDX file to be free()d: a header of @p dims numbers, then @p data. */
uint8_t *files_idx(int dims, const uint32_t *shape, const uint8_t *data, size_t data_bytes,
                   size_t *bytes);

/** Writes MNIST's four files with drawn noise that has some structure to learn. */
void files_dataset(size_t train, size_t test);

#endif
