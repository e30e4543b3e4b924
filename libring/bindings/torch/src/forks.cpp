// SPDX-License-Identifier: Apache-2.0
#include "forks.h"

#include <atomic>

#include <pthread.h>

namespace ring_torch
{

namespace
{

std::atomic<unsigned> forks{0}; // between the process that loaded this module and this one
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
