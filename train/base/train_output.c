/* SPDX-License-Identifier: Apache-2.0
 * Buffered text fails late: only a flush at the very end tells. */
#include "train_output.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static void check(void)
{
    if (fflush(stdout) == 0 && !ferror(stdout))
        return;
    fprintf(stderr, "%s: standard output could not be written completely; is the disk full?\n",
            program_invocation_short_name);
    _exit(EXIT_FAILURE);
}

void output_check_at_exit(void)
{
    atexit(check);
}
