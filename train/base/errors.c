/* SPDX-License-Identifier: Apache-2.0
 * Keeps the error text of each thread. The allocator sets this text if there is no memory. */
#include "errors.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "numbers.h"

enum { ALIGNMENT = 64 };

static _Thread_local char error_text[TRAIN_ERROR_MAX];
static _Thread_local bool error_shared;

ring_status train_fail(ring_status status, const char *format, ...)
{
    const int saved_errno = errno;
    char text[TRAIN_ERROR_MAX]; /* the arguments may point into the old text */
    NUMBERS_AS_IN_C;
    va_list args;
    va_start(args, format);
    errno = saved_errno;
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    memcpy(error_text, text, sizeof text);
    error_shared = false;
    return status;
}

ring_status train_folder_fail(const char *path)
{
    const char *why = errno == ENOENT    ? "no such folder"
                      : errno == ENOTDIR ? "not a folder"
                                         : strerror(errno);
    return train_fail(RING_ERR_SYSTEM, "%s: %s", path, why);
}

ring_status train_ring(const ring_comm *comm, ring_status status)
{
    if (status == RING_OK)
        return RING_OK;
    const char *text = ring_last_error(comm);
    return train_fail(status, "%s", text[0] != '\0' ? text : ring_status_string(status));
}

const char *train_error(void)
{
    return error_text;
}

void train_error_share(void)
{
    error_shared = true;
}

bool train_error_is_shared(void)
{
    return error_shared;
}

void train_failure_keep(train_failure *failure, ring_status status)
{
    if (status == RING_OK || failure->status != RING_OK)
        return;
    failure->status = status;
    memcpy(failure->text, error_text, sizeof failure->text);
}

ring_status train_failure_tell(const train_failure *failure)
{
    return failure->status == RING_OK ? RING_OK : train_fail(failure->status, "%s", failure->text);
}

ring_status train_alloc(void **out, size_t bytes, const char *what)
{
    size_t padded;
    *out = NULL;
    if (!__builtin_add_overflow(bytes, (size_t)(2 * ALIGNMENT - 1), &padded))
        *out = aligned_alloc(ALIGNMENT, padded / ALIGNMENT * ALIGNMENT);
    if (*out == NULL)
        return train_fail(RING_ERR_MEMORY, "no memory for %s (%zu bytes)", what, bytes);
    memset(*out, 0, bytes);
    return RING_OK;
}
