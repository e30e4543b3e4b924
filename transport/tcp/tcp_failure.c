/* SPDX-License-Identifier: Apache-2.0
 * Stores the failure that broke a link, so that every later call can report it. */
#include "tcp_failure.h"

ring_status tcp_break(tcp_link *l, ring_status status)
{
    l->broken = status;
    /* A longer text is truncated. */
    (void)text_format(l->text, sizeof l->text, "%s", fail_text());
    return status;
}

ring_status tcp_verdict(const tcp_link *l)
{
    return l->broken == RING_OK ? RING_OK : fail(l->broken, "%s", l->text);
}
