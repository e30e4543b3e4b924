/* SPDX-License-Identifier: Apache-2.0
 * A libcublasLt without a GPU, for tests: it has the functions that cublaslt.h declares, with
 * NVIDIA's names. A product is a kernel of the driver's double, launched on the caller's stream, so
 * that the double judges order, captures and addresses. Descriptors are checked as NVIDIA's
 * documentation demands; the first error is printed, and the call returns
 * CUBLAS_STATUS_INVALID_VALUE or CUBLAS_STATUS_NOT_SUPPORTED.
 *
 * FAKE_CUBLASLT_NO_HANDLE=text makes libraries with this text in their path unusable, as the driver
 * may be too old for one. FAKE_CUBLASLT_FAIL=n makes the n-th product fail with
 * CUBLAS_STATUS_EXECUTION_FAILED. */
#include "cublaslt.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cuda_table.h"
#include "product_kernel.h"

enum { ALIGNED = 256, BIAS_ALIGNED = 16, BLOCKS = 8 };

struct cublasLtContext {
    cuda_table cuda;
    CUcontext context;
    CUmodule module;
    CUfunction product;
    long products, fails_at;
};

struct cublasLtMatmulDescOpaque_t {
    int32_t compute, scale, transposes[2];
    uint32_t epilogue;
    const float *bias;
};

struct cublasLtMatrixLayoutOpaque_t {
    int32_t type, batch;
    uint64_t rows, columns;
    int64_t stride, step;
};

struct cublasLtMatmulPreferenceOpaque_t {
    size_t workspace;
    uint32_t schemes, alignments[4];
};

static cublasStatus_t wrong(const char *what)
{
    fprintf(stderr, "fake_cublaslt: %s\n", what);
    return CUBLAS_STATUS_INVALID_VALUE;
}

/* The functions have the prototypes of cublaslt.h. */
#define ROW(name, member, parameters) \
    __attribute__((visibility("default"))) cublasStatus_t cublasLt##name parameters;
CUBLASLT_FUNCTIONS(ROW)
#undef ROW
__attribute__((visibility("default"))) const char *cublasLtGetStatusName(cublasStatus_t status);

const char *cublasLtGetStatusName(cublasStatus_t status)
{
    return status == CUBLAS_STATUS_SUCCESS            ? "CUBLAS_STATUS_SUCCESS"
           : status == CUBLAS_STATUS_NOT_INITIALIZED  ? "CUBLAS_STATUS_NOT_INITIALIZED"
           : status == CUBLAS_STATUS_ALLOC_FAILED     ? "CUBLAS_STATUS_ALLOC_FAILED"
           : status == CUBLAS_STATUS_INVALID_VALUE    ? "CUBLAS_STATUS_INVALID_VALUE"
           : status == CUBLAS_STATUS_EXECUTION_FAILED ? "CUBLAS_STATUS_EXECUTION_FAILED"
                                                      : "CUBLAS_STATUS_NOT_SUPPORTED";
}

/* ---- Handles and descriptors ------------------------------------------------------------------
 */

cublasStatus_t cublasLtCreate(cublasLtHandle_t *out)
{
    const char *fails_at = getenv("FAKE_CUBLASLT_FAIL");
    const char *unusable = getenv("FAKE_CUBLASLT_NO_HANDLE");
    Dl_info here;
    if (unusable != NULL && dladdr(&cublasLtCreate, &here) != 0 &&
        strstr(here.dli_fname, unusable) != NULL)
        return CUBLAS_STATUS_NOT_INITIALIZED;
    struct cublasLtContext *handle = calloc(1, sizeof *handle);
    *out = handle;
    if (handle == NULL)
        return CUBLAS_STATUS_ALLOC_FAILED;
    handle->cuda = cuda_functions();
    handle->fails_at = fails_at != NULL ? atol(fails_at) : 0;
    if (handle->cuda.get_current(&handle->context) != CUDA_SUCCESS || handle->context == NULL)
        return CUBLAS_STATUS_NOT_INITIALIZED;
    if (handle->cuda.module_load(&handle->module, "RINGEMU") != CUDA_SUCCESS ||
        handle->cuda.module_get_function(&handle->product, handle->module, "fake_product") !=
            CUDA_SUCCESS)
        return CUBLAS_STATUS_NOT_INITIALIZED;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtDestroy(cublasLtHandle_t handle)
{
    (void)handle->cuda.module_unload(handle->module);
    free(handle);
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t *out, cublasComputeType_t compute,
                                        cudaDataType_t scale)
{
    if ((compute != CUBLAS_COMPUTE_32F && compute != CUBLAS_COMPUTE_32F_FAST_TF32) ||
        scale != CUDA_R_32F)
        return wrong("types of a product");
    *out = calloc(1, sizeof **out);
    **out = (struct cublasLtMatmulDescOpaque_t){.compute = compute,
                                                .scale = scale,
                                                .epilogue = CUBLASLT_EPILOGUE_DEFAULT};
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t desc)
{
    free(desc);
    return CUBLAS_STATUS_SUCCESS;
}

/* Sets a member, if the value has its size. */
static cublasStatus_t set(void *member, size_t size, const void *value, size_t bytes)
{
    if (value == NULL || bytes != size)
        return wrong("the size of an attribute");
    memcpy(member, value, size);
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t desc,
                                              cublasLtMatmulDescAttributes_t attribute,
                                              const void *value, size_t bytes)
{
    switch (attribute) {
    case CUBLASLT_MATMUL_DESC_TRANSA:
    case CUBLASLT_MATMUL_DESC_TRANSB:
        return set(&desc->transposes[attribute - CUBLASLT_MATMUL_DESC_TRANSA], 4, value, bytes);
    case CUBLASLT_MATMUL_DESC_EPILOGUE:
        return set(&desc->epilogue, sizeof desc->epilogue, value, bytes);
    case CUBLASLT_MATMUL_DESC_BIAS_POINTER:
        return set(&desc->bias, sizeof desc->bias, value, bytes);
    default:
        return wrong("an attribute of a product");
    }
}

cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t *out, cudaDataType_t type,
                                          uint64_t rows, uint64_t columns, int64_t stride)
{
    if (type != CUDA_R_32F || rows == 0 || columns == 0 || stride < (int64_t)rows)
        return wrong("the layout of a matrix");
    *out = calloc(1, sizeof **out);
    **out = (struct cublasLtMatrixLayoutOpaque_t){
        .type = type, .batch = 1, .rows = rows, .columns = columns, .stride = stride};
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t layout)
{
    free(layout);
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatrixLayoutSetAttribute(cublasLtMatrixLayout_t layout,
                                                cublasLtMatrixLayoutAttribute_t attribute,
                                                const void *value, size_t bytes)
{
    if (attribute == CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT)
        return set(&layout->batch, sizeof layout->batch, value, bytes);
    if (attribute == CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET)
        return set(&layout->step, sizeof layout->step, value, bytes);
    return wrong("an attribute of a layout");
}

cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t *out)
{
    *out = calloc(1, sizeof **out);
    **out = (struct cublasLtMatmulPreferenceOpaque_t){.schemes = 7,
                                                      .alignments = {ALIGNED, ALIGNED, ALIGNED,
                                                                     ALIGNED}};
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t preference)
{
    free(preference);
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t preference,
                                                    cublasLtMatmulPreferenceAttributes_t attribute,
                                                    const void *value, size_t bytes)
{
    const int k = attribute - CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES;
    if (attribute == CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES)
        return set(&preference->workspace, sizeof preference->workspace, value, bytes);
    if (attribute == CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK)
        return set(&preference->schemes, sizeof preference->schemes, value, bytes);
    if (k >= 0 && k < 4)
        return set(&preference->alignments[k], sizeof *preference->alignments, value, bytes);
    return wrong("an attribute of a preference");
}

/* ---- Algorithms and products ------------------------------------------------------------------
 */

/* Sizes of op(x). */
static uint64_t rows_of(cublasLtMatrixLayout_t layout, int32_t transposed)
{
    return transposed ? layout->columns : layout->rows;
}

static uint64_t columns_of(cublasLtMatrixLayout_t layout, int32_t transposed)
{
    return transposed ? layout->rows : layout->columns;
}

static bool adds_bias(cublasLtMatmulDesc_t desc)
{
    return desc->epilogue == CUBLASLT_EPILOGUE_BIAS ||
           desc->epilogue == CUBLASLT_EPILOGUE_RELU_BIAS;
}

static cublasStatus_t check_shapes(cublasLtMatmulDesc_t desc, cublasLtMatrixLayout_t a,
                                   cublasLtMatrixLayout_t b, cublasLtMatrixLayout_t c,
                                   cublasLtMatrixLayout_t d)
{
    const int32_t *t = desc->transposes;
    if (rows_of(a, t[0]) != d->rows || columns_of(b, t[1]) != d->columns ||
        columns_of(a, t[0]) != rows_of(b, t[1]) || memcmp(c, d, sizeof *d) != 0)
        return wrong("shapes of a product");
    if (a->batch < 1 || a->batch != b->batch || a->batch != d->batch)
        return wrong("batches of a product");
    if (d->batch > 1 && d->step < d->stride * (int64_t)d->columns)
        return wrong("results of a batch overlap");
    if (adds_bias(desc) && desc->bias == NULL)
        return wrong("a bias is missing");
    if (adds_bias(desc) && (uintptr_t)desc->bias % BIAS_ALIGNED != 0)
        return wrong("a bias is not aligned to 16 bytes");
    return CUBLAS_STATUS_SUCCESS;
}

static uint64_t hash(uint64_t h, const void *bytes, size_t count)
{
    for (size_t i = 0; i < count; i++)
        h = (h ^ ((const unsigned char *)bytes)[i]) * UINT64_C(0x100000001b3);
    return h;
}

/* @return a number of the shapes, which an algorithm is for. */
static uint64_t number_of(cublasLtMatmulDesc_t desc, cublasLtMatrixLayout_t a,
                          cublasLtMatrixLayout_t b, cublasLtMatrixLayout_t d)
{
    struct cublasLtMatmulDescOpaque_t plain = *desc;
    plain.bias = NULL;
    uint64_t h = hash(1, &plain, sizeof plain);
    h = hash(h, a, sizeof *a);
    h = hash(h, b, sizeof *b);
    return hash(h, d, sizeof *d);
}

cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t handle, cublasLtMatmulDesc_t desc,
                                              cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
                                              cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
                                              cublasLtMatmulPreference_t preference, int most,
                                              cublasLtMatmulHeuristicResult_t outs[], int *count)
{
    const cublasStatus_t status = check_shapes(desc, a, b, c, d);
    *count = 0;
    if (status != CUBLAS_STATUS_SUCCESS || most < 1)
        return status;
    outs[0] = (cublasLtMatmulHeuristicResult_t){.state = CUBLAS_STATUS_SUCCESS, .wavesCount = 1};
    outs[0].algo.data[0] = number_of(desc, a, b, d);
    outs[0].workspaceSize = outs[0].algo.data[1] = preference->workspace;
    for (int k = 0; k < 4; k++)
        outs[0].algo.data[2 + k] = preference->alignments[k];
    *count = 1;
    return CUBLAS_STATUS_SUCCESS;
}

static product_operand operand(cublasLtMatrixLayout_t layout, int32_t transposed, const void *at)
{
    const uint64_t stride = (uint64_t)layout->stride;
    return (product_operand){.at = at,
                             .step = (uint64_t)layout->step,
                             .row = transposed ? stride : 1,
                             .column = transposed ? 1 : stride};
}

static cublasStatus_t check_call(cublasLtHandle_t handle, const cublasLtMatmulAlgo_t *algo,
                                 const void *const addresses[4], const void *workspace,
                                 size_t workspace_bytes)
{
    CUcontext now = NULL;
    if (algo == NULL)
        return wrong("a product without an algorithm");
    if (algo->data[1] > workspace_bytes || (workspace_bytes > 0 && workspace == NULL))
        return wrong("the workspace is smaller than the algorithm's");
    if ((uintptr_t)workspace % ALIGNED != 0)
        return wrong("the workspace is not aligned");
    for (int k = 0; k < 4; k++)
        if ((uintptr_t)addresses[k] % algo->data[2 + k] != 0)
            return wrong("an operand is less aligned than the algorithm demands");
    if (handle->cuda.get_current(&now) != CUDA_SUCCESS || now != handle->context)
        return wrong("another context is current");
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmul(cublasLtHandle_t handle, cublasLtMatmulDesc_t desc, const void *alpha,
                              const void *a, cublasLtMatrixLayout_t a_layout, const void *b,
                              cublasLtMatrixLayout_t b_layout, const void *beta, const void *c,
                              cublasLtMatrixLayout_t c_layout, void *d,
                              cublasLtMatrixLayout_t d_layout, const cublasLtMatmulAlgo_t *algo,
                              void *workspace, size_t workspace_bytes, cudaStream_t stream)
{
    const void *const addresses[4] = {a, b, c, d};
    cublasStatus_t status = check_shapes(desc, a_layout, b_layout, c_layout, d_layout);
    if (status == CUBLAS_STATUS_SUCCESS)
        status = check_call(handle, algo, addresses, workspace, workspace_bytes);
    if (status != CUBLAS_STATUS_SUCCESS)
        return status;
    if (algo->data[0] != number_of(desc, a_layout, b_layout, d_layout))
        return wrong("the algorithm of another product");
    if (c != d)
        return wrong("the operand that is added is not the result");
    if (++handle->products == handle->fails_at)
        return CUBLAS_STATUS_EXECUTION_FAILED;
    product_args args = {
        .first = operand(a_layout, desc->transposes[0], a),
        .second = operand(b_layout, desc->transposes[1], b),
        .result = d,
        .bias = adds_bias(desc) ? desc->bias : NULL,
        .relu = desc->epilogue == CUBLASLT_EPILOGUE_RELU ||
                desc->epilogue == CUBLASLT_EPILOGUE_RELU_BIAS,
        .workspace = workspace,
        .workspace_bytes = workspace_bytes,
        .result_step = (uint64_t)d_layout->step,
        .result_column = (uint64_t)d_layout->stride,
        .rows = d_layout->rows,
        .columns = d_layout->columns,
        .inner = columns_of(a_layout, desc->transposes[0]),
        .batch = (uint64_t)d_layout->batch,
        .alpha = *(const float *)alpha,
        .beta = *(const float *)beta,
        .tf32 = desc->compute == CUBLAS_COMPUTE_32F_FAST_TF32,
    };
    void *parameters[] = {&args};
    return handle->cuda.launch(handle->product, BLOCKS, 1, 1, 1, 1, 1, 0, stream, parameters,
                               NULL) == CUDA_SUCCESS
               ? CUBLAS_STATUS_SUCCESS
               : CUBLAS_STATUS_EXECUTION_FAILED;
}
