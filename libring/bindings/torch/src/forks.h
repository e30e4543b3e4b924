// SPDX-License-Identifier: Apache-2.0
// Defines a marker for state that belongs to one process and not to its forked children.
#ifndef RING_TORCH_FORKS_H
#define RING_TORCH_FORKS_H

namespace ring_torch
{

/// Stores which process has created it. A forked child does not have the communicators, calls and
/// threads of its parent, and mutexes may be locked there for ever, so it must check this first.
/// Never blocks.
class Owner
{
  public:
    Owner();
    /// Returns false in forked children.
    bool is_this_process() const;

  private:
    unsigned forks_;
};

} // namespace ring_torch

#endif
