/* SPDX-License-Identifier: Apache-2.0
 * Ranges that profilers show, by a double of NVTX's library.
 * Usage: test_coll_nvtx nvToolsExt|nvtx3interop|absent, the only name of the library here */
#include "harness.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int make_calls(int rank, int ranks, harness_board *board, void *arg)
{
    ring_comm *comm;
    ring_prepared *prepared;
    ring_call call = RING_CALL_INIT;
    int32_t x = 1, y = 1;
    EXPECT_OK(harness_join(rank, ranks, board, &comm));
    EXPECT_OK(ring_all_reduce(&x, &x, 1, RING_INT32, RING_SUM, comm, NULL));
    call.prepared = &prepared;
    EXPECT_OK(ring_broadcast(&y, &y, 1, RING_INT32, 0, comm, &call));
    EXPECT_OK(ring_prepared_start(prepared, NULL));
    EXPECT_OK(ring_group_start());
    EXPECT_OK(ring_all_reduce(&x, &x, 1, RING_INT32, RING_SUM, comm, NULL));
    EXPECT_OK(ring_group_end());
    EXPECT(x == ranks * ranks, "the sum is %d", x);
    ring_prepared_destroy(prepared);
    ring_comm_destroy(comm);
    return 0;
}

static int compare(int rank, int ranks, harness_board *board, void *arg)
{
    char file[64];
    const char *(*ranges)(void) = NULL;
    (void)snprintf(file, sizeof file, "lib%s.so.1", (const char *)arg);
    void *library = dlopen(file, RTLD_NOW | RTLD_LOCAL);
    EXPECT(library != NULL, "%s", dlerror());
    *(void **)&ranges = dlsym(library, "fake_nvtx_ranges");
    EXPECT(ranges != NULL, "%s", dlerror());
    const int bad = make_calls(rank, ranks, board, NULL);
    const char *want = "ring_all_reduce()ring_broadcast()ring_prepared_start()ring_all_reduce()"
                       "ring_group_end()";
    EXPECT(strcmp(ranges(), want) == 0, "ranges: %s", ranges());
    return bad;
}

int main(int argc, char **argv)
{
    if (argc != 2)
        return 2;
    setenv("RING_TRANSPORT", "loop", 1);
    setenv("RING_NVTX", "1", 1);
    const bool is_there = strcmp(argv[1], "absent") != 0;
    return harness_run(HARNESS_THREADS, 2, is_there ? compare : make_calls, argv[1], NULL) != 0;
}
