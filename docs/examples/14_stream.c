/* SPDX-License-Identifier: Apache-2.0
 * Makes an all_reduce in memory of a GPU, ordered in a CUDA stream. The program enqueues everything
 * at once and waits only at the end. Ranks of a host share its GPUs.
 *
 *     ringrun -n 2 stream
 */
#include <cuda.h>
#include <ring/ring.h>

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

enum { COUNT = 1 << 20 };

static void check(int good, const char *why)
{
    if (good)
        return;
    fprintf(stderr, "stream: %s\n", why);
    exit(1);
}

/* Makes a GPU the current device of the thread, as cudaSetDevice() does. */
static void use_gpu(void)
{
    const char *local = getenv("RING_LOCAL_RANK");
    int count = 0;
    CUdevice device;
    CUcontext context;
    check(cuInit(0) == CUDA_SUCCESS && cuDeviceGetCount(&count) == CUDA_SUCCESS && count > 0,
          "there is no GPU");
    check(cuDeviceGet(&device, (local != NULL ? atoi(local) : 0) % count) == CUDA_SUCCESS &&
              cuDevicePrimaryCtxRetain(&context, device) == CUDA_SUCCESS &&
              cuCtxSetCurrent(context) == CUDA_SUCCESS,
          "the GPU cannot be used");
}

int main(void)
{
    ring_comm *comm;
    CUdeviceptr memory;
    CUstream stream;
    uint32_t sum = 0;
    use_gpu(); /* first: ring_comm_init_env() looks for the thread's GPU */
    if (ring_comm_init_env(&comm) != RING_OK)
        return 1; /* the reason was printed */
    check(cuMemAlloc(&memory, COUNT * sizeof sum) == CUDA_SUCCESS &&
              cuStreamCreateWithPriority(&stream, CU_STREAM_NON_BLOCKING, 0) == CUDA_SUCCESS,
          "the GPU has no memory");
    const uint32_t mine = (uint32_t)ring_comm_rank(comm) + 1;
    void *x = (void *)(uintptr_t)memory;

    ring_call call = RING_CALL_INIT;
    call.stream = stream;
    check(cuMemsetD32Async(memory, mine, COUNT, stream) == CUDA_SUCCESS, "cuMemsetD32Async");
    check(ring_all_reduce(x, x, COUNT, RING_UINT32, RING_SUM, comm, &call) == RING_OK,
          ring_last_error(NULL));
    check(cuMemcpyDtoHAsync(&sum, memory, sizeof sum, stream) == CUDA_SUCCESS, "cuMemcpyDtoHAsync");
    check(cuStreamSynchronize(stream) == CUDA_SUCCESS, "cuStreamSynchronize");

    if (ring_comm_rank(comm) == 0)
        printf("%d ranks add to %u\n", ring_comm_size(comm), (unsigned)sum);
    cuMemFree(memory);
    cuStreamDestroy(stream);
    ring_comm_destroy(comm);
    return 0;
}
