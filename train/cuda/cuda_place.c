/* SPDX-License-Identifier: Apache-2.0
 * Opens a GPU for the trainer, and enqueues copies and kernels on its stream. */
#include "cuda_place.h"

#include <string.h>

#include "cuda_images.h"

/* Passes the text of libring's failure on to the trainer. */
static ring_status tell(ring_status status)
{
    return status == RING_OK ? RING_OK : train_fail(status, "%s", fail_text());
}

void cuda_place_keep(cuda_place *place, ring_status status, const char *what)
{
    if (status != RING_OK)
        train_failure_keep(&place->failure,
                           train_fail(status, "%s on %s: %s", what, place->name, fail_text()));
}

bool cuda_place_enter(cuda_place *place)
{
    if (place->failure.status == RING_OK)
        cuda_place_keep(place,
                        cuda_check(place->api->set_current(place->context),
                                   "entering a GPU's context (cuCtxSetCurrent)"),
                        "a request");
    return place->failure.status == RING_OK;
}

void cuda_place_launch(cuda_place *place, cuda_train_kernel kernel, uint64_t blocks,
                       unsigned threads, void *args, const char *what)
{
    void *parameters[] = {args};
    if (!cuda_place_enter(place))
        return;
    cuda_place_keep(place,
                    cuda_check(place->api->launch(place->kernels[kernel], (unsigned)blocks, 1, 1,
                                                  threads, 1, 1, 0, place->stream, parameters,
                                                  NULL),
                               "launching a kernel (cuLaunchKernel)"),
                    what);
}

/* ---- Memory and copies ----------------------------------------------------------------------- */

static ring_status place_alloc(const nn_place *nn, void **out, size_t bytes, const char *what)
{
    cuda_place *place = cuda_place_of(nn);
    CUdeviceptr at = 0;
    (void)place->api->set_current(place->context);
    const CUresult result = place->api->mem_alloc(&at, bytes > 0 ? bytes : 1);
    *out = NULL;
    if (result == CUDA_ERROR_OUT_OF_MEMORY)
        return train_fail(RING_ERR_MEMORY, "%s has no %zu bytes left for %s", place->name, bytes,
                          what);
    RING_TRY(tell(cuda_check(result, "allocating memory of the GPU (cuMemAlloc)")));
    *out = (void *)(uintptr_t)at;
    place->bytes += bytes;
    return tell(cuda_check(place->api->set_bytes_async(at, 0, bytes > 0 ? bytes : 1, place->stream),
                           "clearing memory of the GPU (cuMemsetD8Async)"));
}

static void place_release(const nn_place *nn, void *memory)
{
    const cuda_place *place = cuda_place_of(nn);
    if (memory == NULL)
        return;
    (void)place->api->set_current(place->context);
    (void)place->api->stream_synchronize(place->stream);
    (void)place->api->mem_free((CUdeviceptr)(uintptr_t)memory);
}

static void place_write(const nn_place *nn, void *to, const void *from, size_t bytes)
{
    cuda_place *place = cuda_place_of(nn);
    if (cuda_place_enter(place) && bytes > 0)
        cuda_place_keep(place,
                        cuda_check(place->api->copy_to_device_async((CUdeviceptr)(uintptr_t)to,
                                                                    from, bytes, place->stream),
                                   "copying to the GPU (cuMemcpyHtoDAsync)"),
                        "copy");
}

static void place_read(const nn_place *nn, void *to, const void *from, size_t bytes)
{
    cuda_place *place = cuda_place_of(nn);
    if (cuda_place_enter(place) && bytes > 0)
        cuda_place_keep(place,
                        cuda_check(place->api->copy_to_host_async(to, (CUdeviceptr)(uintptr_t)from,
                                                                  bytes, place->stream),
                                   "copying to the host (cuMemcpyDtoHAsync)"),
                        "copy");
}

static void place_copy(const nn_place *nn, void *to, const void *from, size_t bytes)
{
    cuda_place *place = cuda_place_of(nn);
    if (cuda_place_enter(place) && bytes > 0)
        cuda_place_keep(place,
                        cuda_check(place->api->copy_async((CUdeviceptr)(uintptr_t)to,
                                                          (CUdeviceptr)(uintptr_t)from, bytes,
                                                          place->stream),
                                   "copying in the GPU (cuMemcpyAsync)"),
                        "copy");
}

static void place_clear(const nn_place *nn, void *at, size_t bytes)
{
    cuda_place *place = cuda_place_of(nn);
    if (cuda_place_enter(place) && bytes > 0)
        cuda_place_keep(place,
                        cuda_check(place->api->set_bytes_async((CUdeviceptr)(uintptr_t)at, 0, bytes,
                                                               place->stream),
                                   "clearing memory of the GPU (cuMemsetD8Async)"),
                        "clear");
}

static void place_add(const nn_place *nn, float *to, const float *from, size_t count)
{
    cuda_map_args args = {.out = to, .a = from, .count = count};
    cuda_place_launch(cuda_place_of(nn), CUDA_map_add, cuda_tiles(count, CAST_GROUP, CUDA_BLOCK),
                      CUDA_BLOCK, &args, "sum of gradients");
}

/* Also after a failure: the memory of copies that are still queued is free only afterwards. */
static ring_status place_settle(const nn_place *nn)
{
    cuda_place *place = cuda_place_of(nn);
    (void)place->api->set_current(place->context);
    cuda_place_keep(place,
                    cuda_check(place->api->stream_synchronize(place->stream),
                               "waiting for the GPU (cuStreamSynchronize)"),
                    "a request");
    return train_failure_tell(&place->failure);
}

static const char *place_maths(void)
{
    return "cuBLASLt";
}

/* ---- Opening --------------------------------------------------------------------------------- */

static ring_status load_kernels(cuda_place *place)
{
    static const char *const images[CUDA_TRAIN_IMAGES] = {"layers", "optimizer", "norm"};
    static const struct {
        const char *image, *name;
    } kernels[] = {
#define ROW(image, name) {#image, #name},
        CUDA_TRAIN_KERNELS(ROW)
#undef ROW
    };
    for (int i = 0; i < CUDA_TRAIN_IMAGES; i++) {
        const void *image = cuda_image(images[i]);
        if (image == NULL)
            return fail(RING_ERR_UNSUPPORTED, "ringtrain was built without GPU kernels, which need "
                                              "nvcc; see RING_CUDA in docs/devices.md");
        RING_TRY(cuda_check(place->api->module_load(&place->modules[i], image),
                            "loading kernels (cuModuleLoadData)"));
        for (int k = 0; k < CUDA_TRAIN_KERNEL_COUNT; k++)
            if (strcmp(kernels[k].image, images[i]) == 0)
                RING_TRY(
                    cuda_check(place->api->module_get_function(&place->kernels[k],
                                                               place->modules[i], kernels[k].name),
                               "finding a kernel (cuModuleGetFunction)"));
    }
    return RING_OK;
}

static ring_status open_device(cuda_place *place, int device, bool tf32)
{
    int count;
    place->api = cuda_driver_load();
    if (place->api == NULL)
        return RING_ERR_UNSUPPORTED;
    RING_TRY(cuda_check(place->api->device_count(&count), "counting GPUs (cuDeviceGetCount)"));
    if (device < 0 || device >= count)
        return fail(RING_ERR_UNSUPPORTED, "there is no GPU %d: this host has %d", device, count);
    RING_TRY(
        cuda_check(place->api->device_get(&place->device, device), "finding a GPU (cuDeviceGet)"));
    RING_TRY(cuda_check(place->api->primary_retain(&place->context, place->device),
                        "opening a GPU (cuDevicePrimaryCtxRetain)"));
    RING_TRY(cuda_check(place->api->get_current(&place->outer),
                        "reading the thread's context (cuCtxGetCurrent)"));
    RING_TRY(cuda_check(place->api->set_current(place->context),
                        "entering a GPU's context (cuCtxSetCurrent)"));
    RING_TRY(cuda_check(place->api->stream_create(&place->stream, CU_STREAM_NON_BLOCKING, 0),
                        "making a stream (cuStreamCreateWithPriority)"));
    RING_TRY(load_kernels(place));
    return cuda_products_open(&place->products, place->api, place->stream, tf32);
}

ring_status cuda_place_open(cuda_place *place, int device, bool tf32)
{
    static const nn_place table = {
        .maths = place_maths,
        .alloc = place_alloc,
        .release = place_release,
        .functions = cuda_ops_functions,
        .scratch_bytes = cuda_ops_scratch_bytes,
        .write = place_write,
        .read = place_read,
        .copy = place_copy,
        .clear = place_clear,
        .add = place_add,
        .loss = cuda_loss,
        .sgd = cuda_sgd,
        .adam = cuda_adam,
        .lion = cuda_lion,
        .adagrad = cuda_adagrad,
        .sum_squares = cuda_sum_squares,
        .settle = place_settle,
    };
    memset(place, 0, sizeof *place);
    (void)text_format(place->name, sizeof place->name, "cuda:%d", device);
    place->place = table;
    place->place.name = place->name;
    place->bytes = CUDA_WORKSPACE_BYTES;
    const ring_status status = tell(open_device(place, device, tf32));
    if (place->context != NULL)
        (void)place->api->set_current(place->outer);
    return status;
}

void cuda_place_close(cuda_place *place)
{
    if (place->context == NULL)
        return;
    (void)place->api->set_current(place->context);
    if (place->stream != NULL)
        (void)place->api->stream_synchronize(place->stream);
    cuda_products_close(&place->products);
    for (int i = 0; i < CUDA_TRAIN_IMAGES; i++)
        if (place->modules[i] != NULL)
            (void)place->api->module_unload(place->modules[i]);
    if (place->stream != NULL)
        (void)place->api->stream_destroy(place->stream);
    (void)place->api->set_current(place->outer);
    (void)place->api->primary_release(place->device);
    memset(place, 0, sizeof *place);
}
