/* SPDX-License-Identifier: Apache-2.0
 * strokes: provides the ten digits as pen strokes in the unit square (x to the right, y down). */
#ifndef RING_DIGIT_STROKES_H
#define RING_DIGIT_STROKES_H

enum { DIGIT_MAX_STROKES = 3, DIGIT_MAX_POINTS = 12 };

typedef struct digit_point {
    float x, y;
} digit_point;

typedef struct digit_stroke {
    int points; /* number of points that the pen passes through in a smooth curve */
    digit_point at[DIGIT_MAX_POINTS];
} digit_stroke;

/** One way to write a digit. */
typedef struct digit_form {
    int strokes;
    digit_stroke stroke[DIGIT_MAX_STROKES];
} digit_form;

/** @return the forms of @p digit (0 to 9). @param[out] forms  the number of forms */
const digit_form *digit_forms(int digit, int *forms);

#endif
