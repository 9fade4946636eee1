// The pipelines of config/examples/, as they are in their files: what `fencepost create` prints.
#pragma once

#include <span>
#include <string_view>

namespace fencepost::config {

struct Example {
  std::string_view name;  // "orders" of orders.yaml; what belongs to one keeps its whole file name
  std::string_view text;
};

std::span<const Example> Examples();  // by name; made at build by examples/embed.cmake

}  // namespace fencepost::config
