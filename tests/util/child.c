/* SPDX-License-Identifier: Apache-2.0
 * A forked child with both outputs in a pipe. */
#include "util/child.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

char child_said[8192];

int child_run(void (*body)(const void *arg), const void *arg)
{
    int ends[2], status;
    if (pipe(ends) != 0)
        abort();
    const pid_t child = fork();
    if (child == 0) {
        dup2(ends[1], STDOUT_FILENO);
        dup2(ends[1], STDERR_FILENO);
        body(arg);
        _exit(CHILD_RETURNED & 0xff);
    }
    close(ends[1]);
    FILE *from = fdopen(ends[0], "r");
    child_said[fread(child_said, 1, sizeof child_said - 1, from)] = '\0';
    fclose(from);
    waitpid(child, &status, 0);
    return (signed char)WEXITSTATUS(status);
}
