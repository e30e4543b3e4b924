/* SPDX-License-Identifier: Apache-2.0
 *
 * gloo_allreduce: measures Gloo's all-reduce as mpi_allreduce.c measures MPI's. Gloo has no
 * launcher, so the program forks the ranks. They find each other by files in a temporary folder,
 * and communicate over TCP on the loopback interface. compare.py builds the program with Debian's
 * libgloo-dev.
 *
 * usage: gloo_allreduce RANKS BYTES ITERS WARMUP    (rank 0 prints one JSON object)
 */
#include "stopwatch.h"

#include <gloo/allreduce.h>
#include <gloo/barrier.h>
#include <gloo/math.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/file_store.h>
#include <gloo/transport/tcp/device.h>

#include <csignal>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

namespace
{

struct measurement {
    int ranks;
    size_t count;
    int iters, warmup;
};

/* @return true if this is the first logical CPU of its physical core, or if that is unknown. */
bool begins_core(int cpu)
{
    int first = cpu;
    std::ifstream list("/sys/devices/system/cpu/cpu" + std::to_string(cpu) +
                       "/topology/thread_siblings_list");
    list >> first;
    return !list || first == cpu;
}

/* Binds the process to the rank's core, if there is a core for each rank. */
void bind_to_core(int rank, int ranks)
{
    cpu_set_t all, own;
    int cores = 0;
    CPU_ZERO(&own);
    if (sched_getaffinity(0, sizeof all, &all) != 0)
        return;
    for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
        if (CPU_ISSET(cpu, &all) && begins_core(cpu) && cores++ == rank)
            CPU_SET(cpu, &own);
    if (cores >= ranks)
        sched_setaffinity(0, sizeof own, &own);
}

/* Makes the device before it binds the rank, so that the device's thread, which moves the bytes,
 * may run on any core. */
std::shared_ptr<gloo::Context> join(int rank, int ranks, const std::string &folder)
{
    gloo::transport::tcp::attr loopback;
    loopback.iface = "lo";
    auto device = gloo::transport::tcp::CreateDevice(loopback);
    bind_to_core(rank, ranks);
    auto context = std::make_shared<gloo::rendezvous::Context>(rank, ranks);
    gloo::rendezvous::FileStore store(folder);
    context->connectFullMesh(store, device);
    return context;
}

template <typename T, typename Combine>
void all_reduce(const std::shared_ptr<gloo::Context> &context, T *data, size_t count,
                Combine combine)
{
    gloo::AllreduceOptions options(context);
    options.setOutput(data, count);
    options.setReduceFunction(combine);
    gloo::allreduce(options);
}

void sum(void *out, const void *a, const void *b, size_t count)
{
    gloo::sum<float>(out, a, b, count);
}

void most(void *out, const void *a, const void *b, size_t count)
{
    gloo::max<double>(out, a, b, count);
}

double timed_call(const std::shared_ptr<gloo::Context> &context, std::vector<float> &buffer,
                  unsigned seed, bool gate)
{
    stopwatch_rewrite(buffer.data(), buffer.size(), seed);
    gloo::BarrierOptions barrier(context);
    gloo::barrier(barrier);
    if (gate)
        stopwatch_gate();
    const double start = stopwatch_us();
    all_reduce(context, buffer.data(), buffer.size(), sum);
    return stopwatch_us() - start;
}

/* @return how many elements are not the sum of the ranks' inputs. */
size_t count_wrong(const std::vector<float> &buffer, unsigned seed, int ranks)
{
    size_t wrong = 0;
    for (size_t i = 0; i < buffer.size(); i++) {
        float expected = 0;
        for (int rank = 0; rank < ranks; rank++)
            expected += static_cast<float>((i + seed + static_cast<unsigned>(rank)) & 63);
        wrong += buffer[i] != expected;
    }
    return wrong;
}

/* Measures on one rank. @return its exit status: 1 if values were wrong. */
int run_rank(int rank, const measurement &spec, const std::string &folder)
{
    const auto context = join(rank, spec.ranks, folder);
    const bool gate = stopwatch_gate_useful(1, spec.ranks);
    std::vector<float> buffer(spec.count);
    std::vector<double> times(static_cast<size_t>(spec.iters) +
                              1); /* the last entry has the number of wrong values */
    for (int i = -spec.warmup; i < spec.iters; i++) {
        const double time = timed_call(context, buffer,
                                       static_cast<unsigned>(i + spec.warmup + rank), gate);
        if (i >= 0)
            times[static_cast<size_t>(i)] = time;
    }
    const unsigned seed = static_cast<unsigned>(spec.iters - 1 + spec.warmup);
    times.back() = static_cast<double>(count_wrong(buffer, seed, spec.ranks));
    all_reduce(context, times.data(), times.size(), most);
    if (rank == 0)
        std::printf("{\"bytes\": %zu, \"ranks\": %d, \"time_us\": %.9g, \"wrong\": %.0f}\n",
                    spec.count * 4, spec.ranks, stopwatch_median(times.data(), times.size() - 1),
                    times.back());
    std::fflush(stdout);
    return times.back() > 0;
}

int run_all(const measurement &spec, const std::string &folder)
{
    int failed = 0, status;
    for (int rank = 0; rank < spec.ranks; rank++) {
        const pid_t child = fork();
        failed |= child < 0;
        if (child != 0)
            continue;
        prctl(PR_SET_PDEATHSIG, SIGKILL); /* if the parent is killed, the ranks end, too */
        try {
            _exit(run_rank(rank, spec, folder));
        } catch (const std::exception &error) {
            std::fprintf(stderr, "error: rank %d: %s\n", rank, error.what());
            _exit(1);
        }
    }
    while (wait(&status) > 0)
        failed |= status != 0;
    return failed;
}

} // namespace

int main(int argc, char **argv)
{
    char folder[] = "/tmp/gloo_allreduce.XXXXXX";
    const measurement spec = {argc == 5 ? std::atoi(argv[1]) : 0,
                              argc == 5 ? std::strtoull(argv[2], nullptr, 10) / 4 : 0,
                              argc == 5 ? std::atoi(argv[3]) : 0,
                              argc == 5 ? std::atoi(argv[4]) : 0};
    if (spec.ranks < 1 || spec.iters < 1 || mkdtemp(folder) == nullptr) {
        std::fputs("usage: gloo_allreduce RANKS BYTES ITERS WARMUP\n", stderr);
        return 2;
    }
    const int failed = run_all(spec, folder);
    std::filesystem::remove_all(folder);
    return failed;
}
