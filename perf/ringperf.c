/* SPDX-License-Identifier: Apache-2.0
 *
 * ringperf: measures collectives and checks every value; `ringperf plan` draws what a
 * collective does and proves it; `ringperf compare` sets libring beside other libraries; `ringperf
 * overlap` measures what is hidden behind computation. Exit
 * status: 0 good, 1 wrong values or too slow, 2 usage, 3 anything else.
 */
#include "bench.h"
#include "compare_command.h"
#include "output.h"
#include "overlap_command.h"
#include "plan_command.h"
#include "start.h"

#include <string.h>

static int measure_rank(const void *options, ring_comm *comm)
{
    return bench_run(options, comm);
}

int main(int argc, char **argv)
{
    perf_options options;
    output_check_at_exit(PERF_EXIT_ERROR);
    if (argc > 1 && strcmp(argv[1], "plan") == 0)
        return plan_command(argc - 1, argv + 1);
    if (argc > 1 && strcmp(argv[1], "compare") == 0)
        return compare_command(argc - 1, argv + 1);
    if (argc > 1 && strcmp(argv[1], "overlap") == 0)
        return overlap_command(argc - 1, argv + 1);
    perf_options_parse(argc, argv, &options);
    return launch_ranks(options.threads, measure_rank, &options);
}
