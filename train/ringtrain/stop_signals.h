/* SPDX-License-Identifier: Apache-2.0
 *
 * stop_signals: turns SIGINT, SIGTERM and SIGHUP into a request to stop the run. Each update sums
 * the requests of all ranks, so all ranks stop after the same update. A second signal ends the
 * process at once.
 */
#ifndef TRAIN_STOP_SIGNALS_H
#define TRAIN_STOP_SIGNALS_H

/** Blocks the signals and starts the thread that waits for them. Call this before the process has
 *  other threads, so that they inherit the blocked signals. A signal that the process ignores
 *  (nohup) stays ignored. */
void stop_signals_watch(void);

/** From this call on, a signal requests a stop. Before this call, a signal ends the process. */
void stop_signals_begin(void);

/** @return this rank's summand: its request as a number; 0: no signal yet. */
double stop_signals_asked(void);

/** @return the signal that the ranks received. @param sum  of all ranks' summands; 0: no signal */
int stop_signals_of(double sum);

#endif
