/* SPDX-License-Identifier: Apache-2.0
 * Finds compare.py by RINGPERF_DATA_FROM_BIN, the path from the folder of ringperf to the folder of
 * its data, and executes it. */
#include "compare_command.h"

#include "bench.h"

#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* @param[out] prefix  the parent folder of the folder of ringperf.
 * @return false, with errno set, if compare.py is not found. */
static bool find(char prefix[PATH_MAX], char script[PATH_MAX])
{
    char self[PATH_MAX];
    const ssize_t length = readlink("/proc/self/exe", self, sizeof self - 1);
    if (length < 0)
        return false;
    self[length] = '\0';
    *strrchr(self, '/') = '\0';
    const int room = PATH_MAX;
    const bool fits = snprintf(prefix, room, "%s/..", self) < room &&
                      snprintf(script, room, "%s/" RINGPERF_DATA_FROM_BIN "/compare/compare.py",
                               self) < room;
    errno = ENAMETOOLONG;
    return fits && access(script, R_OK) == 0;
}

int compare_command(int argc, char **argv)
{
    char prefix[PATH_MAX], script[PATH_MAX] = "compare.py";
    const size_t words = (size_t)argc + 4;
    char **command = calloc(words, sizeof *command);
    if (command == NULL || !find(prefix, script)) {
        fprintf(stderr, "ringperf compare: %s: %s; install all files of libring\n", script,
                strerror(errno));
        free(command);
        return PERF_EXIT_ERROR;
    }
    memcpy(command, (char *[]){"python3", script, "--build", prefix}, 4 * sizeof *command);
    memcpy(command + 4, argv + 1, (size_t)(argc - 1) * sizeof *command);
    execvp(command[0], command);
    fprintf(stderr, "ringperf compare: python3: %s; install Python 3.9 or later\n",
            strerror(errno));
    free(command);
    return PERF_EXIT_ERROR;
}
