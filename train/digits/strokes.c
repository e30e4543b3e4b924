/* SPDX-License-Identifier: Apache-2.0
 * Lists the shapes of the digits. The ends of closed curves do not meet exactly, as in handwriting.
 */
#include "strokes.h"

static const digit_form zero[] = {
    {1,
     {{10,
       {{.58f, .12f},
        {.34f, .16f},
        {.22f, .36f},
        {.22f, .62f},
        {.34f, .86f},
        {.56f, .88f},
        {.74f, .70f},
        {.78f, .42f},
        {.70f, .18f},
        {.50f, .12f}}}}},
};
static const digit_form one[] = {
    {1, {{2, {{.54f, .10f}, {.48f, .90f}}}}},
    {2, {{3, {{.34f, .28f}, {.46f, .20f}, {.54f, .10f}}}, {2, {{.54f, .10f}, {.52f, .90f}}}}},
};
static const digit_form two[] = {
    {2,
     {{7,
       {{.26f, .28f},
        {.36f, .13f},
        {.58f, .11f},
        {.72f, .27f},
        {.64f, .48f},
        {.44f, .68f},
        {.24f, .86f}}},
      {3, {{.24f, .86f}, {.50f, .84f}, {.78f, .86f}}}}},
    {1,
     {{10,
       {{.28f, .26f},
        {.44f, .12f},
        {.66f, .18f},
        {.68f, .40f},
        {.50f, .62f},
        {.30f, .80f},
        {.24f, .72f},
        {.38f, .68f},
        {.56f, .82f},
        {.78f, .84f}}}}},
};
static const digit_form three[] = {
    {1,
     {{10,
       {{.28f, .18f},
        {.48f, .10f},
        {.68f, .18f},
        {.68f, .34f},
        {.48f, .46f},
        {.68f, .52f},
        {.76f, .70f},
        {.62f, .87f},
        {.40f, .89f},
        {.24f, .80f}}}}},
};
static const digit_form four[] = {
    {2,
     {{5, {{.36f, .12f}, {.30f, .34f}, {.24f, .54f}, {.50f, .56f}, {.80f, .52f}}},
      {3, {{.66f, .24f}, {.62f, .56f}, {.58f, .92f}}}}},
    {2,
     {{4, {{.60f, .10f}, {.40f, .36f}, {.20f, .62f}, {.80f, .62f}}},
      {2, {{.60f, .10f}, {.60f, .92f}}}}},
};
static const digit_form five[] = {
    {2,
     {{8,
       {{.34f, .14f},
        {.31f, .30f},
        {.28f, .46f},
        {.50f, .40f},
        {.72f, .54f},
        {.72f, .74f},
        {.52f, .89f},
        {.26f, .84f}}},
      {2, {{.34f, .14f}, {.76f, .12f}}}}},
};
static const digit_form six[] = {
    {1,
     {{10,
       {{.64f, .10f},
        {.44f, .24f},
        {.30f, .46f},
        {.24f, .70f},
        {.36f, .88f},
        {.58f, .88f},
        {.72f, .72f},
        {.62f, .54f},
        {.42f, .54f},
        {.28f, .68f}}}}},
};
static const digit_form seven[] = {
    {2,
     {{2, {{.22f, .16f}, {.76f, .14f}}},
      {4, {{.76f, .14f}, {.62f, .40f}, {.50f, .66f}, {.42f, .92f}}}}},
    {3,
     {{2, {{.22f, .16f}, {.76f, .14f}}},
      {4, {{.76f, .14f}, {.62f, .40f}, {.50f, .66f}, {.44f, .92f}}},
      {2, {{.38f, .52f}, {.70f, .50f}}}}},
};
static const digit_form eight[] = {
    {1,
     {{12,
       {{.64f, .22f},
        {.50f, .10f},
        {.32f, .20f},
        {.36f, .38f},
        {.58f, .52f},
        {.72f, .70f},
        {.58f, .89f},
        {.36f, .87f},
        {.28f, .70f},
        {.44f, .52f},
        {.62f, .38f},
        {.66f, .22f}}}}},
};
static const digit_form nine[] = {
    {2,
     {{8,
       {{.70f, .22f},
        {.50f, .11f},
        {.30f, .24f},
        {.32f, .44f},
        {.52f, .48f},
        {.68f, .36f},
        {.71f, .22f},
        {.70f, .16f}}},
      {3, {{.70f, .20f}, {.68f, .54f}, {.56f, .92f}}}}},
};

#define FORMS(name) \
    { \
        name, (int)(sizeof name / sizeof *name) \
    }

static const struct {
    const digit_form *forms;
    int count;
} digits[10] = {FORMS(zero), FORMS(one), FORMS(two),   FORMS(three), FORMS(four),
                FORMS(five), FORMS(six), FORMS(seven), FORMS(eight), FORMS(nine)};

const digit_form *digit_forms(int digit, int *forms)
{
    *forms = digits[digit].count;
    return digits[digit].forms;
}
