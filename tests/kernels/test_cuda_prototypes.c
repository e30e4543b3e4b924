/* SPDX-License-Identifier: Apache-2.0
 * That what is declared here of the CUDA driver API, for libring and for tests, is what NVIDIA's
 * header says: constants, sizes of types, parameters of functions. It need but compile. */
#define __CUDA_API_VERSION_INTERNAL /* all versions of a function, by their names */
#include <cuda.h>

#include "cuda_driver.h"
#include "fake_cuda_api.h"

#define ROW(name, value) _Static_assert((name) == (value), #name);
CUDA_CONSTANTS(ROW)
TEST_CUDA_CONSTANTS(ROW)
#undef ROW

#define ROW(name, type) _Static_assert(sizeof(name) == sizeof(__typeof__(type)), #name);
CUDA_TYPES(ROW)
TEST_CUDA_TYPES(ROW)
#undef ROW

/* Enumerations have other names for int here, and none in the header. */
#define ROW(name, member, parameters) \
    _Static_assert(__builtin_types_compatible_p(__typeof__(cu##name), CUresult parameters), #name);
CUDA_FUNCTIONS(ROW)
CUDA_OPTIONAL(ROW)
TEST_CUDA_FUNCTIONS(ROW)
#undef ROW

int main(void)
{
    return 0;
}
