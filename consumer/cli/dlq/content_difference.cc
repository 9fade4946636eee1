#include "consumer/cli/dlq/content_difference.h"

#include <map>
#include <optional>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "consumer/cli/shared/bytes_text.h"
#include "consumer/cli/shared/position.h"
#include "consumer/json/json_text.h"
#include "consumer/record/headers.h"

namespace fencepost::cli {
namespace {

using consumer::HeaderView;
using consumer::JsonProblem;
using consumer::Record;
using Json = nlohmann::ordered_json;
using Bytes = std::optional<std::string_view>;

constexpr std::size_t kMostLines = 20;
constexpr std::size_t kMostText = 200;  // characters of a value

std::string Shown(const Json& root, const std::string& pointer) {
  const Json::json_pointer at(pointer);
  if (!root.contains(at)) return "nothing";
  return Printable(root.at(at).dump(-1, ' ', false, Json::error_handler_t::replace), kMostText);
}

// Part by part, where both are objects or arrays.
bool CompareJson(std::string_view there, std::string_view here, std::vector<std::string>& lines) {
  if (!JsonProblem(there).empty() || !JsonProblem(here).empty()) return false;
  const Json first = Json::parse(there, nullptr, false);
  const Json second = Json::parse(here, nullptr, false);
  if (first.is_discarded() || second.is_discarded()) return false;
  if (!first.is_structured() || !second.is_structured()) return false;
  const std::size_t before = lines.size();
  std::map<std::string, std::size_t> ends;  // of arrays that grow, by pointer
  for (const Json& step : Json::diff(first, second)) {
    auto path = step.at("path").get<std::string>();
    if (path.ends_with("/-")) {
      const std::string array = path.substr(0, path.size() - 2);
      const Json& grows = first.at(Json::json_pointer(array));
      const std::size_t end = ends.try_emplace(array, grows.size()).first->second++;
      if (grows.is_array()) path = fmt::format("{}/{}", array, end);
    }
    lines.push_back(fmt::format("value {}: {} there, {} here",
                                path.empty() ? "as a whole" : Printable(path, kMostText),
                                Shown(first, path), Shown(second, path)));
  }
  if (lines.size() == before && there != here) {
    lines.push_back("value: the same parts; how they are written differs, or digits beyond 17");
  }
  return true;
}

}  // namespace

std::vector<std::string> ContentDifference(const Record& there, const Record& here) {
  std::vector<std::string> lines;
  const bool both = there.value && here.value;
  if (there.value != here.value && !(both && CompareJson(*there.value, *here.value, lines))) {
    lines.push_back(
        fmt::format("value: {} there, {} here", Quoted(there.value), Quoted(here.value)));
  }
  if (there.key != here.key) {
    lines.push_back(fmt::format("key: {} there, {} here", Quoted(there.key), Quoted(here.key)));
  }
  std::map<std::string_view, std::pair<std::vector<Bytes>, std::vector<Bytes>>> headers;
  for (const HeaderView& header : there.headers) headers[header.name].first.push_back(header.value);
  for (const HeaderView& header : here.headers) headers[header.name].second.push_back(header.value);
  for (const auto& [name, values] : headers) {
    const auto& [first, second] = values;
    if (first == second || consumer::IsTraceHeader(name)) continue;
    lines.push_back(fmt::format("header {}: {} there, {} here", Printable(name),
                                first.empty() ? "none" : Quoted(first.back()),
                                second.empty() ? "none" : Quoted(second.back())));
  }
  if (lines.size() > kMostLines) {
    const std::size_t more = lines.size() - kMostLines;
    lines.resize(kMostLines);
    lines.push_back(fmt::format("and {} more", more));
  }
  return lines;
}

tl::expected<std::vector<std::string>, Error> DifferenceFromSource(
    consumer::TopicReader& reader, std::string_view source, const Record& here,
    std::chrono::milliseconds limit) {
  const auto position = ParsePosition(source);
  if (!position) return std::vector{fmt::format("{} is no position", Printable(source))};
  const auto found = reader.ReadOne(position->where, position->offset, limit);
  if (!found) return tl::unexpected(found.error());
  if (!*found) {
    return std::vector{fmt::format("{} is not in the topic any more", position->Text())};
  }
  return ContentDifference((*found)->record, here);
}

}  // namespace fencepost::cli
