/* SPDX-License-Identifier: Apache-2.0
 *
 * user_op: makes layers that the library's caller implements usable as ops of a network (op.h).
 */
#ifndef TRAIN_USER_OP_H
#define TRAIN_USER_OP_H

#include <ring/train.h>

#include "op.h"

/** One layer of the caller. */
typedef struct user_op {
    nn_op op;            /* the op that networks use; the first member, so that its address is also
                            that of the user_op */
    ring_train_op given; /* the caller's functions */
    char name[32];
} user_op;

typedef struct user_ops {
    user_op *list;      /* [count] */
    const nn_op **rows; /* [count + 1] the op of each, then NULL */
} user_ops;

/** Checks and copies the layers @p given [count].
 *  @return RING_OK; RING_ERR_MEMORY; RING_ERR_ARGUMENT: a layer is incomplete. Free with
 *  user_ops_free() whatever the result, after all networks that use the layers. */
ring_status user_ops_create(user_ops *ops, const ring_train_op *given, size_t count);
void user_ops_free(user_ops *ops);

/** @return the public form of a shape. */
ring_train_shape user_shape(const op_shape *shape);

#endif
