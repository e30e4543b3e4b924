/* SPDX-License-Identifier: Apache-2.0
 *
 * stop_signals: SIGINT, SIGTERM and SIGHUP ask for the end of the run; all ranks learn of it from
 * the same update's sum, and end behind it. A second signal ends the process at once.
 */
#ifndef TRAIN_STOP_SIGNALS_H
#define TRAIN_STOP_SIGNALS_H

/** To be called before the process has other threads: those inherit that the signals are blocked,
 *  and a thread of its own takes them. One that the process ignores (nohup) stays ignored. */
void stop_signals_watch(void);

/** From now on a signal asks; until then it ends the process. */
void stop_signals_begin(void);

/** @return what this rank adds to the ranks' sum; 0 before a signal. */
double stop_signals_asked(void);

/** @return the signal that a sum over ranks speaks of; 0: none. */
int stop_signals_of(double sum);

#endif
