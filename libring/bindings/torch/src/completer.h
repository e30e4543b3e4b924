// SPDX-License-Identifier: Apache-2.0
// Declares the completer: one thread of the process, which completes operations for which perhaps
// no other thread waits, because the user has taken their future or dropped their Work. It sleeps
// until a call has ended.
#ifndef RING_TORCH_COMPLETER_H
#define RING_TORCH_COMPLETER_H

#include <memory>

#include "operation.h"

namespace ring_torch
{

/// Passes an operation to the thread. The first call starts the thread. Returns false after
/// stop_completer(), or if the thread cannot be created; then the operation's tensors are never
/// freed.
bool complete_later(std::shared_ptr<Operation> operation);

/// The `on_done` of every asynchronous call. Wakes the thread if it has operations.
void call_has_ended(void *context, ring_status status);

/// Ends the thread, after its current callback has returned. Must be called before the interpreter
/// ends, without the interpreter's lock. Operations in flight end with their communicators.
void stop_completer();

} // namespace ring_torch

#endif
