/* SPDX-License-Identifier: Apache-2.0
 *
 * encoded: a configuration in base64, as DeepSpeed takes it in the place of a file's name.
 */
#ifndef TRAIN_ENCODED_H
#define TRAIN_ENCODED_H

#include <stdbool.h>
#include <stddef.h>

/** @return true if @p word is base64 of an object, { … }, and @p text has it then.
 *  @param[out] text  [strlen(word)] at least */
bool encoded_config(const char *word, char *text, size_t *length);

#endif
