/* SPDX-License-Identifier: Apache-2.0
 * Keeps a list of plans, one for each shape. cuBLASLt's matrices are stored by columns, so a
 * matrix by rows is its transpose there, and c = op(a) · op(b) is computed as cᵀ = op(b)ᵀ · op(a)ᵀ:
 * b is cuBLASLt's first operand. */
#include "cuda_products.h"

#include <stdlib.h>
#include <string.h>

typedef struct cuda_product_plan {
    struct cuda_product_plan *next;
    cuda_product_shape shape;
    cublasLtMatmulDesc_t desc;
    cublasLtMatrixLayout_t first, second, result; /* of b, a and c */
    cublasLtMatmulAlgo_t algo;
} cuda_product_plan;

static ring_status set_desc(const cublaslt *lt, cublasLtMatmulDesc_t desc, int attribute,
                            const void *value, size_t bytes)
{
    return cublaslt_check(lt->desc_set(desc, attribute, value, bytes),
                          "describing a product (cublasLtMatmulDescSetAttribute)");
}

static ring_status make_layout(const cublaslt *lt, cublasLtMatrixLayout_t *out, uint64_t rows,
                               uint64_t columns, uint64_t batch, uint64_t step)
{
    const int32_t count = (int32_t)batch;
    const int64_t offset = (int64_t)step;
    static const char what[] = "describing a matrix (cublasLtMatrixLayoutCreate)";
    RING_TRY(
        cublaslt_check(lt->layout_create(out, CUDA_R_32F, rows, columns, (int64_t)rows), what));
    if (batch == 1)
        return RING_OK;
    RING_TRY(cublaslt_check(lt->layout_set(*out, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &count,
                                           sizeof count),
                            what));
    return cublaslt_check(lt->layout_set(*out, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &offset,
                                         sizeof offset),
                          what);
}

static ring_status describe(const cuda_products *products, cuda_product_plan *plan,
                            const float *bias)
{
    const cublaslt *lt = products->lt;
    const cuda_product_shape *s = &plan->shape;
    const int32_t first = s->transpose_b ? CUBLAS_OP_T : CUBLAS_OP_N;
    const int32_t second = s->transpose_a ? CUBLAS_OP_T : CUBLAS_OP_N;
    static const uint32_t epilogues[] = {[CUDA_PLAIN] = CUBLASLT_EPILOGUE_DEFAULT,
                                         [CUDA_BIAS] = CUBLASLT_EPILOGUE_BIAS,
                                         [CUDA_RELU] = CUBLASLT_EPILOGUE_RELU,
                                         [CUDA_RELU_BIAS] = CUBLASLT_EPILOGUE_RELU_BIAS};
    const uint32_t epilogue = epilogues[s->epilogue];
    const int compute = products->tf32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F;
    RING_TRY(cublaslt_check(lt->desc_create(&plan->desc, compute, CUDA_R_32F),
                            "describing a product (cublasLtMatmulDescCreate)"));
    RING_TRY(set_desc(lt, plan->desc, CUBLASLT_MATMUL_DESC_TRANSA, &first, sizeof first));
    RING_TRY(set_desc(lt, plan->desc, CUBLASLT_MATMUL_DESC_TRANSB, &second, sizeof second));
    RING_TRY(set_desc(lt, plan->desc, CUBLASLT_MATMUL_DESC_EPILOGUE, &epilogue, sizeof epilogue));
    if (bias != NULL)
        RING_TRY(set_desc(lt, plan->desc, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &bias, sizeof bias));
    RING_TRY(make_layout(lt, &plan->first, s->transpose_b ? s->k : s->n,
                         s->transpose_b ? s->n : s->k, s->batch, s->step_b));
    RING_TRY(make_layout(lt, &plan->second, s->transpose_a ? s->m : s->k,
                         s->transpose_a ? s->k : s->m, s->batch, s->step_a));
    return make_layout(lt, &plan->result, s->n, s->m, s->batch, s->step_c);
}

/* Takes the first algorithm that cuBLASLt proposes. Those that add up in place by atomic operations
 * are excluded, since the order of their additions may change. */
static ring_status choose(const cuda_products *products, cuda_product_plan *plan)
{
    const cublaslt *lt = products->lt;
    const size_t workspace = CUDA_WORKSPACE_BYTES;
    const uint32_t schemes = CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE |
                             CUBLASLT_REDUCTION_SCHEME_OUTPUT_TYPE;
    uint32_t alignments[4];
    const struct {
        int attribute;
        const void *value;
        size_t bytes;
    } limits[] = {
        {CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &workspace, sizeof workspace},
        {CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, &schemes, sizeof schemes},
        {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, &alignments[0], sizeof *alignments},
        {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, &alignments[1], sizeof *alignments},
        {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, &alignments[2], sizeof *alignments},
        {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, &alignments[2], sizeof *alignments},
    };
    cublasLtMatmulPreference_t preference;
    cublasLtMatmulHeuristicResult_t best;
    int count = 0;
    for (int k = 0; k < 4; k++)
        alignments[k] = (uint32_t)plan->shape.alignments[k];
    RING_TRY(cublaslt_check(lt->preference_create(&preference),
                            "choosing an algorithm (cublasLtMatmulPreferenceCreate)"));
    cublasStatus_t status = CUBLAS_STATUS_SUCCESS;
    for (size_t i = 0; i < sizeof limits / sizeof *limits && status == CUBLAS_STATUS_SUCCESS; i++)
        status = lt->preference_set(preference, limits[i].attribute, limits[i].value,
                                    limits[i].bytes);
    if (status == CUBLAS_STATUS_SUCCESS)
        status = lt->choose(products->handle, plan->desc, plan->first, plan->second, plan->result,
                            plan->result, preference, 1, &best, &count);
    (void)lt->preference_destroy(preference);
    if (status == CUBLAS_STATUS_SUCCESS && (count < 1 || best.state != CUBLAS_STATUS_SUCCESS))
        status = CUBLAS_STATUS_NOT_SUPPORTED;
    RING_TRY(cublaslt_check(status, "choosing an algorithm (cublasLtMatmulAlgoGetHeuristic)"));
    plan->algo = best.algo;
    return RING_OK;
}

static void free_plan(const cublaslt *lt, cuda_product_plan *plan)
{
    if (plan->desc != NULL)
        (void)lt->desc_destroy(plan->desc);
    const cublasLtMatrixLayout_t layouts[] = {plan->first, plan->second, plan->result};
    for (int i = 0; i < 3; i++)
        if (layouts[i] != NULL)
            (void)lt->layout_destroy(layouts[i]);
    free(plan);
}

/* @param[out] out  the plan of the shape, which is made if it is needed for the first time. */
static ring_status find_plan(cuda_products *products, const cuda_product_shape *shape,
                             const float *bias, cuda_product_plan **out)
{
    for (*out = products->plans; *out != NULL; *out = (*out)->next)
        if (memcmp(&(*out)->shape, shape, sizeof *shape) == 0)
            return RING_OK;
    cuda_product_plan *plan = calloc(1, sizeof *plan);
    if (plan == NULL)
        return fail(RING_ERR_MEMORY, "no memory for the plan of a product");
    plan->shape = *shape;
    ring_status status = describe(products, plan, bias);
    if (status == RING_OK)
        status = choose(products, plan);
    if (status != RING_OK) {
        free_plan(products->lt, plan);
        return status;
    }
    plan->next = products->plans;
    *out = products->plans = plan;
    return RING_OK;
}

/* @return the largest power of two, at most 256, that divides the address and @p step elements. */
static uint64_t alignment_of(const void *at, uint64_t step)
{
    const uint64_t bits = (uint64_t)(uintptr_t)at | step * sizeof(float) | 256;
    return bits & (~bits + 1);
}

ring_status cuda_product(cuda_products *products, CUstream stream, CUdeviceptr workspace,
                         const cuda_product_shape *shape, const float *a, const float *b, float *c,
                         const float *bias)
{
    const cublaslt *lt = products->lt;
    const float alpha = 1.0F, beta = shape->accumulate ? 1.0F : 0.0F;
    cuda_product_shape s = *shape;
    cuda_product_plan *plan;
    s.alignments[0] = alignment_of(b, s.step_b);
    s.alignments[1] = alignment_of(a, s.step_a);
    s.alignments[2] = alignment_of(c, s.step_c);
    s.alignments[3] = bias != NULL ? alignment_of(bias, 0) : 0;
    RING_TRY(find_plan(products, &s, bias, &plan));
    if (bias != NULL)
        RING_TRY(set_desc(lt, plan->desc, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &bias, sizeof bias));
    return cublaslt_check(lt->multiply(products->handle, plan->desc, &alpha, b, plan->first, a,
                                       plan->second, &beta, c, plan->result, c, plan->result,
                                       &plan->algo, (void *)(uintptr_t)workspace,
                                       CUDA_WORKSPACE_BYTES, stream),
                          "multiplying matrices (cublasLtMatmul)");
}

ring_status cuda_products_open(cuda_products *products, bool tf32)
{
    *products = (cuda_products){.lt = cublaslt_load(), .tf32 = tf32};
    if (products->lt == NULL)
        return RING_ERR_UNSUPPORTED;
    return cublaslt_check(products->lt->create(&products->handle),
                          "starting cuBLASLt (cublasLtCreate)");
}

void cuda_products_close(cuda_products *products)
{
    while (products->plans != NULL) {
        cuda_product_plan *plan = products->plans;
        products->plans = plan->next;
        free_plan(products->lt, plan);
    }
    if (products->handle != NULL)
        (void)products->lt->destroy(products->handle);
}
