/* SPDX-License-Identifier: Apache-2.0
 *
 * Loads a library with dlopen() and looks up its symbols. The library is never closed, because its
 * functions may be in use until the process ends.
 */
#include "shared_object.h"

#include <dlfcn.h>
#include <string.h>

ring_status shared_object_load(const shared_object *object)
{
    void *handle = dlopen(object->file, RTLD_NOW | RTLD_LOCAL);
    if (handle == NULL)
        return fail(RING_ERR_UNSUPPORTED, "%s; %s", dlerror(), object->if_absent);
    for (size_t i = 0; i < object->count; i++) {
        const object_symbol *symbol = &object->symbols[i];
        void *found = dlsym(handle, symbol->name);
        memcpy(symbol->at, &found, sizeof found);
        if (found == NULL && !symbol->optional)
            return fail(RING_ERR_UNSUPPORTED, "the library %s has no function %s: %s", object->file,
                        symbol->name, object->if_old);
    }
    return RING_OK;
}
