/* SPDX-License-Identifier: Apache-2.0
 *
 * screen: standard output, and the progress bar that may stand on the terminal meanwhile as a
 * line of standard error without an end.
 */
#ifndef TRAIN_SCREEN_H
#define TRAIN_SCREEN_H

#include <stdbool.h>

typedef struct report_screen {
    bool bar_shown;
} report_screen;

/** Call before any other line is printed. @param screen  may be NULL. */
void screen_clear_bar(report_screen *screen);

#endif
