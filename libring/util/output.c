/* SPDX-License-Identifier: Apache-2.0
 * A stream keeps in mind that an earlier write failed, but not why. */
#include "output.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

static int status_of_loss;

static bool arrived(bool all, const char *name)
{
    if (!all)
        fprintf(stderr, "%s: %s: not all of it could be written; is the disk full?\n",
                program_invocation_short_name, name);
    return all;
}

static void check(void)
{
    const bool flushed = fflush(stdout) == 0;
    if (!arrived(flushed && !ferror(stdout), "standard output"))
        _exit(status_of_loss);
}

void output_check_at_exit(int status)
{
    status_of_loss = status;
    atexit(check);
}

bool output_close(FILE *file, const char *name)
{
    if (file == NULL)
        return true;
    const bool sound = !ferror(file);
    return arrived(fclose(file) == 0 && sound, name);
}
