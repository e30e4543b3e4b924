/* SPDX-License-Identifier: Apache-2.0
 * Opens and closes GPUs, finds the owner of memory, and reports the errors of a GPU. */
#include "cuda_device.h"

#include "cuda_folds.h"
#include "cuda_kernels.h"
#include "cuda_programs.h"
#include "cuda_stops.h"
#include "kernel_args.h"

#include <stdlib.h>

/* ---- Kernels ------------------------------------------------------------------------------ */

static ring_status load_folds(cuda_device *c)
{
    static const char *const names[] = {
#define ROW(type) "fold_" #type,
        CUDA_FOLD_TYPES(ROW)
#undef ROW
    };
    static const char *const few[] = {
#define ROW(type) "fold_few_" #type,
        CUDA_FOLD_TYPES(ROW)
#undef ROW
    };
    RING_TRY(cuda_kernels_load("fold", names, &c->module, c->folds));
    return cuda_kernels_find(c->module, few, c->few);
}

/* ---- The owner of memory ------------------------------------------------------------------- */

/* Describes the allocation, or the mapped piece, that contains an address. Host memory that is
 * registered with CUDA still belongs to the host. */
static ring_status find_piece(const cuda_device *c, CUdeviceptr at, accelerator_allocation *out)
{
    unsigned type = 0, managed = 0;
    int ordinal = -1;
    unsigned long long id = 0;
    CUdeviceptr base = 0;
    CUcontext context = NULL;
    size_t whole = 0;
    CUpointer_attribute asked[] = {CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
                                   CU_POINTER_ATTRIBUTE_IS_MANAGED,
                                   CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL,
                                   CU_POINTER_ATTRIBUTE_BUFFER_ID,
                                   CU_POINTER_ATTRIBUTE_RANGE_START_ADDR,
                                   CU_POINTER_ATTRIBUTE_RANGE_SIZE,
                                   CU_POINTER_ATTRIBUTE_CONTEXT};
    void *answers[] = {&type, &managed, &ordinal, &id, &base, &whole, &context};
    const CUresult result = cuda_driver_load()->pointer_get_attributes(sizeof asked / sizeof *asked,
                                                                       asked, answers, at);
    if (result != CUDA_ERROR_INVALID_VALUE) /* returned for memory that CUDA does not know */
        RING_TRY(cuda_check(result, "finding the owner of memory (cuPointerGetAttributes)"));
    const bool mine = ordinal == c->device && (type == CU_MEMORYTYPE_DEVICE || managed != 0);
    if (mine && managed == 0 && context != NULL && context != c->context)
        return fail(RING_ERR_UNSUPPORTED,
                    "the memory at 0x%llx belongs to another context of %s; libring can only use "
                    "memory of the primary context",
                    at, c->name);
    *out = (accelerator_allocation){.base = (void *)(uintptr_t)base,
                                    .bytes = mine ? whole : 0,
                                    .id = (uint64_t)id};
    return RING_OK;
}

/* Programs map physical memory piece by piece (PyTorch's expandable segments), so a buffer may
 * continue in the pieces that follow. The numbers of all pieces make up the number of the whole. */
static ring_status cuda_owns(const accelerator *a, const void *at, size_t bytes,
                             accelerator_allocation *out)
{
    const cuda_device *c = cuda_device_of(a);
    RING_TRY(find_piece(c, (uintptr_t)at, out));
    const uintptr_t end = (uintptr_t)at + bytes;
    for (uintptr_t next; out->bytes > 0 && (next = (uintptr_t)out->base + out->bytes) < end;) {
        accelerator_allocation piece = {0};
        RING_TRY(find_piece(c, next, &piece));
        if (piece.bytes == 0 || (uintptr_t)piece.base != next)
            break;
        out->bytes += piece.bytes;
        out->id = out->id * UINT64_C(0x9e3779b97f4a7c15) + piece.id;
    }
    return RING_OK;
}

/* ---- Health ---------------------------------------------------------------------------------- */

static ring_status cuda_health(const accelerator *a)
{
    const cuda_device *c = cuda_device_of(a);
    const CUresult result = cuda_query(cuda_driver_load(), c->stream);
    char what[sizeof c->name + 32];
    if (result == CUDA_SUCCESS || result == CUDA_ERROR_NOT_READY)
        return RING_OK;
    (void)text_format(what, sizeof what, "%s (cuStreamQuery)", c->name);
    return cuda_check(result, what);
}

/* ---- Opening ----------------------------------------------------------------------------------
 */

static ring_status open_inside(cuda_device *c)
{
    RING_TRY(load_folds(c));
    RING_TRY(cuda_own_stream(&c->stream));
    RING_TRY(cuda_folds_open(c));
    RING_TRY(cuda_stops_open(c));
    RING_TRY(cuda_programs_open(c));
    c->base.owns = cuda_owns;
    c->base.health = cuda_health;
    return RING_OK;
}

/* Closes the parts that were opened. */
static void close_inside(const cuda_driver *api, cuda_device *c)
{
    if (c->stream != NULL) {
        (void)api->stream_synchronize(c->stream);
        (void)api->stream_destroy(c->stream);
    }
    cuda_folds_close(c);
    cuda_stops_close(c);
    cuda_programs_close(c);
    if (c->module != NULL)
        (void)api->module_unload(c->module);
}

void cuda_device_close(cuda_device *c)
{
    if (c == NULL)
        return;
    const bool inside = cuda_enter(c) == RING_OK;
    close_inside(cuda_driver_load(), c);
    if (inside)
        cuda_leave();
    cuda_memory_close(c);
    free(c);
}

ring_status cuda_device_open(int ordinal, const char *root, cuda_device **out)
{
    cuda_device *c = calloc(1, sizeof *c);
    if (c == NULL)
        return fail(RING_ERR_MEMORY, "opening a GPU");
    ring_status status = cuda_memory_open(ordinal, root, c);
    if (status != RING_OK) {
        free(c);
        return status;
    }
    status = cuda_enter(c);
    if (status == RING_OK) {
        status = open_inside(c);
        cuda_leave();
    }
    if (status == RING_OK)
        *out = c;
    else
        cuda_device_close(c);
    return status;
}
