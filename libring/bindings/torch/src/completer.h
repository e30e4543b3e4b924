// SPDX-License-Identifier: Apache-2.0
// One thread of the process that ends the operations nobody may wait for: those whose future was
// taken, and those whose Work was dropped. It sleeps until a call has ended.
#ifndef RING_TORCH_COMPLETER_H
#define RING_TORCH_COMPLETER_H

#include <memory>

#include "operation.h"

namespace ring_torch
{

/// Gives an operation to the thread, which is started with the first one. False after
/// stop_completer(), and where no thread can be had: the operation's tensors stay for ever then.
bool complete_later(std::shared_ptr<Operation> operation);

/// To be the `on_done` of every asynchronous call: wakes the thread if it has operations.
void call_has_ended(void *context, ring_status status);

/// Before the interpreter goes: the thread ends, once a callback that it is in has returned, and
/// operations that are still under way are left to the communicators that end them. Not to be
/// called with the interpreter's lock.
void stop_completer();

} // namespace ring_torch

#endif
