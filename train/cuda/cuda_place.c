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

/* ---- Memory and copies ----------------------------------------------------------------------- */

/* Also after a failure: the memory of copies that are still queued is free only afterwards. */
static ring_status place_settle(const nn_place *nn)
{
    cuda_place *place = cuda_place_of(nn);
    (void)place->api->set_current(place->context);
    cuda_place_flush(place);
    cuda_place_keep(place,
                    cuda_check(place->api->stream_synchronize(place->lanes[CUDA_TRUNK].stream),
                               "waiting for the GPU (cuStreamSynchronize)"),
                    "a request");
    return train_failure_tell(&place->failure);
}

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
    return tell(
        cuda_check(place->api->set_bytes_async(at, 0, bytes > 0 ? bytes : 1, place->lane->stream),
                   "clearing memory of the GPU (cuMemsetD8Async)"));
}

static void place_release(const nn_place *nn, void *memory)
{
    const cuda_place *place = cuda_place_of(nn);
    if (memory == NULL)
        return;
    (void)place_settle(nn);
    (void)place->api->mem_free((CUdeviceptr)(uintptr_t)memory);
}

static void place_write(const nn_place *nn, void *to, const void *from, size_t bytes)
{
    cuda_place *place = cuda_place_of(nn);
    if (cuda_place_enter(place) && bytes > 0)
        cuda_place_keep(place,
                        cuda_check(place->api->copy_to_device_async((CUdeviceptr)(uintptr_t)to,
                                                                    from, bytes,
                                                                    place->lane->stream),
                                   "copying to the GPU (cuMemcpyHtoDAsync)"),
                        "copy");
}

static void place_read(const nn_place *nn, void *to, const void *from, size_t bytes)
{
    cuda_place *place = cuda_place_of(nn);
    if (cuda_place_enter(place) && bytes > 0)
        cuda_place_keep(place,
                        cuda_check(place->api->copy_to_host_async(to, (CUdeviceptr)(uintptr_t)from,
                                                                  bytes, place->lane->stream),
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
                                                          place->lane->stream),
                                   "copying in the GPU (cuMemcpyAsync)"),
                        "copy");
}

static void place_clear(const nn_place *nn, void *at, size_t bytes)
{
    cuda_place *place = cuda_place_of(nn);
    if (cuda_place_enter(place) && bytes > 0)
        cuda_place_keep(place,
                        cuda_check(place->api->set_bytes_async((CUdeviceptr)(uintptr_t)at, 0, bytes,
                                                               place->lane->stream),
                                   "clearing memory of the GPU (cuMemsetD8Async)"),
                        "clear");
}

static void place_add(const nn_place *nn, float *to, const float *from, size_t count)
{
    cuda_map_args args = {.out = to, .a = from, .count = count};
    cuda_place_launch(cuda_place_of(nn), CUDA_map_add, cuda_tiles(count, CAST_GROUP, CUDA_BLOCK),
                      CUDA_BLOCK, &args, "sum of gradients");
}

static const char *place_maths(void)
{
    return "cuBLASLt";
}

/* ---- Opening --------------------------------------------------------------------------------- */

static ring_status load_kernels(cuda_place *place)
{
    static const char *const images[CUDA_TRAIN_IMAGES] = {"layers", "optimizer", "norm", "updates"};
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

static ring_status open_lanes(cuda_place *place)
{
    static const size_t workspaces[CUDA_LANES] = {[CUDA_TRUNK] = CUDA_WORKSPACE_BYTES,
                                                  [CUDA_PRODUCTS] = CUDA_WORKSPACE_BYTES,
                                                  [CUDA_SUMS] = CUDA_LOSSES_BYTES};
    for (int l = 0; l < CUDA_LANES; l++) {
        cuda_lane *lane = &place->lanes[l];
        RING_TRY(cuda_check(place->api->stream_create(&lane->stream, CU_STREAM_NON_BLOCKING, 0),
                            "making a stream (cuStreamCreateWithPriority)"));
        RING_TRY(cuda_check(place->api->event_create(&lane->event, CU_EVENT_DISABLE_TIMING),
                            "making an event (cuEventCreate)"));
        RING_TRY(cuda_check(place->api->mem_alloc(&lane->workspace, workspaces[l]),
                            "allocating a workspace (cuMemAlloc)"));
        place->bytes += workspaces[l];
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
    RING_TRY(open_lanes(place));
    RING_TRY(load_kernels(place));
    return cuda_products_open(&place->products, tf32);
}

ring_status cuda_place_open(cuda_place *place, int device, bool tf32)
{
    static const nn_place table = {
        .alignment = 32,
        .maths = place_maths,
        .alloc = place_alloc,
        .release = place_release,
        .functions = cuda_ops_functions,
        .scratch_bytes = cuda_ops_scratch_bytes,
        .scratch_beside = cuda_ops_scratch_beside,
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
        .updates = &cuda_place_updates,
        .settle = place_settle,
    };
    memset(place, 0, sizeof *place);
    place->lane = &place->lanes[CUDA_TRUNK];
    (void)text_format(place->name, sizeof place->name, "cuda:%d", device);
    place->place = table;
    place->place.name = place->name;
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
    if (place->lane->stream != NULL)
        (void)place_settle(&place->place);
    cuda_updates_close(place);
    cuda_products_close(&place->products);
    for (int i = 0; i < CUDA_TRAIN_IMAGES; i++)
        if (place->modules[i] != NULL)
            (void)place->api->module_unload(place->modules[i]);
    for (int l = 0; l < CUDA_LANES; l++) {
        const cuda_lane *lane = &place->lanes[l];
        if (lane->stream != NULL)
            (void)place->api->stream_destroy(lane->stream);
        if (lane->event != NULL)
            (void)place->api->event_destroy(lane->event);
        if (lane->workspace != 0)
            (void)place->api->mem_free(lane->workspace);
    }
    (void)place->api->set_current(place->outer);
    (void)place->api->primary_release(place->device);
    memset(place, 0, sizeof *place);
}
