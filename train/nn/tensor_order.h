/* SPDX-License-Identifier: Apache-2.0
 *
 * tensor_order: maps the elements of a tensor that several tensor ranks divide among them to places
 * in the order of parts, in which the part of rank 0 comes first, then that of rank 1, and so on.
 * The tensor consists of blocks of equal size, and each part has an equal share of every block:
 * with one block, a part is some rows; with one block for each row, a part is some columns.
 */
#ifndef TRAIN_TENSOR_ORDER_H
#define TRAIN_TENSOR_ORDER_H

#include <stddef.h>

typedef struct tensor_order {
    size_t count;  /* elements of the tensor: a multiple of parts * blocks */
    size_t parts;  /* number of ranks; 1: the tensor is not divided */
    size_t blocks; /* number of blocks */
} tensor_order;

/** @return the order of a tensor that is not divided: the same as in the tensor. */
tensor_order tensor_order_whole(size_t count);

/** @return index in the tensor of the element at @p place.
 *  @param[out] run  number of elements from there on that are consecutive in both orders */
size_t tensor_order_element(const tensor_order *order, size_t place, size_t *run);

/** @return place of the element with index @p element in the tensor; @p run is as in
 *  tensor_order_element(). */
size_t tensor_order_place(const tensor_order *order, size_t element, size_t *run);

/** @return place of the first element of the part of tensor rank @p rank.
 *  @param[out] count  elements of the part; all elements if the tensor is not divided */
size_t tensor_order_part(const tensor_order *order, int rank, size_t *count);

/** Copies the elements at places @p place to @p place + @p count - 1 from the tensor @p whole to @p
 * own [count]. */
void tensor_order_take(const tensor_order *order, size_t place, size_t count, float *own,
                       const float *whole);

/** Copies all elements from the order of parts, @p ordered [order->count], to the tensor @p whole.
 */
void tensor_order_restore(const tensor_order *order, const float *ordered, float *whole);

#endif
