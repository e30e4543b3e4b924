// SPDX-License-Identifier: Apache-2.0
// Counts the forks between the process that has loaded this module and the current process.
#include "forks.h"

#include <atomic>

#include <pthread.h>

namespace ring_torch
{

namespace
{

std::atomic<unsigned> forks{0};
const int watching = pthread_atfork(nullptr, nullptr, [] { forks++; });

} // namespace

Owner::Owner() : forks_(forks)
{
    (void)watching;
}

bool Owner::is_this_process() const
{
    return forks_ == forks;
}

} // namespace ring_torch
