/* SPDX-License-Identifier: Apache-2.0
 * Waits for the signals in a thread of its own. Signal handlers are not used, because the frame of
 * a handler on top of a kernel of oneDNN 2.6.3 corrupted the heap (decision 29). */
#include "stop_signals.h"

#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

#include "clock.h"

/* The sum over ranks is one float64 with three counters, one for each signal. */
enum { COUNT_BITS = 17 };

/* One Ctrl-C may arrive twice within this time: from the terminal and from the launcher. The
 * terminal sends only one signal for each Ctrl-C, so a second signal from it is a second Ctrl-C. */
#define TWICE_SECONDS 1.0

/* If ranks received different signals, the last of them in this list counts. */
static const int signals[] = {SIGHUP, SIGINT, SIGTERM};
enum { SIGNALS = sizeof signals / sizeof *signals };

static sigset_t watched;
static atomic_bool begun;
static atomic_int taken; /* 1 + the index of the first signal in the list; 0: no signal yet */

/* Ends the process by the signal, as if the signal had not been blocked. */
static void end_process(int number)
{
    sigset_t one;
    sigemptyset(&one);
    sigaddset(&one, number);
    signal(number, SIG_DFL);
    raise(number);
    pthread_sigmask(SIG_UNBLOCK, &one, NULL);
}

/* Takes the signals one by one. The first signal after stop_signals_begin() requests a stop. An
 * earlier signal, or a second request, ends the process. A later signal is a second request unless
 * it is the other copy of the same Ctrl-C. */
static void *wait_for_signals(void *unused)
{
    double first = 0.0;
    bool typed = false; /* a signal came from the terminal */
    siginfo_t info;
    for (int number; (number = sigwaitinfo(&watched, &info)) > 0 || errno == EINTR;) {
        const bool asked = atomic_load(&taken) != 0;
        const bool typed_again = typed && info.si_code == SI_KERNEL;
        if (number < 0)
            continue;
        if (!atomic_load(&begun) || (asked && (typed_again || train_now() - first > TWICE_SECONDS)))
            end_process(number);
        typed = typed || info.si_code == SI_KERNEL;
        if (asked)
            continue;
        first = train_now();
        for (int i = 0; i < SIGNALS; i++) {
            if (signals[i] == number)
                atomic_store(&taken, i + 1);
        }
    }
    return unused;
}

void stop_signals_watch(void)
{
    pthread_t thread;
    struct sigaction action;
    sigemptyset(&watched);
    for (size_t i = 0; i < SIGNALS; i++) {
        if (sigaction(signals[i], NULL, &action) == 0 && action.sa_handler != SIG_IGN)
            sigaddset(&watched, signals[i]);
    }
    pthread_sigmask(SIG_BLOCK, &watched, NULL);
    if (pthread_create(&thread, NULL, wait_for_signals, NULL) == 0)
        pthread_detach(thread);
    else
        pthread_sigmask(SIG_UNBLOCK, &watched, NULL);
}

void stop_signals_begin(void)
{
    atomic_store(&begun, true);
}

double stop_signals_asked(void)
{
    const int number = atomic_load(&taken);
    return number != 0 ? ldexp(1.0, COUNT_BITS * (number - 1)) : 0.0;
}

int stop_signals_of(double sum)
{
    for (int i = SIGNALS - 1; i >= 0; i--) {
        if (sum >= ldexp(1.0, COUNT_BITS * i))
            return signals[i];
    }
    return 0;
}
