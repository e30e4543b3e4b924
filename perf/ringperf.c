/* SPDX-License-Identifier: Apache-2.0
 *
 * ringperf: measures collectives and checks every value; `ringperf plan` draws the steps of a
 * collective and proves them; `ringperf compare` compares libring with other libraries; `ringperf
 * overlap` measures how well calls overlap with computation. Exit status: 0 good, 1 wrong values or
 * too slow, 2 usage, 3 anything else.
 */
#include "bench.h"
#include "compare_command.h"
#include "output.h"
#include "overlap_command.h"
#include "perf_gpu.h"
#include "plan_command.h"
#include "start.h"

#include <stdio.h>
#include <string.h>

static int measure_rank(const void *options, ring_comm *comm)
{
    return bench_run(options, comm);
}

/* ---- Ranks on GPUs ---- */

#ifdef RING_HAVE_CUDA
#define HAS_KERNELS true
#else
#define HAS_KERNELS false
#endif

static int refuse_gpu(const char *reason, const char *advice)
{
    fprintf(stderr, "ringperf: --device cuda: %s%s\n", reason, advice);
    return PERF_EXIT_ERROR;
}

/* Local rank r uses GPU r modulo their number. */
static const char *enter_gpu(const void *options, int local)
{
    const perf_options *o = options;
    const int count = perf_gpu_count();
    const int ordinal = o->gpu != PERF_GPUS_IN_TURN ? o->gpu : local % (count > 0 ? count : 1);
    return perf_gpu_enter(ordinal) == RING_OK ? NULL : perf_gpu_error();
}

static int launch_on_gpus(const perf_options *o)
{
    char reason[80];
    const int count = perf_gpu_count();
    if (count == 0)
        return refuse_gpu(perf_gpu_error(), "");
    snprintf(reason, sizeof reason, "there is no GPU %d; GPUs are numbered 0 to %d", o->gpu,
             count - 1);
    if (o->gpu >= count)
        return refuse_gpu(reason, ", and 'ringinfo' lists them");
    if (!HAS_KERNELS)
        return refuse_gpu("this libring was built without GPU kernels",
                          "; build it with nvcc 12.8 or newer, RING_CUDA=ON");
    return launch_ranks(o->threads * o->ngpus, enter_gpu, measure_rank, o);
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
    return options.gpu != PERF_NO_GPU ? launch_on_gpus(&options)
                                      : launch_ranks(options.threads, NULL, measure_rank, &options);
}
