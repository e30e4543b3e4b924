/* SPDX-License-Identifier: Apache-2.0
 * op_mirror: runs ops of tests on a GPU. The operands of a run are in the host's memory; they are
 * copied to the GPU, the pass runs there, and its results are copied back. */
#ifndef TEST_OP_MIRROR_H
#define TEST_OP_MIRROR_H

#include <op.h>

/** Opens GPU 0. @return false, with train_error(), if there is none. */
bool op_mirror_open(void);
void op_mirror_close(void);
/** @return whether op_mirror_open() was called: ops are to run on the GPU. */
bool op_mirror_is_open(void);

/** @return passes on the GPU, for operands in the host's memory; if the GPU is not open, those of
 *  the host. Only for ops that GPUs have. */
const op_functions *op_mirror(const nn_op *op);
/** @return whether the place that op_mirror() uses has the op. */
bool op_mirror_has(const nn_op *op);

#endif
