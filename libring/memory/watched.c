/* SPDX-License-Identifier: Apache-2.0
 * Implements the watching of memory with userfaultfd(2). A thread reads the kernel's events and
 * marks the ranges that have changed. A thread that checks a range first waits until the events of
 * all earlier changes have been applied.
 *
 * It detects that as follows. A system call that changes mappings raises a count in the kernel
 * while it still holds the lock of the address space, and lowers the count after its event has been
 * read. While the count is not zero, UFFDIO_WRITEPROTECT fails with EAGAIN. The reading thread
 * makes `reads` odd before it reads events, and even again after it has applied them. So if
 * UFFDIO_WRITEPROTECT does not fail with EAGAIN, and `reads` is even after that, all earlier
 * changes have been applied.
 */
#include "watched.h"

#include "mappings.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <poll.h>
#include <sched.h>
#include <stdatomic.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef UFFD_USER_MODE_ONLY
#define UFFD_USER_MODE_ONLY 1
#endif
#ifndef UFFD_FEATURE_EXACT_ADDRESS
#define UFFD_FEATURE_EXACT_ADDRESS (1 << 11)
#endif
#ifndef USERFAULTFD_IOC_NEW
#define USERFAULTFD_IOC_NEW _IO(0xAA, 0x00)
#endif

/* The event of forks is not requested: it needs privileges, and children close this descriptor. */
#define EVENTS (UFFD_FEATURE_EVENT_UNMAP | UFFD_FEATURE_EVENT_REMAP | UFFD_FEATURE_EVENT_REMOVE)
/* The features that the kernel must have. Ranges are registered for write protection, but no page
 * is ever protected. A kernel with exact addresses is Linux 5.18 or newer. That also ensures that
 * the kernel's count is not the flag of Linux before 5.15, which two simultaneous changes broke. */
#define NEEDED (EVENTS | UFFD_FEATURE_PAGEFAULT_FLAG_WP | UFFD_FEATURE_EXACT_ADDRESS)

enum { BATCH = 16 }; /* events read by one system call */
double watched_patience = 0.02;

/* A watched range. */
typedef struct range {
    _Atomic uintptr_t from, to; /* `to` is 0 if the range is not in use */
    _Atomic bool changed;       /* an event has reported a change of a page */
} range;

static struct {
    pthread_mutex_t lock; /* guards all members but the atomics; the thread never takes it */
    bool running;         /* the thread was started */
    pthread_t thread;
    int bell;                   /* an eventfd that ends the thread */
    _Atomic int fd;             /* the userfaultfd */
    _Atomic bool refused, news; /* the results of watched_is_refused() and watched_has_news() */
    _Atomic uint64_t reads;     /* see the head of this file */
    range ranges[WATCHED_MOST];
} watch = {.lock = PTHREAD_MUTEX_INITIALIZER, .bell = -1, .fd = -1};

/* ---- The thread ------------------------------------------------------------------- */

/* Marks all ranges that overlap the changed addresses. */
static void note_change(uintptr_t from, uintptr_t to)
{
    for (int i = 0; i < WATCHED_MOST; i++) {
        range *r = &watch.ranges[i];
        if (from >= atomic_load(&r->to) || atomic_load(&r->from) >= to)
            continue;
        atomic_store(&r->changed, true);
        atomic_store(&watch.news, true);
    }
}

/* Reads and applies all pending events. */
static void read_events(int fd)
{
    struct uffd_msg messages[BATCH];
    ssize_t got;
    atomic_fetch_add(&watch.reads, 1);
    while ((got = read(fd, messages, sizeof messages)) > 0)
        for (size_t i = 0; i < (size_t)got / sizeof *messages; i++) {
            const struct uffd_msg *m = &messages[i];
            if (m->event == UFFD_EVENT_UNMAP || m->event == UFFD_EVENT_REMOVE) {
                note_change(m->arg.remove.start, m->arg.remove.end);
            } else if (m->event == UFFD_EVENT_REMAP) {
                note_change(m->arg.remap.from, m->arg.remap.from + m->arg.remap.len);
                note_change(m->arg.remap.to, m->arg.remap.to + m->arg.remap.len);
            }
        }
    atomic_fetch_add(&watch.reads, 1);
}

/* The thread closes the descriptor, which ends all watching, before it ends. The C library may
 * discard the stack of an ended thread, and with an open descriptor that system call would wait for
 * a thread that reads its event. */
static void *run(void *unused)
{
    int fd = atomic_load(&watch.fd);
    struct pollfd fds[2] = {{.fd = fd, .events = POLLIN}, {.fd = watch.bell, .events = POLLIN}};
    while (fds[1].revents == 0) {
        if (poll(fds, 2, -1) > 0 && fds[0].revents != 0)
            read_events(fd);
    }
    fd_close(&fd);
    return unused;
}

/* ---- Opening ---------------------------------------------------------------------- */

/* Opens a userfaultfd: by the system call, which may need privileges, else by its device file.
 * @return -1, with the errno of the system call, if both fail. */
static int new_descriptor(void)
{
    const int flags = O_CLOEXEC | O_NONBLOCK | UFFD_USER_MODE_ONLY;
    const int fd = (int)syscall(SYS_userfaultfd, flags);
    if (fd >= 0)
        return fd;
    const int error = errno;
    int device = open("/dev/userfaultfd", O_RDWR | O_CLOEXEC);
    const int other = device >= 0 ? ioctl(device, USERFAULTFD_IOC_NEW, flags) : -1;
    fd_close(&device);
    errno = error;
    return other;
}

/* Opens a userfaultfd that reports the needed events. @return -1, with the reason in @p why, if it
 * fails. */
static int open_descriptor(char *why, size_t size)
{
    struct uffdio_api api = {.api = UFFD_API, .features = EVENTS};
    int fd = fd_guard(new_descriptor());
    if (fd < 0) {
        text_format(why, size, "userfaultfd: %m");
        return -1;
    }
    if (ioctl(fd, UFFDIO_API, &api) == 0 && (api.features & NEEDED) == NEEDED)
        return fd;
    text_format(
        why, size,
        "userfaultfd: this kernel does not report all events that libring needs; Linux 5.18 "
        "or newer on x86-64 does");
    fd_close(&fd);
    return -1;
}

bool watched_probe(char *why, size_t size)
{
    int fd = open_descriptor(why, size);
    const bool can = fd >= 0;
    fd_close(&fd);
    return can;
}

static void close_descriptors(void)
{
    int fd = atomic_exchange(&watch.fd, -1);
    fd_close(&fd);
    fd_close(&watch.bell);
}

/* Opens the descriptor and starts the thread, unless they exist. @return false if it cannot. */
static bool open_locked(void)
{
    char why[160] = "";
    if (watch.running || watched_is_refused())
        return watch.running;
    atomic_store(&watch.fd, open_descriptor(why, sizeof why));
    if (watch.fd >= 0) {
        watch.bell = fd_guard(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
        errno = watch.bell >= 0 ? thread_start(&watch.thread, run, NULL) : errno;
        watch.running = watch.bell >= 0 && errno == 0;
        if (watch.running)
            return true;
        text_format(why, sizeof why, "starting a thread: %m");
    }
    close_descriptors();
    atomic_store(&watch.refused, true);
    log_info("unregistered memory is copied, because libring cannot detect when it is unmapped: %s",
             why);
    return false;
}

bool watched_is_refused(void)
{
    return atomic_load_explicit(&watch.refused, memory_order_relaxed);
}

static void end_all(void)
{
    for (unsigned i = 0; i < WATCHED_MOST; i++)
        watched_end(i);
}

void watched_close(void)
{
    const uint64_t one = 1;
    pthread_mutex_lock(&watch.lock);
    if (watch.running && write(watch.bell, &one, sizeof one) == sizeof one) {
        pthread_join(watch.thread, NULL);
        atomic_store(&watch.fd, -1); /* the thread has closed it */
        close_descriptors();
        watch.running = false;
        end_all();
    }
    pthread_mutex_unlock(&watch.lock);
}

/* ---- Ranges ----------------------------------------------------------------------- */

/* @return true if all earlier changes have been applied, see the head of this file. The ioctl
 * protects no page, since its range is empty. An empty range is an error, too, but the kernel
 * checks the range after the count. */
static bool all_is_applied(void)
{
    struct uffdio_writeprotect nothing = {.mode = 0};
    if (ioctl(atomic_load(&watch.fd), UFFDIO_WRITEPROTECT, &nothing) == 0 || errno == EAGAIN)
        return false;
    /* A read-modify-write, so that `reads` is not read before the ioctl. */
    return atomic_fetch_or(&watch.reads, 0) % 2 == 0;
}

/* Waits until all earlier changes have been applied. @return false if that takes too long, because
 * other threads change mappings all the time, or the reading thread does not get a core. */
static bool settle(void)
{
    double deadline = 0;
    while (!all_is_applied()) {
        const double now = clock_now();
        deadline = deadline == 0 ? now + watched_patience : deadline;
        if (now >= deadline)
            return false;
        sched_yield();
    }
    return true;
}

/* The range is set before it is registered, so that no event of it is missed. Changes before that
 * do not matter. */
bool watched_begin(unsigned number, const void *base, size_t bytes)
{
    range *r = &watch.ranges[number];
    mappings_range around;
    pthread_mutex_lock(&watch.lock);
    bool watches = open_locked() && mappings_around(base, bytes, &around);
    if (watches) {
        (void)settle();
        atomic_store(&r->changed, false);
        atomic_store(&r->from, (uintptr_t)base);
        atomic_store(&r->to, (uintptr_t)base + bytes);
        struct uffdio_register whole = {.range = {around.from, around.to - around.from},
                                        .mode = UFFDIO_REGISTER_MODE_WP};
        watches = ioctl(watch.fd, UFFDIO_REGISTER, &whole) == 0;
    }
    if (!watches)
        watched_end(number);
    pthread_mutex_unlock(&watch.lock);
    return watches;
}

void watched_end(unsigned number)
{
    atomic_store(&watch.ranges[number].to, 0);
}

bool watched_is_whole(unsigned number)
{
    const range *r = &watch.ranges[number];
    return settle() && !atomic_load(&r->changed) && atomic_load(&r->to) != 0;
}

bool watched_has_news(void)
{
    return atomic_load_explicit(&watch.news, memory_order_relaxed) &&
           atomic_exchange(&watch.news, false);
}

/* ---- Forks ------------------------------------------------------------------------ */

static void before_fork(void)
{
    pthread_mutex_lock(&watch.lock);
}

static void in_parent(void)
{
    pthread_mutex_unlock(&watch.lock);
}

/* The child does not have the thread, and its copies of the descriptors are closed (fd_guard()). */
static void in_child(void)
{
    watch.running = false;
    watch.bell = -1;
    atomic_store(&watch.fd, -1);
    atomic_store(&watch.reads, 0);
    atomic_store(&watch.refused, false);
    end_all();
    pthread_mutex_unlock(&watch.lock);
}

__attribute__((constructor)) static void watch_forks(void)
{
    pthread_atfork(before_fork, in_parent, in_child);
}
