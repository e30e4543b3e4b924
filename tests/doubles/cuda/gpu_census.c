/* SPDX-License-Identifier: Apache-2.0
 * The census: counts the calls of the driver by thread and function, between two marks that a test
 * sets. The address to which a call returns tells libring's calls from the program's. */
#include "gpu.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { MOST_ROWS = 4096 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static _Atomic bool counting;
static fake_cuda_census_row rows[MOST_ROWS];
static int row_count;

bool call_is_of_library(const void *caller)
{
    Dl_info info;
    if (dladdr(caller, &info) == 0 || info.dli_fname == NULL)
        return false;
    const char *slash = strrchr(info.dli_fname, '/');
    const char *name = slash != NULL ? slash + 1 : info.dli_fname;
    return strncmp(name, "libring", 7) == 0 || strncmp(name, "libnccl", 7) == 0;
}

/* @return the first row of the thread, the function and the caller's kind, or a new one. */
static fake_cuda_census_row *row_of(const char *function, bool of_library)
{
    const int thread = gettid();
    for (int i = 0; i < row_count; i++)
        if (rows[i].function == function && rows[i].thread == thread &&
            rows[i].of_library == of_library)
            return &rows[i];
    if (row_count == MOST_ROWS)
        misuse("a census of too many threads");
    rows[row_count] = (fake_cuda_census_row){.function = function,
                                             .thread = thread,
                                             .of_library = of_library};
    return &rows[row_count++];
}

void census_count(const char *function, const void *caller)
{
    if (!counting)
        return;
    const bool of_library = call_is_of_library(caller);
    pthread_mutex_lock(&lock);
    row_of(function, of_library)->calls++;
    pthread_mutex_unlock(&lock);
}

void fake_cuda_census_begin(void)
{
    pthread_mutex_lock(&lock);
    row_count = 0;
    pthread_mutex_unlock(&lock);
    counting = true;
}

int fake_cuda_census_end(fake_cuda_census_row *out, int most)
{
    counting = false;
    pthread_mutex_lock(&lock);
    const int count = row_count < most ? row_count : most;
    memcpy(out, rows, (size_t)count * sizeof *rows);
    pthread_mutex_unlock(&lock);
    return count;
}

static bool begins(const char *text, const char *with)
{
    return strncmp(text, with, strlen(with)) == 0;
}

/* cuMemcpy() and its like without a stream wait, and so count twice. */
static void add(fake_cuda_census *sums, const char *name, uint64_t calls)
{
    const bool copies = begins(name, "cuMemcpy") || begins(name, "cuMemset");
    const bool waits = copies && strstr(name, "Async") == NULL;
    const bool words = begins(name, "cuStreamWriteValue") || begins(name, "cuStreamWaitValue");
    sums->calls += calls;
    sums->launches += begins(name, "cuLaunchKernel") || begins(name, "cuLaunchCoop") ? calls : 0;
    sums->functions += begins(name, "cuLaunchHostFunc") ? calls : 0;
    sums->synchronisations += waits || strstr(name, "Synchronize") != NULL ? calls : 0;
    sums->copies += copies ? calls : 0;
    sums->words += words ? calls : 0;
    sums->allocations += begins(name, "cuMemAlloc") || begins(name, "cuMemFree") ||
                                 begins(name, "cuMemHostAlloc") || begins(name, "cuMemHostReg") ||
                                 begins(name, "cuMemHostUnreg")
                             ? calls
                             : 0;
}

fake_cuda_census fake_cuda_census_sum(const fake_cuda_census_row *of, int count, bool of_library,
                                      int thread)
{
    fake_cuda_census sums = {0};
    for (int i = 0; i < count; i++)
        if (of[i].of_library == of_library && (thread == 0 || of[i].thread == thread))
            add(&sums, of[i].function, of[i].calls);
    return sums;
}
