/* SPDX-License-Identifier: Apache-2.0
 *
 * shared_object: loads an optional library at run time, when it is first needed, so that one build
 * of libring runs on machines with and without the library.
 */
#ifndef RING_SHARED_OBJECT_H
#define RING_SHARED_OBJECT_H

#include "base.h"

/** A function of the library. */
typedef struct object_symbol {
    const char *name;
    void *at;      /* the address of the function pointer to set */
    bool optional; /* the library may lack it; the pointer is then NULL */
} object_symbol;

typedef struct shared_object {
    const char *file;
    /* The remedies that end the error messages: the library cannot be loaded; it lacks a function.
     */
    const char *if_absent, *if_old;
    const object_symbol *symbols; /* [count] */
    size_t count;
} shared_object;

/** Loads the library until the process ends, and sets all function pointers.
 *  @return RING_OK or RING_ERR_UNSUPPORTED. */
ring_status shared_object_load(const shared_object *object);

#endif
