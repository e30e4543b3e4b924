/* SPDX-License-Identifier: Apache-2.0
 *
 * output: writes files of results and checks that all bytes were written. A full disk is noticed
 * only when a stream is flushed or closed; lost results must not look like success.
 *
 * Files are always new and have mode 0600: they are created under a random name in the same folder
 * and then renamed, so a symbolic link is replaced and never followed. Names of open descriptors
 * (/dev/stdout, /dev/fd/N, /proc/…), devices and FIFOs of this user are written to directly.
 */
#ifndef RING_OUTPUT_H
#define RING_OUTPUT_H

#include <stdbool.h>
#include <stdio.h>

enum { OUTPUT_PATH_MAX = 4096 };

/** A file that appears at its path when it is complete. All zero: no file. */
typedef struct output_file {
    FILE *stream;
    char path[OUTPUT_PATH_MAX], partial[OUTPUT_PATH_MAX];
} output_file;

/** Begins a file; end it with output_finish() or output_discard(). @return false, and errno, if it
 *  cannot be created. */
bool output_begin(output_file *file, const char *path);
/** Syncs the file and renames it to its path. @return false, and errno, if it cannot be written;
 *  the temporary file is then removed. */
bool output_finish(output_file *file);
/** Removes the file; does nothing after output_finish(). */
void output_discard(output_file *file);

/** Creates an empty file at its path at once, for files that are read while they are written.
 *  @return a descriptor, or -1 and errno. */
int output_create(const char *path);
/** Like output_create(), but returns a stream, or NULL and errno. */
FILE *output_open(const char *path);
/** Like output_open(), but never replaces content: returns NULL and EEXIST if @p path is a file
 *  with content or a link. @param add  true: append to a regular file of this user instead. */
FILE *output_open_new(const char *path, bool add);

/** Checks at the end of the program, also after --help, that all of standard output was written. If
 *  it was not, the program prints one line on standard error and exits with @p status. */
void output_check_at_exit(int status);

/** Closes @p file, which messages call @p name; NULL is allowed.
 *  @return false, after one line on standard error, if not all bytes were written. */
bool output_close(FILE *file, const char *name);

#endif
