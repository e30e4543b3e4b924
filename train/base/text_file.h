/* SPDX-License-Identifier: Apache-2.0
 *
 * text_file: a whole file in memory, for readers of small ones.
 */
#ifndef TRAIN_TEXT_FILE_H
#define TRAIN_TEXT_FILE_H

#include <ring/ring.h>

/** @param most  bytes that such a file has at most; one that has more is no such file.
 *  @param what  it is: "a configuration".
 *  @param[out] text, length  to be free()d whatever the result; not ended by a zero.
 *  @return RING_OK, RING_ERR_SYSTEM, RING_ERR_CONFIG (too long), RING_ERR_MEMORY; all name @p path.
 */
ring_status text_file_read(const char *path, size_t most, const char *what, char **text,
                           size_t *length);

#endif
