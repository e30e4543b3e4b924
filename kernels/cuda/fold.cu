/* SPDX-License-Identifier: Apache-2.0
 * fold: combines many arrays element by element and stores the result to many arrays,
 * outs[k] (count) = finish(ins[0] op ins[1] op …) (count). fold_NAME serves all operands, and
 * fold_few_NAME most folds of one or two: it has no loops, and uses few enough registers for all
 * threads that a multiprocessor can hold, except for floats of 8 bits.
 * Host reference: kernel_fold(). Traffic: each input and each output once. Launch:
 * cuda_tiles(count, 16 / sizeof element, CUDA_BLOCK) blocks of CUDA_BLOCK threads. */
#include "fold_range.h"

#define ROW(name) \
    KERNEL_BOUND(fold_##name, cuda_fold_args, CUDA_BLOCK, 4) \
    { \
        fold_range<fold_of_##name, by_tiles>(args, args.count); \
    } \
    KERNEL_BOUND(fold_few_##name, cuda_fold_few_args, CUDA_BLOCK, fold_of_##name::FEW_BLOCKS) \
    { \
        fold_few<fold_of_##name>(args); \
    }
CUDA_FOLD_TYPES(ROW)
#undef ROW
