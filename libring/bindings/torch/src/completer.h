// SPDX-License-Identifier: Apache-2.0
// One thread of the process that ends the operations nobody may wait for: those whose future was
// taken, and those whose Work was dropped. It sleeps until a call has ended.
#ifndef RING_TORCH_COMPLETER_H
#define RING_TORCH_COMPLETER_H

#include <memory>

#include "operation.h"

namespace ring_torch
{

/// Gives an operation to the thread, which is started with the first one.
void complete_later(std::shared_ptr<Operation> operation);

/// To be the `on_done` of every asynchronous call: wakes the thread if it has operations.
void call_has_ended(void *context, ring_status status);

/// Before the interpreter goes: the thread ends, and operations that are still under way are left
/// to the communicators that end them. Futures are completed no more.
void stop_completer();

} // namespace ring_torch

#endif
