/* SPDX-License-Identifier: Apache-2.0
 * Keeps the first faults in a short list, and sorts the list by place in the file to report it. */
#include "faults.h"

#include <stdio.h>
#include <stdlib.h>

#include "errors.h"

_Static_assert(FAULTS_KEPT *FAULT_BYTES + 256 <= TRAIN_ERROR_MAX,
               "all kept faults can be reported");

void faults_note(faults *f, size_t at, ring_status status)
{
    if (status == RING_OK)
        return;
    if (f->count == 0)
        f->status = status;
    if (f->count < FAULTS_KEPT) {
        f->list[f->count].at = at;
        snprintf(f->list[f->count].text, FAULT_BYTES, "%s", train_error());
    }
    f->count++;
}

static int by_place(const void *a, const void *b)
{
    const fault *x = a, *y = b;
    return (x->at > y->at) - (x->at < y->at);
}

ring_status faults_tell(faults *f, const char *name)
{
    char text[TRAIN_ERROR_MAX];
    size_t used = 0;
    const size_t kept = f->count < FAULTS_KEPT ? f->count : FAULTS_KEPT;
    if (f->count <= 1)
        return f->count == 0 ? RING_OK : train_fail(f->status, "%s", f->list[0].text);
    qsort(f->list, kept, sizeof f->list[0], by_place);
    for (size_t i = 0; i < kept; i++)
        used += (size_t)snprintf(text + used, sizeof text - used, "%s\n", f->list[i].text);
    return train_fail(f->status, "%s%s: %zu errors%s", text, name, f->count,
                      f->count > kept ? "; these are the first ones found" : "");
}
