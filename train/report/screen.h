/* SPDX-License-Identifier: Apache-2.0
 *
 * screen: removes the progress bar before a line is printed. The bar is an unfinished line of
 * standard error, and may be on the same terminal as standard output.
 */
#ifndef TRAIN_SCREEN_H
#define TRAIN_SCREEN_H

#include <stdbool.h>

typedef struct report_screen {
    bool bar_shown; /* the bar is on the terminal */
} report_screen;

/** Removes the bar if it is shown. Call this before printing a line. @param screen  may be NULL. */
void screen_clear_bar(report_screen *screen);

#endif
