/* SPDX-License-Identifier: Apache-2.0
 * Calls of the driver that libring must not make while it communicates (FAKE_CUDA_R1): they may
 * wait for streams, which may be stopped, or for a lock that a blocked call of the program holds.
 * They are permitted where a test has marked that libring creates or destroys something. */
#include "gpu.h"

#include <execinfo.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { MOST_FRAMES = 48 };

static _Thread_local int permissions;
static _Thread_local bool is_tests; /* a thread of the test, which marks its own calls */
static _Atomic int permissions_in_all;

void fake_cuda_permit(bool permitted)
{
    is_tests = true;
    permissions += permitted ? 1 : -1;
    permissions_in_all += permitted ? 1 : -1;
}

/* Threads of libring create and destroy for a thread of the test, which waits for them. */
static bool is_permitted(void)
{
    return is_tests ? permissions > 0 : permissions_in_all > 0;
}

static bool is_refused(const char *function)
{
    static const char *const beginnings[] = {
        "cuMemcpy",       "cuMemset",      "cuMemAlloc",     "cuMemFree",
        "cuMemHostAlloc", "cuMemHostReg",  "cuMemHostUnreg", "cuLaunchHostFunc",
        "cuModule",       "cuIpc",         "cuGraph",        "cuCtxEnablePeerAccess",
        "cuStreamCreate", "cuStreamDestr", "cuEventCreate",  "cuEventDestroy",
        "cuStreamSync",   "cuEventSync",   "cuCtxSync"};
    for (size_t i = 0; i < sizeof beginnings / sizeof *beginnings; i++)
        if (strncmp(function, beginnings[i], strlen(beginnings[i])) == 0)
            return true;
    return false;
}

static void refuse(const char *function, const char *why)
{
    void *frames[MOST_FRAMES];
    fprintf(stderr, "fake_cuda: libring calls %s()%s while it communicates (FAKE_CUDA_R1)\n",
            function, why);
    backtrace_symbols_fd(frames, backtrace(frames, MOST_FRAMES), STDERR_FILENO);
    if (gpu_is.rule == RULE_ENDS)
        misuse("this call may wait for a stream that is stopped");
}

static bool applies(const void *caller)
{
    return gpu_is.rule != RULE_NONE && !is_permitted() && call_is_of_library(caller);
}

void rule_check(const char *function, const void *caller)
{
    if (is_refused(function) && applies(caller))
        refuse(function, "");
}

void rule_check_launch(bool is_loaded, const void *caller)
{
    if (!is_loaded && applies(caller))
        refuse("cuLaunchKernel", " of a function that is not loaded");
}
