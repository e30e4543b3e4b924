/* SPDX-License-Identifier: Apache-2.0
 * Loads the kernels of an image, and counts how many of their blocks a GPU can run at once. */
#include "cuda_kernels.h"

#include "cuda_images.h"

ring_status cuda_kernels_find_one(CUmodule module, const char *name, CUfunction *out)
{
    const cuda_driver *api = cuda_driver_load();
    int threads;
    RING_TRY(cuda_check(api->module_get_function(out, module, name),
                        "finding a kernel (cuModuleGetFunction)"));
    /* CUDA may load a function lazily at its first launch, which would wait for streams. */
    return api->function_load != NULL
               ? cuda_check(api->function_load(*out), "loading a kernel (cuFuncLoad)")
               : cuda_check(api->function_get_attribute(&threads,
                                                        CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK,
                                                        *out),
                            "loading a kernel (cuFuncGetAttribute)");
}

ring_status cuda_kernels_find(CUmodule module, const char *const names[RING_DTYPE_COUNT],
                              CUfunction of[RING_DTYPE_COUNT])
{
    for (int k = 0; k < RING_DTYPE_COUNT; k++)
        RING_TRY(cuda_kernels_find_one(module, names[k], &of[k]));
    return RING_OK;
}

ring_status cuda_kernels_load(const char *name, const char *const names[RING_DTYPE_COUNT],
                              CUmodule *module, CUfunction of[RING_DTYPE_COUNT])
{
    const void *image = cuda_image(name);
    *module = NULL;
    if (image == NULL)
        return fail(RING_ERR_UNSUPPORTED,
                    "this libring was built without GPU kernels, which need nvcc; see RING_CUDA in "
                    "docs/devices.md");
    RING_TRY(cuda_check(cuda_driver_load()->module_load(module, image),
                        "loading kernels (cuModuleLoadData)"));
    return cuda_kernels_find(*module, names, of);
}

ring_status cuda_kernels_count_blocks(CUdevice device, CUfunction kernel, int threads, int *blocks)
{
    const cuda_driver *api = cuda_driver_load();
    int processors, of_each;
    RING_TRY(cuda_check(api->device_get_attribute(&processors,
                                                  CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, device),
                        "counting multiprocessors (cuDeviceGetAttribute)"));
    RING_TRY(cuda_check(api->occupancy(&of_each, kernel, threads, 0),
                        "counting the blocks that can run at once "
                        "(cuOccupancyMaxActiveBlocksPerMultiprocessor)"));
    *blocks = processors * of_each;
    return RING_OK;
}
