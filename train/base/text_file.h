/* SPDX-License-Identifier: Apache-2.0
 *
 * text_file: reads a whole file into memory, for parsers of small files such as configurations.
 */
#ifndef TRAIN_TEXT_FILE_H
#define TRAIN_TEXT_FILE_H

#include <ring/ring.h>

/** Reads a file. @param most  limit of its size in bytes; a longer file is refused.
 *  @param what  names the kind of file in messages, such as "a configuration".
 *  @param[out] text, length  to be free()d whatever the result; not terminated by a zero.
 *  @return RING_OK, RING_ERR_SYSTEM, RING_ERR_CONFIG (too long), RING_ERR_MEMORY. Messages name
 *  @p path. */
ring_status text_file_read(const char *path, size_t most, const char *what, char **text,
                           size_t *length);

#endif
