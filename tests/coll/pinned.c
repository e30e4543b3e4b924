/* SPDX-License-Identifier: Apache-2.0 */
#include "pinned.h"

#include "fake_ibverbs.h"

#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

void pinned_pages_go(const void *memory, size_t bytes)
{
    void (*go)(const void *, size_t);
    *(void **)&go = fake_ibverbs_function("fake_ibverbs_pages_go");
    if (go != NULL && memory != NULL)
        go(memory, bytes);
}

pinned_counts pinned_count(void)
{
    fake_ibverbs_counts all = {0};
    void (*counters)(fake_ibverbs_counts *);
    *(void **)&counters = fake_ibverbs_function("fake_ibverbs_counters");
    if (counters != NULL)
        counters(&all);
    return (pinned_counts){.made = all.registrations_made,
                           .registrations = all.registrations,
                           .bytes = all.registered_bytes,
                           .reads = all.reads};
}

/* As libring asks, in the words of the kernel's interface. */
bool pinned_is_watched(void)
{
    struct uffdio_api api = {.api = UFFD_API,
                             .features = UFFD_FEATURE_EVENT_UNMAP | UFFD_FEATURE_EVENT_REMAP |
                                         UFFD_FEATURE_EVENT_REMOVE};
    const int fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK | UFFD_USER_MODE_ONLY);
    const bool can = fd >= 0 && ioctl(fd, UFFDIO_API, &api) == 0 &&
                     (api.features & UFFD_FEATURE_EXACT_ADDRESS) != 0;
    if (!can)
        printf("SKIPPED: userfaultfd is refused here, so that plain memory is copied: %m\n");
    if (fd >= 0)
        close(fd);
    return can;
}
