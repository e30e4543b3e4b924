/* SPDX-License-Identifier: Apache-2.0
 *
 * array: allocates room for more elements in the arrays of plans and of the checker. The room at
 * least doubles each time, because elements are added one by one.
 */
#ifndef RING_PLAN_ARRAY_H
#define RING_PLAN_ARRAY_H

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

/** Reallocates @p array so that it has room for @p needed elements of @p size bytes. If it grows,
 *  it at least doubles.
 *  @param[in,out] cap  the elements that the array has room for; 0 if @p array is NULL.
 *  @return the array; NULL if out of memory, and then @p array and @p cap are unchanged. */
static inline void *array_with_room(void *array, int32_t *cap, int64_t needed, size_t size)
{
    if (array != NULL && needed <= *cap)
        return array;
    const int64_t twice = *cap > 0 ? 2 * (int64_t)*cap : 8;
    const int64_t wanted = needed > twice ? needed : twice;
    void *grown = wanted <= INT32_MAX ? realloc(array, (size_t)wanted * size) : NULL;
    if (grown != NULL)
        *cap = (int32_t)wanted;
    return grown;
}

#endif
