/* SPDX-License-Identifier: Apache-2.0
 * Implements the public calls that allocate and register memory. */
#include "heap.h"
#include "regions.h"

ring_status ring_mem_alloc(void **ptr, size_t bytes)
{
    if (ptr == NULL)
        return fail(RING_ERR_ARGUMENT, "ring_mem_alloc: ptr is NULL");
    return heap_alloc(ptr, bytes);
}

ring_status ring_mem_free(void *ptr)
{
    return heap_free(ptr);
}

ring_status ring_mem_register(void *ptr, size_t bytes)
{
    return region_add(ptr, bytes, REGION_PLAIN);
}

ring_status ring_mem_deregister(void *ptr)
{
    return region_remove(ptr);
}
