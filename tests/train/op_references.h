/* SPDX-License-Identifier: Apache-2.0
 *
 * op_references: ops as plain loops, which what runs must equal.
 */
#ifndef TEST_OP_REFERENCES_H
#define TEST_OP_REFERENCES_H

#include <op.h>

/** @return plain loops; of an op that has nothing faster what runs. */
op_functions op_reference(const nn_op *op);

#endif
