#include "tests/model/flow/allocations.h"

#include <cstdlib>
#include <new>

namespace {

std::size_t allocated = 0;
bool counting = false;

}  // namespace

void* operator new(std::size_t size) {
  allocated += counting ? 1 : 0;
  void* const memory = std::malloc(size == 0 ? 1 : size);
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
