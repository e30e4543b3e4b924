/* SPDX-License-Identifier: Apache-2.0
 * Reads the variable OMP_NUM_THREADS, which also sets the threads of PyTorch and NumPy.
 */
#include "thread_count.h"

#include <stdlib.h>

int threads_wanted(void)
{
    const char *text = getenv("OMP_NUM_THREADS");
    const int threads = text != NULL ? atoi(text) : 1;
    return threads > 0 ? threads : 1;
}
