/* SPDX-License-Identifier: Apache-2.0
 * fold: combines many arrays element by element and stores the result to many arrays,
 * outs[k] (count) = finish(ins[0] op ins[1] op …) (count).
 * Host reference: kernel_fold(). Traffic: each input and each output once. Launch: blocks of
 * CUDA_BLOCK threads, as many as the device can run at once. */
#include "fold_range.h"

#define ROW(name) \
    KERNEL_BOUND(fold_##name, cuda_fold_args, CUDA_BLOCK, 4) \
    { \
        fold_range<fold_of_##name>(args, share_of_grid(0, args.count)); \
    }
CUDA_FOLD_TYPES(ROW)
#undef ROW
