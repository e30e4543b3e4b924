/* SPDX-License-Identifier: Apache-2.0
 *
 * screen: keeps lines of standard output apart from the progress bar, which is an unfinished line
 * of standard error on the same terminal.
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
