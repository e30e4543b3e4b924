/* SPDX-License-Identifier: Apache-2.0
 *
 * tokens: reads a text as a sequence of token numbers. The files train.bin and val.bin have
 * little-endian tokens: of 16 bits, as nanoGPT writes them, or of 16 or 32 bits after a header of
 * 1024 bytes, as llm.c writes them. In input.txt each byte is a token, and the last tenth is for
 * testing. The files are untrusted input, so their sizes are checked before anything is allocated.
 */
#ifndef TRAIN_TOKENS_H
#define TRAIN_TOKENS_H

#include <stdbool.h>

#include "idx.h"

/** @return whether @p folder has a train.bin or an input.txt. */
bool tokens_are_here(const char *folder);

/** Reads the training or the test part.
 *  @param[out] text  [count] tokens of @p width bytes, 1, 2 or 4; to be freed with idx_free()
 *  whatever the result. @return RING_OK; RING_ERR_CONFIG (a file is wrong), RING_ERR_SYSTEM,
 *  RING_ERR_MEMORY. */
ring_status tokens_read(const char *folder, bool test, idx_array *text, size_t *width);

/** @return the @p i-th token. */
static inline uint32_t token_at(const idx_array *text, size_t width, size_t i)
{
    const uint8_t *at = text->data + i * width;
    uint32_t token = 0;
    for (size_t b = 0; b < width; b++)
        token |= (uint32_t)at[b] << 8 * b;
    return token;
}

/** @return one more than the largest token. */
size_t tokens_vocabulary(const idx_array *text, size_t width);

#endif
