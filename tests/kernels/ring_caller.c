/* SPDX-License-Identifier: Apache-2.0
 * A shared object that the double of NVIDIA's driver takes for libring, for its file name begins
 * like libring's. It calls the driver for tests of the rules that libring obeys. */
#include "ring_caller.h"

/* The results are volatile, so that no call of the driver returns past this object. */

CUresult caller_allocates(const cuda_table *cu, CUdeviceptr *out)
{
    const volatile CUresult result = cu->mem_alloc(out, 64);
    return result;
}

CUresult caller_frees(const cuda_table *cu, CUdeviceptr memory)
{
    const volatile CUresult result = cu->mem_free(memory);
    return result;
}

CUresult caller_launches(const cuda_table *cu, CUfunction function, CUstream stream,
                         void **parameters)
{
    const volatile CUresult result = cu->launch(function, 1, 1, 1, 1, 1, 1, 0, stream, parameters,
                                                NULL);
    return result;
}
