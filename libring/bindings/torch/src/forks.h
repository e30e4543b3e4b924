// SPDX-License-Identifier: Apache-2.0
// State that a process owns and its forked children do not.
#ifndef RING_TORCH_FORKS_H
#define RING_TORCH_FORKS_H

namespace ring_torch
{

/// Remembers the process that made it: communicators, calls and threads of the parent are not there
/// in a forked child, and a mutex may be locked there for ever. Never blocks.
class Owner
{
  public:
    Owner();
    /// False in forked children.
    bool is_this_process() const;

  private:
    unsigned forks_;
};

} // namespace ring_torch

#endif
