// A hash map by name, with open addressing: nothing is allocated for a name, and its bytes are
// those of the thing that it stands for, which must outlive its place in the map. Iterators and
// references end with every change. Not thread-safe.
#pragma once

#ifndef XXH_INLINE_ALL
#define XXH_INLINE_ALL
#endif
#include <xxhash.h>

#include <cstddef>
#include <functional>
#include <memory>
#include <string_view>
#include <utility>

#include <tsl/robin_map.h>

namespace fencepost::consumer {

struct NameHash {
  std::size_t operator()(std::string_view name) const {
    return XXH3_64bits(name.data(), name.size());
  }
};

// The hash is kept beside the name.
template <typename T>
using NameMap = tsl::robin_map<std::string_view, T, NameHash, std::equal_to<>,
                               std::allocator<std::pair<std::string_view, T>>, true>;

}  // namespace fencepost::consumer
