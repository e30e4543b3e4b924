/* SPDX-License-Identifier: Apache-2.0
 * Counts the orphans of the process, and starts, wakes and stops the progress thread, whose loop is
 * in progress_loop.c. */
#include "progress_thread.h"

#include <errno.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

progress_state progress = {.lock = PTHREAD_MUTEX_INITIALIZER, .bell = -1, .idle = true};

/* ---- Orphans --------------------------------------------------------------------------- */

static _Atomic int orphans; /* of all communicators for which are_counted() holds */

bool orphans_are_left(void)
{
    return atomic_load_explicit(&orphans, memory_order_relaxed) > 0;
}

/* Works of a single rank wait only for events. The thread that sets the event starts them, so they
 * do not need the progress thread. */
static bool are_counted(const ring_comm *comm)
{
    return comm->ranks > 1 || comm->sleep.by_thread;
}

void orphans_count(ring_comm *comm, int change)
{
    atomic_fetch_add_explicit(&comm->works.orphans, change, memory_order_relaxed);
    if (are_counted(comm))
        atomic_fetch_add(&orphans, change);
}

void progress_serve(ring_comm *comm)
{
    if (comm->sleep.by_thread || comm->settings.progress == PROGRESS_NONE)
        return;
    if (!are_counted(comm))
        atomic_fetch_add(&orphans, atomic_load(&comm->works.orphans));
    comm->sleep.by_thread = true;
    progress_enter();
}

/* ---- Starting, waking and stopping the thread ------------------------------------------ */

static void ring_bell(void)
{
    const uint64_t one = 1;
    const ssize_t put = write(progress.bell, &one, sizeof one);
    (void)put; /* EAGAIN: it is already readable */
}

/* Starts the thread. The caller holds the lock. Without the thread, works advance only while
 * threads are inside calls. */
static void make(void)
{
    atomic_store(&progress.idle, false);
    progress.bell = fd_guard(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    errno = progress.bell >= 0 ? thread_start(&progress.thread, progress.body, NULL) : errno;
    progress.made = errno == 0;
    progress.failed = !progress.made;
    if (progress.made)
        return;
    log_warn("cannot start the progress thread (%s): calls with ring_call.work advance only inside "
             "calls of libring, as with RING_PROGRESS=none",
             strerror(errno));
    fd_close(&progress.bell);
}

/* The exchanges of `kicked` here and in sleep_until_called() order the two threads: either the
 * thread sees the caller's orphans, or the caller sees `idle`. */
void progress_kick(void)
{
    atomic_exchange(&progress.kicked, true);
    if (!atomic_load(&progress.idle))
        return;
    pthread_mutex_lock(&progress.lock);
    if (progress.made && atomic_exchange(&progress.idle, false))
        ring_bell();
    else if (!progress.made && !progress.failed && progress.users > 0)
        make();
    pthread_mutex_unlock(&progress.lock);
}

void progress_enter(void)
{
    pthread_mutex_lock(&progress.lock);
    progress.users++;
    pthread_mutex_unlock(&progress.lock);
}

static void reset_state(void)
{
    progress.made = progress.ending = progress.failed = false;
    atomic_store(&progress.stopping, false);
    atomic_store(&progress.idle, true);
}

static void stop_thread(void)
{
    pthread_join(progress.thread, NULL);
    pthread_mutex_lock(&progress.lock);
    fd_close(&progress.bell);
    reset_state();
    /* A kick of a communicator that was created while this thread waited had no effect. */
    const bool again = progress.users > 0;
    pthread_mutex_unlock(&progress.lock);
    if (again)
        progress_kick();
}

void progress_exit(void)
{
    pthread_mutex_lock(&progress.lock);
    const bool last = --progress.users == 0 && !progress.ending, stops = last && progress.made;
    if (stops) {
        progress.ending = true;
        atomic_store(&progress.stopping, true);
        ring_bell();
    } else if (last) {
        reset_state();
    }
    pthread_mutex_unlock(&progress.lock);
    if (stops)
        stop_thread();
}

void progress_forget(void)
{
    pthread_mutex_init(&progress.lock, NULL);
    progress.users = 0;
    progress.bell = -1;
    atomic_store(&orphans, 0);
    reset_state();
}
