/* SPDX-License-Identifier: Apache-2.0
 *
 * sink_file: a file to which events are written during training. A failed write does not stop the
 * training; the first cause is kept, and reported when the file is closed.
 */
#ifndef TRAIN_SINK_FILE_H
#define TRAIN_SINK_FILE_H

#include <ring/ring.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "output.h"

typedef struct sink_file {
    const char *what; /* for messages: "--metrics"; borrowed */
    char path[OUTPUT_PATH_MAX];
    FILE *stream;
    int error; /* errno of the first failed write, or 0 */
} sink_file;

/** Refuses a file that has content already, unless @p add is true: then it appends. Lines are
 *  flushed as they end. */
ring_status sink_file_open(sink_file *file, const char *what, const char *path, bool add);
/** Does nothing if the file is not open. @return RING_ERR_SYSTEM if a write failed. */
ring_status sink_file_close(sink_file *file);

void sink_file_print(sink_file *file, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/** Writes a JSON string. */
void sink_file_quote(sink_file *file, const char *text);
/** Writes bytes and flushes them. */
void sink_file_write(sink_file *file, const void *data, size_t bytes);

/** Creates output_path/job_name, as DeepSpeed's monitors do, with the folders above it.
 *  @param[out] folder  OUTPUT_PATH_MAX bytes. */
ring_status sink_folder_create(const char *what, const char *output_path, const char *job_name,
                               char folder[OUTPUT_PATH_MAX]);

#endif
