/* SPDX-License-Identifier: Apache-2.0
 * Sets the bits for subnormals in the register that controls the floating-point arithmetic of a
 * thread: MXCSR on x86-64, FPCR on AArch64. */
#include "subnormals.h"

#if defined(__x86_64__)

#include <immintrin.h>

enum { RESULTS = 0x8000 /* FTZ */, OPERANDS = 0x0040 /* DAZ */ };

uint64_t subnormals_flush(void)
{
    const unsigned int mode = _mm_getcsr();
    _mm_setcsr(mode | RESULTS | OPERANDS);
    return mode;
}

/* Restores only these two bits, so that flags of exceptions that were raised meanwhile are kept. */
void subnormals_restore(uint64_t mode)
{
    const unsigned int both = RESULTS | OPERANDS;
    _mm_setcsr((_mm_getcsr() & ~both) | ((unsigned int)mode & both));
}

#elif defined(__aarch64__)

#define BOTH ((uint64_t)1 << 24) /* FZ */

static uint64_t control(void)
{
    uint64_t mode;
    __asm__ volatile("mrs %0, fpcr" : "=r"(mode));
    return mode;
}

static void set_control(uint64_t mode)
{
    __asm__ volatile("msr fpcr, %0" : : "r"(mode) : "memory");
}

uint64_t subnormals_flush(void)
{
    const uint64_t mode = control();
    set_control(mode | BOTH);
    return mode;
}

void subnormals_restore(uint64_t mode)
{
    set_control((control() & ~BOTH) | (mode & BOTH));
}

#else

uint64_t subnormals_flush(void)
{
    return 0;
}

void subnormals_restore(uint64_t mode)
{
    (void)mode;
}

#endif
