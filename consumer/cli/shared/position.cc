#include "consumer/cli/shared/position.h"

#include <fmt/format.h>

#include "consumer/cli/shared/bytes_text.h"
#include "consumer/record/position_id.h"

namespace fencepost::cli {
namespace {

// Cuts off what follows the last slash; empty: there is none.
std::string_view TakeLast(std::string_view& text) {
  const std::size_t slash = text.rfind('/');
  if (slash == std::string_view::npos) return "";
  const std::string_view last = text.substr(slash + 1);
  text = text.substr(0, slash);
  return last;
}

}  // namespace

std::optional<Position> ParsePosition(std::string_view text) {
  Position position;
  if (!ReadNumber(TakeLast(text), position.offset)) return std::nullopt;
  if (!ReadNumber(TakeLast(text), position.where.partition)) return std::nullopt;
  position.where.topic = text.substr(text.rfind('/') + 1);
  if (position.where.topic.empty()) return std::nullopt;
  return position;
}

std::optional<std::string> WhyNoPosition(const consumer::PipelineOptions& options,
                                         std::string_view id, std::string_view how) {
  if (!options.identity.ByPosition() || consumer::ParsePositionId(id)) return std::nullopt;
  return fmt::format(
      "{} is no id of pipeline {}: its ids are positions (record_id: position), written "
      "CLUSTERID/TOPIC/PARTITION/OFFSET; name the record by {}",
      Printable(id), options.name, how);
}

}  // namespace fencepost::cli
