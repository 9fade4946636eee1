// Counts what the program allocates by `new`, while it is asked to. One thread.
#pragma once

#include <cstddef>

namespace fencepost::consumer {

struct CountAllocations {
  CountAllocations();
  ~CountAllocations();
  CountAllocations(const CountAllocations&) = delete;
  CountAllocations& operator=(const CountAllocations&) = delete;
};

// Up to now.
std::size_t Allocations();

}  // namespace fencepost::consumer
