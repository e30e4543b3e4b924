/* SPDX-License-Identifier: Apache-2.0
 *
 * encoded: decodes a configuration in base64, which DeepSpeed accepts in place of a file's name.
 */
#ifndef TRAIN_ENCODED_H
#define TRAIN_ENCODED_H

#include <stdbool.h>
#include <stddef.h>

/** Decodes @p word. @return true if @p word is the base64 of a JSON object, { … }.
 *  @param[out] text  at least strlen(word) bytes; receives the object, without a terminating zero
 *  @param[out] length  of the object in bytes */
bool encoded_config(const char *word, char *text, size_t *length);

#endif
