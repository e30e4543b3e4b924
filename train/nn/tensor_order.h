/* SPDX-License-Identifier: Apache-2.0
 *
 * tensor_order: maps the elements of a tensor to the order in which they are stored when each of
 * several ranks has a part of it: part after part. The tensor consists of blocks of equal size, and
 * each part has an equal share of every block. One block gives parts of rows; one block for each
 * row gives parts of columns.
 */
#ifndef TRAIN_TENSOR_ORDER_H
#define TRAIN_TENSOR_ORDER_H

#include <stddef.h>

typedef struct tensor_order {
    size_t count;         /* elements of the tensor: a multiple of parts * blocks */
    size_t parts, blocks; /* 1, 1: in the tensor's own order */
} tensor_order;

/** @return the order of a tensor that is not cut. */
tensor_order tensor_order_whole(size_t count);

/** @return the element at @p place. The @p run elements from there on are at consecutive places. */
size_t tensor_order_element(const tensor_order *order, size_t place, size_t *run);

/** @return the place of @p element. The @p run elements from there on have consecutive places. */
size_t tensor_order_place(const tensor_order *order, size_t element, size_t *run);

/** @return the place of the first element of @p rank's part.
 *  @param[out] count  its elements; if the tensor is not cut, all of them */
size_t tensor_order_part(const tensor_order *order, int rank, size_t *count);

/** Copies @p count elements, from @p place on, of the tensor @p whole to @p own. */
void tensor_order_take(const tensor_order *order, size_t place, size_t count, float *own,
                       const float *whole);

/** Copies all elements back: from the order of parts to that of the tensor. */
void tensor_order_restore(const tensor_order *order, const float *ordered, float *whole);

#endif
