/* SPDX-License-Identifier: Apache-2.0
 * Delivers frames late: the oldest frame stays hidden from the reader until the delay has passed
 * since its arrival was detected. A timer then wakes the reader. */
#include "fault.h"

#include <math.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>

/* @param how  EPOLL_CTL_ADD or EPOLL_CTL_MOD. */
static bool watch(fault_link *l, int how, int fd, uint32_t events)
{
    struct epoll_event event = {.events = events};
    return epoll_ctl(l->hold.epoll, how, fd, &event) == 0;
}

ring_status fault_hold_open(fault_link *l)
{
    if (l->spec.delay <= 0)
        return RING_OK;
    const int inner_fd = l->inner->transport->wake_fd(l->inner);
    l->hold.epoll = epoll_create1(EPOLL_CLOEXEC);
    l->hold.timer = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
    if (l->hold.epoll < 0 || l->hold.timer < 0 ||
        !watch(l, EPOLL_CTL_ADD, l->hold.timer, EPOLLIN) ||
        !watch(l, EPOLL_CTL_ADD, inner_fd, EPOLLIN))
        return fail(RING_ERR_SYSTEM, "creating a timer for delayed frames: %m");
    return RING_OK;
}

void fault_hold_close(fault_link *l)
{
    fd_close(&l->hold.timer);
    fd_close(&l->hold.epoll);
}

bool fault_hold_back(fault_link *l)
{
    if (l->spec.delay <= 0)
        return false;
    const double now = clock_now();
    if (!l->hold.timed)
        l->hold.due = now + l->spec.delay;
    l->hold.timed = true;
    l->hold.shown = now >= l->hold.due;
    return !l->hold.shown;
}

void fault_hold_next(fault_link *l)
{
    l->hold.timed = l->hold.shown = false;
}

bool fault_holds(const fault_link *l)
{
    return l->hold.timed && !l->hold.shown;
}

int fault_hold_fd(const fault_link *l)
{
    return l->spec.delay > 0 ? l->hold.epoll : l->inner->transport->wake_fd(l->inner);
}

static bool set_timer(const fault_link *l, double seconds)
{
    const double whole = floor(seconds);
    const struct itimerspec when = {
        .it_value = {.tv_sec = (time_t)whole, .tv_nsec = (long)((seconds - whole) * 1e9)}};
    return timerfd_settime(l->hold.timer, 0, &when, NULL) == 0;
}

bool fault_hold_arm(fault_link *l, bool inner)
{
    if (l->spec.delay <= 0)
        return true;
    double left = 0; /* disarms the timer */
    if (fault_holds(l)) {
        left = l->hold.due - clock_now();
        if (left < 1e-9)
            return false;
    }
    const int inner_fd = l->inner->transport->wake_fd(l->inner);
    return set_timer(l, left) && watch(l, EPOLL_CTL_MOD, inner_fd, inner ? EPOLLIN : 0);
}

void fault_hold_disarm(fault_link *l)
{
    if (l->spec.delay > 0)
        (void)set_timer(l, 0); /* also clears an expiry that was not read */
}
