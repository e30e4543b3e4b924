/* SPDX-License-Identifier: Apache-2.0
 *
 * ringperf: measures collectives and checks every value; `ringperf plan` draws what a
 * collective does and proves it. Exit status: 0 good, 1 wrong values or too slow, 2 usage,
 * 3 anything else.
 */
#include "bench.h"
#include "perf_output.h"
#include "plan_command.h"
#include "start.h"

#include <stdio.h>
#include <string.h>

static int run(int argc, char **argv)
{
    perf_options options;
    char error[512];
    if (argc > 1 && strcmp(argv[1], "plan") == 0)
        return plan_command(argc - 1, argv + 1);
    switch (perf_options_parse(argc, argv, &options, error, sizeof error)) {
    case PERF_HELP:
        perf_options_help(stdout);
        return PERF_EXIT_GOOD;
    case PERF_VERSION:
        printf("ringperf %d.%d.%d\n", RING_VERSION_MAJOR, RING_VERSION_MINOR, RING_VERSION_PATCH);
        return PERF_EXIT_GOOD;
    case PERF_WRONG:
        fprintf(stderr, "ringperf: %s\n", error);
        return PERF_EXIT_USAGE;
    case PERF_PARSED:
        break;
    }
    return launch_run(&options);
}

int main(int argc, char **argv)
{
    const int status = run(argc, argv);
    return output_flush(stdout, "ringperf", "standard output") ? status : PERF_EXIT_ERROR;
}
