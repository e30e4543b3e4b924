/* SPDX-License-Identifier: Apache-2.0
 * Writes to a descriptor without blocking. The descriptor itself stays blocking, because other
 * processes share it. */
#include "outlet.h"

#include <errno.h>
#include <limits.h>
#include <string.h>
#include <unistd.h>

enum { FULL_BYTES = 1 << 20 }; /* queued bytes from which on an outlet is full */

void outlet_put(outlet *o, const void *owner, const char *prefix, const char *data, size_t count)
{
    if (o->error != 0 || count == 0)
        return;
    if (o->open != NULL && o->open != owner) {
        bytes_add(&o->waiting, "\n", 1);
        o->open = NULL;
    }
    if (o->open == NULL)
        bytes_add(&o->waiting, prefix, strlen(prefix));
    bytes_add(&o->waiting, data, count);
    o->open = data[count - 1] == '\n' ? NULL : owner;
}

bool outlet_full(const outlet *o)
{
    return bytes_count(&o->waiting) >= FULL_BYTES;
}

void outlet_watch(outlet *o, poll_set *set)
{
    if (o->fd >= 0 && bytes_count(&o->waiting) > 0)
        poll_set_add(set, o->fd, POLLOUT, outlet_write, o);
}

/* If poll() reports that a pipe is writable, a write of PIPE_BUF bytes does not block. */
void outlet_write(void *context)
{
    outlet *o = context;
    struct pollfd entry = {.fd = o->fd, .events = POLLOUT};
    while (bytes_count(&o->waiting) > 0 && poll(&entry, 1, 0) == 1) {
        const ssize_t put = write(o->fd, bytes_head(&o->waiting),
                                  min_size(bytes_count(&o->waiting), PIPE_BUF));
        if (put > 0) {
            bytes_drop(&o->waiting, (size_t)put);
        } else if (put < 0 && errno != EAGAIN && errno != EINTR) {
            o->error = errno;
            bytes_drop(&o->waiting, bytes_count(&o->waiting));
        } else {
            return;
        }
    }
}
