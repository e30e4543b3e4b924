/* SPDX-License-Identifier: Apache-2.0
 *
 * sink_file: writes events to a file during training. A failed write does not stop the training.
 * The cause of the first failure is kept, and is reported when the file is closed.
 */
#ifndef TRAIN_SINK_FILE_H
#define TRAIN_SINK_FILE_H

#include <ring/ring.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "output.h"

typedef struct sink_file {
    const char *what; /* the option, for messages, such as "--metrics"; borrowed */
    char path[OUTPUT_PATH_MAX];
    FILE *stream;
    int error; /* errno of the first failed write, or 0 */
} sink_file;

/** Opens a file whose lines are flushed when they end. If the file has content already, appends to
 * it if @p add is true, and fails otherwise. */
ring_status sink_file_open(sink_file *file, const char *what, const char *path, bool add);
/** Closes the file, if it is open. @return RING_ERR_SYSTEM if a write failed. */
ring_status sink_file_close(sink_file *file);

void sink_file_print(sink_file *file, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/** Writes @p text as a JSON string. */
void sink_file_quote(sink_file *file, const char *text);
/** Writes bytes and flushes them. */
void sink_file_write(sink_file *file, const void *data, size_t bytes);

/** Creates the folder output_path/job_name and the folders above it, as DeepSpeed's monitors do.
 *  @param[out] folder  path of the folder */
ring_status sink_folder_create(const char *what, const char *output_path, const char *job_name,
                               char folder[OUTPUT_PATH_MAX]);

#endif
