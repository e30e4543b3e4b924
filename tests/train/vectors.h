/* SPDX-License-Identifier: Apache-2.0
 *
 * vectors: arrays that PyTorch computed, in vectors/FILE.txt. A file has lines "name: value ...",
 * of which one that begins with a blank goes on; several of one name are rows of a table. The
 * scripts make_*vectors.py write them. An array that is missing or of another length ends the
 * program.
 */
#ifndef TEST_TRAIN_VECTORS_H
#define TEST_TRAIN_VECTORS_H

#include <stddef.h>
#include <stdint.h>

/** @param name  "FILE/NAME". @param count  0: any. @return the values, until the program ends. */
const double *vector_doubles(const char *name, size_t count);
const float *vector_floats(const char *name, size_t count);

/** @return the array's only value. */
double vector_number(const char *name);
uint64_t vector_hash(const char *name);

/** @return how many values an array has. */
size_t vector_count(const char *name);

/** @return the text of row @p nth, ended by a newline; NULL: there are not as many. */
const char *vector_row(const char *name, size_t nth);

#endif
