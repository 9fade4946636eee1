// One part of a JSON text set by its pointer (RFC 6901), as bytes: all others stay as they are, and
// so do the digits of all numbers. Pure; any thread.
#pragma once

#include <string>
#include <string_view>

#include <tl/expected.hpp>

namespace fencepost::consumer {

// `value`, which is one JSON document, takes the place of what `pointer` (not empty, without a
// problem) finds in `text`. Where it finds nothing, the objects that are missing are made; an array
// gets no new element. Error: why it cannot be set, without anything of the text but what `pointer`
// names: the text is not one JSON document, or a value on the way takes no name.
tl::expected<std::string, std::string> SetJsonPart(std::string_view text, std::string_view pointer,
                                                   std::string_view value);

}  // namespace fencepost::consumer
