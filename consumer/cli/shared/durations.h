// Options that are durations: 250ms, 10s, 5m, 24h, 7d.
#pragma once

#include <string>

#include "locking/base/types.h"

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace fencepost::cli {

// `value` keeps what it has where the option is not given; it must outlive the parsing.
CLI::Option* AddDuration(CLI::App& command, const std::string& name, locking::Millis& value,
                         const std::string& help);

}  // namespace fencepost::cli
