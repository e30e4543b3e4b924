/* SPDX-License-Identifier: Apache-2.0
 *
 * stop_signals: turns SIGINT, SIGTERM and SIGHUP into a request to stop the run. All ranks learn of
 * the request from the sum of the same update, and stop after that update. A second signal ends the
 * process at once.
 */
#ifndef TRAIN_STOP_SIGNALS_H
#define TRAIN_STOP_SIGNALS_H

/** Blocks the signals and starts the thread that waits for them. Call this before the process has
 *  other threads, so that they inherit the blocked signals. A signal that the process ignores
 *  (nohup) stays ignored. */
void stop_signals_watch(void);

/** From now on a signal requests a stop; before this call it ends the process. */
void stop_signals_begin(void);

/** @return this rank's summand of the sum over ranks; 0 before a signal. */
double stop_signals_asked(void);

/** @return the signal that the sum over ranks contains; 0: no signal. */
int stop_signals_of(double sum);

#endif
