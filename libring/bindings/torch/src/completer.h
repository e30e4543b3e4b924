// SPDX-License-Identifier: Apache-2.0
// One thread of the process completes operations for which no thread may be waiting: those whose
// future was taken, and those whose Work was dropped. It sleeps until a call has ended.
#ifndef RING_TORCH_COMPLETER_H
#define RING_TORCH_COMPLETER_H

#include <memory>

#include "operation.h"

namespace ring_torch
{

/// Passes an operation to the thread, which is started with the first one. False after
/// stop_completer(), and if the thread cannot be created; the operation's tensors are then never
/// freed.
bool complete_later(std::shared_ptr<Operation> operation);

/// The `on_done` of every asynchronous call. It wakes the thread if it has operations.
void call_has_ended(void *context, ring_status status);

/// Ends the thread before the interpreter ends, after its current callback has returned. Operations
/// in flight are left to the communicators that end them. The caller must not hold the
/// interpreter's lock.
void stop_completer();

} // namespace ring_torch

#endif
