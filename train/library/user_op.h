/* SPDX-License-Identifier: Apache-2.0
 *
 * user_op: makes layers that the library's caller implements into rows of the table of ops.
 */
#ifndef TRAIN_USER_OP_H
#define TRAIN_USER_OP_H

#include <ring/train.h>

#include "op.h"

typedef struct user_op {
    nn_op op; /* the row that networks use */
    ring_train_op given;
    char name[32];
} user_op;

typedef struct user_ops {
    user_op *list;      /* [count] */
    const nn_op **rows; /* [count + 1] their ops, then NULL */
} user_ops;

/** Free with user_ops_free() whatever the result, after all networks that use them.
 *  @return RING_OK, RING_ERR_MEMORY; RING_ERR_ARGUMENT names what is missing. */
ring_status user_ops_create(user_ops *ops, const ring_train_op *given, size_t count);
void user_ops_free(user_ops *ops);

/** @return the public form of a shape. */
ring_train_shape user_shape(const op_shape *shape);

#endif
