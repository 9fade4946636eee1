#include "tests/model/flow/allocations.h"

#include <cstdlib>
#include <new>

namespace {

std::size_t allocated = 0;
bool counting = false;

}  // namespace

// By itself it calls the other one; an address sanitizer has one of its own, whose memory is not
// for the delete below.
void* operator new(std::size_t size, const std::nothrow_t& /*tag*/) noexcept {
  allocated += counting ? 1 : 0;
  return std::malloc(size == 0 ? 1 : size);
}
void* operator new(std::size_t size) {
  void* const memory = operator new(size, std::nothrow);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }

namespace fencepost::consumer {

CountAllocations::CountAllocations() { counting = true; }
CountAllocations::~CountAllocations() { counting = false; }
std::size_t Allocations() { return allocated; }

}  // namespace fencepost::consumer
