/* SPDX-License-Identifier: Apache-2.0
 * fold: element-wise combinations of many arrays, to many arrays.
 * Host reference: kernel_fold(). Moves inputs + outputs times the bytes of an array. Launch: blocks
 * of CUDA_BLOCK threads, as many as the device holds. */
#include "fold_range.h"

#define ROW(name) \
    KERNEL_BOUND(fold_##name, cuda_fold_args, CUDA_BLOCK, 4) \
    { \
        fold_range<fold_of_##name>(args, share_of_grid(0, args.count)); \
    }
CUDA_FOLD_TYPES(ROW)
#undef ROW
