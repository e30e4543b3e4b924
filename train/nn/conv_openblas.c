/* SPDX-License-Identifier: Apache-2.0
 * Computes convolutions as matrix products, because OpenBLAS has no convolutions of its own. */
#include "conv.h"

size_t conv_scratch_bytes(const op_use *use)
{
    return conv_gemm_scratch_bytes(use);
}

ring_status conv_prepare(op_use *use, size_t batch)
{
    (void)use;
    (void)batch;
    return RING_OK;
}

void conv_release(op_use *use)
{
    (void)use;
}

void conv_forward(const op_run *run)
{
    conv_gemm_forward(run);
}

void conv_params(const op_run *run)
{
    conv_gemm_params(run);
}

void conv_inputs(const op_run *run)
{
    conv_gemm_inputs(run);
}
