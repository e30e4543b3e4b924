/* SPDX-License-Identifier: Apache-2.0
 * Loads NVIDIA's driver library once per process, and turns its errors into messages. */
#include "cuda_driver.h"

#include "shared_object.h"

#include <pthread.h>

static struct {
    pthread_once_t once;
    cuda_driver functions;
    bool loaded;
    char why[256];
} library = {.once = PTHREAD_ONCE_INIT};

static ring_status open_library(cuda_driver *f)
{
    const object_symbol symbols[] = {
#define ROW(name, member, parameters) {"cu" #name, &f->member, false},
        CUDA_FUNCTIONS(ROW)
#undef ROW
#define ROW(name, member, parameters) {"cu" #name, &f->member, true},
            CUDA_OPTIONAL(ROW)
#undef ROW
    };
    return shared_object_load(&(shared_object){.file = "libcuda.so.1",
                                               .if_absent = "is NVIDIA's driver installed?",
                                               .if_old = "NVIDIA's driver is too old; update it",
                                               .symbols = symbols,
                                               .count = sizeof symbols / sizeof *symbols});
}

static const char *text_of(CUresult result)
{
    const char *text = NULL;
    const CUresult known = library.functions.get_error_string(result, &text);
    return known == CUDA_SUCCESS && text != NULL ? text : "unknown to this driver";
}

static ring_status start(void)
{
    RING_TRY(open_library(&library.functions));
    const CUresult result = library.functions.init(0);
    return result == CUDA_SUCCESS
               ? RING_OK
               : fail(RING_ERR_UNSUPPORTED,
                      "CUDA does not start (cuInit): %s (error %d); see 'nvidia-smi'",
                      text_of(result), result);
}

static void load(void)
{
    library.loaded = start() == RING_OK;
    if (!library.loaded)
        (void)text_format(library.why, sizeof library.why, "%s", fail_text());
}

const cuda_driver *cuda_driver_load(void)
{
    pthread_once(&library.once, load);
    if (library.loaded)
        return &library.functions;
    fail(RING_ERR_UNSUPPORTED, "%s", library.why);
    return NULL;
}

ring_status cuda_check(CUresult result, const char *what)
{
    return result == CUDA_SUCCESS
               ? RING_OK
               : fail(RING_ERR_SYSTEM, "%s: %s (CUDA error %d)", what, text_of(result), result);
}

CUresult cuda_query(const cuda_driver *api, CUstream stream)
{
    CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
    (void)api->exchange_capture_mode(&mode);
    const CUresult result = api->stream_query(stream);
    (void)api->exchange_capture_mode(&mode);
    return result;
}
