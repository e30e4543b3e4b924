/* SPDX-License-Identifier: Apache-2.0
 * identity: which host, process and user this is, as others need to know it. */
#ifndef RING_BOOT_IDENTITY_H
#define RING_BOOT_IDENTITY_H

#include "boot.h"

/** Fills host, process, hostname, pid, uid. */
ring_status identity_fill(boot_card *card);

#endif
