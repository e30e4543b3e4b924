/* SPDX-License-Identifier: Apache-2.0
 *
 * cublaslt: declares the functions of NVIDIA's library cuBLASLt that the trainer uses for matrix
 * products. The library is loaded at the first use, so one build runs on machines with and without
 * it. Types and constants have the names and values of cublasLt.h; those that the trainer does not
 * use are left out.
 */
#ifndef TRAIN_CUBLASLT_H
#define TRAIN_CUBLASLT_H

#include "cuda_driver.h"

/** The types of the API: ROW(name, type here). Its enumerations are ints here. */
#define CUBLASLT_TYPES(ROW) \
    ROW(cublasStatus_t, int) \
    ROW(cublasComputeType_t, int) \
    ROW(cublasLtMatmulDescAttributes_t, int) \
    ROW(cublasLtMatrixLayoutAttribute_t, int) \
    ROW(cublasLtMatmulPreferenceAttributes_t, int) \
    ROW(cublasLtHandle_t, struct cublasLtContext *) \
    ROW(cublasLtMatmulDesc_t, struct cublasLtMatmulDescOpaque_t *) \
    ROW(cublasLtMatrixLayout_t, struct cublasLtMatrixLayoutOpaque_t *) \
    ROW(cublasLtMatmulPreference_t, struct cublasLtMatmulPreferenceOpaque_t *) \
    ROW( \
        cublasLtMatmulAlgo_t, struct { uint64_t data[8]; }) \
    ROW( \
        cublasLtMatmulHeuristicResult_t, struct { \
            cublasLtMatmulAlgo_t algo; \
            size_t workspaceSize; \
            cublasStatus_t state; \
            float wavesCount; \
            int reserved[4]; \
        })

/** The constants of the API: ROW(name, value). */
#define CUBLASLT_CONSTANTS(ROW) \
    ROW(CUBLAS_STATUS_SUCCESS, 0) \
    ROW(CUBLAS_STATUS_NOT_INITIALIZED, 1) \
    ROW(CUBLAS_STATUS_ALLOC_FAILED, 3) \
    ROW(CUBLAS_STATUS_INVALID_VALUE, 7) \
    ROW(CUBLAS_STATUS_EXECUTION_FAILED, 13) \
    ROW(CUBLAS_STATUS_NOT_SUPPORTED, 15) \
    ROW(CUBLAS_COMPUTE_32F, 68) \
    ROW(CUBLAS_COMPUTE_32F_FAST_TF32, 77) \
    ROW(CUBLAS_OP_N, 0) \
    ROW(CUBLAS_OP_T, 1) \
    ROW(CUBLASLT_MATMUL_DESC_TRANSA, 3) \
    ROW(CUBLASLT_MATMUL_DESC_TRANSB, 4) \
    ROW(CUBLASLT_MATMUL_DESC_EPILOGUE, 7) \
    ROW(CUBLASLT_MATMUL_DESC_BIAS_POINTER, 8) \
    ROW(CUBLASLT_EPILOGUE_DEFAULT, 1) \
    ROW(CUBLASLT_EPILOGUE_RELU, 2) \
    ROW(CUBLASLT_EPILOGUE_BIAS, 4) \
    ROW(CUBLASLT_EPILOGUE_RELU_BIAS, 6) \
    ROW(CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, 5) \
    ROW(CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, 6) \
    ROW(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, 1) \
    ROW(CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, 3) \
    ROW(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, 5) \
    ROW(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, 6) \
    ROW(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, 7) \
    ROW(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, 8) \
    ROW(CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE, 2) \
    ROW(CUBLASLT_REDUCTION_SCHEME_OUTPUT_TYPE, 4)

#ifndef CUBLASAPI /* a test includes NVIDIA's header and compares the two */
#define ROW(name, type) typedef __typeof__(type) name;
CUBLASLT_TYPES(ROW)
#undef ROW

enum {
#define ROW(name, value) name = (value),
    CUBLASLT_CONSTANTS(ROW)
#undef ROW
        CUDA_R_32F = 0
};
typedef int cudaDataType_t;
typedef CUstream cudaStream_t;
#endif

/** The functions of the API: ROW(name in the library without "cublasLt", name here, parameters). */
#define CUBLASLT_FUNCTIONS(ROW) \
    ROW(Create, create, (cublasLtHandle_t * out)) \
    ROW(Destroy, destroy, (cublasLtHandle_t handle)) \
    ROW(MatmulDescCreate, desc_create, \
        (cublasLtMatmulDesc_t * out, cublasComputeType_t compute, cudaDataType_t scale)) \
    ROW(MatmulDescDestroy, desc_destroy, (cublasLtMatmulDesc_t desc)) \
    ROW(MatmulDescSetAttribute, desc_set, \
        (cublasLtMatmulDesc_t desc, cublasLtMatmulDescAttributes_t attribute, const void *value, \
         size_t bytes)) \
    ROW(MatrixLayoutCreate, layout_create, \
        (cublasLtMatrixLayout_t * out, cudaDataType_t type, uint64_t rows, uint64_t columns, \
         int64_t stride)) \
    ROW(MatrixLayoutDestroy, layout_destroy, (cublasLtMatrixLayout_t layout)) \
    ROW(MatrixLayoutSetAttribute, layout_set, \
        (cublasLtMatrixLayout_t layout, cublasLtMatrixLayoutAttribute_t attribute, \
         const void *value, size_t bytes)) \
    ROW(MatmulPreferenceCreate, preference_create, (cublasLtMatmulPreference_t * out)) \
    ROW(MatmulPreferenceDestroy, preference_destroy, (cublasLtMatmulPreference_t preference)) \
    ROW(MatmulPreferenceSetAttribute, preference_set, \
        (cublasLtMatmulPreference_t preference, cublasLtMatmulPreferenceAttributes_t attribute, \
         const void *value, size_t bytes)) \
    ROW(MatmulAlgoGetHeuristic, choose, \
        (cublasLtHandle_t handle, cublasLtMatmulDesc_t desc, cublasLtMatrixLayout_t a, \
         cublasLtMatrixLayout_t b, cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d, \
         cublasLtMatmulPreference_t preference, int most, cublasLtMatmulHeuristicResult_t outs[], \
         int *count)) \
    ROW(Matmul, multiply, \
        (cublasLtHandle_t handle, cublasLtMatmulDesc_t desc, const void *alpha, const void *a, \
         cublasLtMatrixLayout_t a_layout, const void *b, cublasLtMatrixLayout_t b_layout, \
         const void *beta, const void *c, cublasLtMatrixLayout_t c_layout, void *d, \
         cublasLtMatrixLayout_t d_layout, const cublasLtMatmulAlgo_t *algo, void *workspace, \
         size_t workspace_bytes, cudaStream_t stream))

typedef struct cublaslt {
#define ROW(name, member, parameters) cublasStatus_t(*member) parameters;
    CUBLASLT_FUNCTIONS(ROW)
#undef ROW
    const char *(*status_name)(cublasStatus_t status);
} cublaslt;

/** Loads the library at the first call of the process, for the calling thread's context: from the
 * folder RINGTRAIN_CUBLASLT if that is set; else as the system finds it, or from CUDA_HOME, or from
 * NVIDIA's wheels of the Python that PATH finds. Version 13 comes before 12, and a library that
 * cannot make a handle is passed over.
 *  @return its functions; NULL, with fail() called, if there is none that can be used. */
const cublaslt *cublaslt_load(void);

/** @param what  the action, for the message.
 *  @return RING_OK; RING_ERR_SYSTEM with the library's name of @p status. */
ring_status cublaslt_check(cublasStatus_t status, const char *what);

#endif
