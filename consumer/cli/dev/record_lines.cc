#include "consumer/cli/dev/record_lines.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <simdjson.h>

#include "consumer/json/json_text.h"

namespace fencepost::cli {
namespace {

using consumer::GivenRecord;
using JsonValue = simdjson::ondemand::value;

constexpr std::array<std::string_view, 6> kNames{"topic", "partition", "key",
                                                 "value", "headers",   "timestamp"};

// A text as it is, anything else as JSON has it; nullopt: null.
std::optional<std::string> TextOf(JsonValue from) {
  if (from.type().value() == simdjson::ondemand::json_type::string) {
    return std::string(std::string_view(from.get_string()));
  }
  const std::string_view raw = consumer::Trimmed(simdjson::to_json_string(from).value());
  return raw == "null" ? std::nullopt : std::optional<std::string>(raw);
}

// The problem, or an empty text. Throws simdjson_error where a member has another type.
std::string Take(std::string_view name, JsonValue from, GivenRecord& record) {
  if (name == "topic") record.topic = std::string_view(from.get_string());
  if (name == "key") record.key = TextOf(from);
  if (name == "value") record.value = TextOf(from);
  if (name == "timestamp") record.timestamp = consumer::Millis(std::int64_t(from.get_int64()));
  if (name == "partition") {
    record.partition =
        static_cast<std::int32_t>(std::clamp<std::int64_t>(from.get_int64(), -1, INT32_MAX));
  }
  if (name != "headers") return "";
  for (auto header : from.get_object()) {
    const std::string header_name(std::string_view(header.unescaped_key()));
    auto text = TextOf(header.value());
    if (!text) return fmt::format("it is a record whose header {} is null", header_name);
    record.headers.emplace_back(header_name, std::move(*text));
  }
  return "";
}

bool IsRecord(const simdjson::padded_string& line, simdjson::ondemand::parser& parser) {
  simdjson::ondemand::document document = parser.iterate(line);
  if (document.type().value() != simdjson::ondemand::json_type::object) return false;
  bool has_value = false;
  for (auto member : document.get_object()) {
    const std::string_view name = member.unescaped_key();
    if (std::ranges::find(kNames, name) == kNames.end()) return false;
    has_value = has_value || name == "value";
  }
  return has_value;
}

}  // namespace

tl::expected<GivenRecord, std::string> ReadRecordLine(std::string_view line,
                                                      std::span<const std::string> topics,
                                                      int partitions) {
  const std::string_view problem = consumer::JsonProblem(line);
  if (!problem.empty()) return tl::unexpected(fmt::format("it is no JSON document: {}", problem));
  GivenRecord record;
  record.topic = topics.front();
  record.value = std::string(consumer::Trimmed(line));
  simdjson::ondemand::parser parser;
  const simdjson::padded_string padded(line);
  std::string_view name;
  try {
    if (!IsRecord(padded, parser)) return record;
    simdjson::ondemand::document document = parser.iterate(padded);
    for (auto member : document.get_object()) {
      name = member.unescaped_key();
      name = *std::ranges::find(kNames, name);
      if (auto why = Take(name, member.value(), record); !why.empty()) return tl::unexpected(why);
    }
  } catch (const simdjson::simdjson_error& error) {
    return tl::unexpected(fmt::format("it is a record whose {} cannot be read: {}", name,
                                      simdjson::error_message(error.error())));
  }
  if (std::ranges::find(topics, record.topic) == topics.end()) {
    return tl::unexpected(fmt::format("it is a record of the topic \"{}\", which is none of {}",
                                      record.topic, fmt::join(topics, ", ")));
  }
  if (record.partition < 0 || record.partition >= partitions) {
    return tl::unexpected(fmt::format("it is a record of partition {}; here there are 0 to {}",
                                      record.partition, partitions - 1));
  }
  return record;
}

}  // namespace fencepost::cli
