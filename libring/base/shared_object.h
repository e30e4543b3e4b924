/* SPDX-License-Identifier: Apache-2.0
 *
 * shared_object: loads a library when it is first needed, so that one build of libring runs with
 * and without it.
 */
#ifndef RING_SHARED_OBJECT_H
#define RING_SHARED_OBJECT_H

#include "base.h"

/** A function of the library. */
typedef struct object_symbol {
    const char *name;
    void *at; /* the pointer to fill */
    bool optional;
} object_symbol;

typedef struct shared_object {
    const char *file;
    const char *if_absent, *if_old; /* ends of the error messages: the remedy */
    const object_symbol *symbols;   /* [count] */
    size_t count;
} shared_object;

/** Loads the library for the rest of the process and fills the pointers. Optional symbols that it
 *  lacks are NULL. @return RING_OK or RING_ERR_UNSUPPORTED. */
ring_status shared_object_load(const shared_object *object);

#endif
