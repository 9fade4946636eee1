// What a value takes in libjq: some hundred bytes for each object and array, however small its
// text. Pure; any thread.
#pragma once

#include <cstddef>
#include <string_view>

namespace fencepost::consumer {

// Of a valid JSON text that is read, and printed once.
std::size_t JqMemoryOf(std::string_view json);

}  // namespace fencepost::consumer
