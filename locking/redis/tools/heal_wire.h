// The calls of the scripts `look` and `heal`, and their answers (locking/core/scripts). Pure
// functions; any thread.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <tl/expected.hpp>

#include "locking/core/store/heal.h"

namespace fencepost::locking {

// Appends the RESP command that looks at `names`: whole keys, at most kMaxBatch, or none.
void FormatLook(std::span<const std::string> names, std::string& out);
// One value a name. Error: the text is not what the script says.
tl::expected<NodeSight, std::string> ParseLook(std::string_view payload, std::size_t names);

// Appends the RESP command that writes under `sentinel`, the text that was read.
void FormatHeal(std::string_view sentinel, std::span<const HealWrite> writes, std::string& out);
// Whether each write took effect.
tl::expected<std::vector<bool>, std::string> ParseHeal(std::string_view payload,
                                                       std::size_t writes);

}  // namespace fencepost::locking
