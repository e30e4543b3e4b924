/* SPDX-License-Identifier: Apache-2.0
 *
 * output: a stream keeps in mind that an earlier write failed, but not why.
 */
#include "perf_output.h"

static bool arrived(bool all, const char *program, const char *name)
{
    if (!all)
        fprintf(stderr, "%s: %s: not all of it could be written; is the disk full?\n", program,
                name);
    return all;
}

bool output_flush(FILE *file, const char *program, const char *name)
{
    const bool flushed = fflush(file) == 0;
    return arrived(flushed && !ferror(file), program, name);
}

bool output_close(FILE *file, const char *program, const char *name)
{
    if (!file)
        return true;
    const bool sound = !ferror(file);
    return arrived(fclose(file) == 0 && sound, program, name);
}
