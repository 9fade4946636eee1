// Cells that stand for an unchanged value (RowRules::keep). Pure; any thread.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "consumer/json/json_reader.h"
#include "consumer/pipeline/options.h"

namespace fencepost::consumer {

// The cell is one of the texts and nothing else, in a form that Debezium gives an unavailable value
// of PostgreSQL: the text; of bytes, what `encoding` (kNone, kBase64, kHex) makes of it; an array
// or a map of it alone; of an array of numbers, those of its bytes; of one of UUIDs, the UUID of
// its MD5. `type`: what the cell is in JSON, where its selector reads JSON.
bool IsKept(const std::vector<std::string>& keep, std::optional<JsonType> type,
            std::string_view cell, Conversion encoding);

}  // namespace fencepost::consumer
