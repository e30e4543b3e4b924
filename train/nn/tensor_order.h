/* SPDX-License-Identifier: Apache-2.0
 *
 * tensor_order: the order in which the elements of a tensor lie when each of several ranks has a
 * part of it: part after part. The tensor is blocks of equal size, and a part is its share of each:
 * with one block some rows, with one block a row some columns.
 */
#ifndef TRAIN_TENSOR_ORDER_H
#define TRAIN_TENSOR_ORDER_H

#include <stddef.h>

typedef struct tensor_order {
    size_t count;         /* elements of the tensor: a multiple of parts * blocks */
    size_t parts, blocks; /* 1, 1: as the tensor has them */
} tensor_order;

/** @return the order of a tensor that is not cut. */
tensor_order tensor_order_whole(size_t count);

/** @return the element that lies at @p place, and so on for @p run elements in a row. */
size_t tensor_order_element(const tensor_order *order, size_t place, size_t *run);

/** @return the place of @p element, and so on for @p run elements in a row. */
size_t tensor_order_place(const tensor_order *order, size_t element, size_t *run);

/** @return the place of the first element that @p rank has, and in @p count how many there are: all
 *  of a tensor that is not cut. */
size_t tensor_order_part(const tensor_order *order, int rank, size_t *count);

/** Copies @p count elements of the tensor @p whole from @p place on to @p own. */
void tensor_order_take(const tensor_order *order, size_t place, size_t count, float *own,
                       const float *whole);

/** The other way, of all of it. */
void tensor_order_restore(const tensor_order *order, const float *ordered, float *whole);

#endif
