/* SPDX-License-Identifier: Apache-2.0
 *
 * output: files of results, and checks that all bytes were written. A full disk shows only when a
 * stream is flushed or closed; lost results must not look like success.
 *
 * Files are new ones of mode 0600: made under a random name beside their place and renamed, so a
 * symbolic link there is replaced and never followed. Names of open descriptors (/dev/stdout,
 * /dev/fd/N, /proc/…), devices and FIFOs of this user are written to directly.
 */
#ifndef RING_OUTPUT_H
#define RING_OUTPUT_H

#include <stdbool.h>
#include <stdio.h>

enum { OUTPUT_PATH_MAX = 4096 };

/** A file that appears at its place when it is complete. All zero: none. */
typedef struct output_file {
    FILE *stream;
    char path[OUTPUT_PATH_MAX], partial[OUTPUT_PATH_MAX];
} output_file;

/** @return false, and errno, if there cannot be one. End with output_finish() or
 *  output_discard(). */
bool output_begin(output_file *file, const char *path);
/** Syncs it and puts it in place. @return false, and errno, if it cannot be written: nothing is
 * left of it then. */
bool output_finish(output_file *file);
/** Removes the file, unless it is in place. */
void output_discard(output_file *file);

/** For files that are read while they are written: an empty file, in place at once.
 *  @return a descriptor, or -1 and errno. */
int output_create(const char *path);
/** The same as a stream; NULL and errno. */
FILE *output_open(const char *path);
/** As output_open(), but nothing is lost: NULL and EEXIST where @p path has content already or is
 *  a link. @param add  write behind the content of a regular file of this user instead. */
FILE *output_open_new(const char *path, bool add);

/** From now on the end of the program, --help included, checks standard output: a failure is one
 *  line on standard error and the exit status @p status. */
void output_check_at_exit(int status);

/** Closes @p file, called @p name in messages; NULL is fine.
 *  @return false, after one line on standard error, if anything written to it is lost. */
bool output_close(FILE *file, const char *name);

#endif
