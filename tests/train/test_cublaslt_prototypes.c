/* SPDX-License-Identifier: Apache-2.0
 * Compares the declarations in cublaslt.h with those of NVIDIA's header: constants, sizes of types,
 * parameters of functions. It only has to compile. */
#include <cuda.h>

#include <cublasLt.h>

#include "cublaslt.h"

#define ROW(name, value) _Static_assert((int)(name) == (value), #name);
CUBLASLT_CONSTANTS(ROW)
#undef ROW

#define ROW(name, type) _Static_assert(sizeof(name) == sizeof(__typeof__(type)), #name);
CUBLASLT_TYPES(ROW)
#undef ROW

#define ROW(name, member, parameters) \
    _Static_assert(__builtin_types_compatible_p(__typeof__(cublasLt##name), \
                                                cublasStatus_t parameters), \
                   #name);
CUBLASLT_FUNCTIONS(ROW)
#undef ROW

int main(void)
{
    return 0;
}
