#include "consumer/cli/shared/durations.h"

#include <charconv>
#include <map>
#include <optional>
#include <string_view>

#include <CLI/CLI.hpp>

namespace fencepost::cli {
namespace {

constexpr std::int64_t kMost = 999'999'999'999;

std::optional<locking::Millis> Parse(std::string_view text) {
  static const std::map<std::string_view, std::int64_t> kUnits{
      {"ms", 1}, {"s", 1000}, {"m", 60'000}, {"h", 3'600'000}, {"d", 86'400'000}};
  std::int64_t count = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), count);
  if (error != std::errc() || count < 0) return std::nullopt;
  const auto unit = kUnits.find(text.substr(static_cast<std::size_t>(end - text.data())));
  if (unit == kUnits.end() || count > kMost / unit->second) return std::nullopt;
  return locking::Millis(count * unit->second);
}

}  // namespace

CLI::Option* AddDuration(CLI::App& command, const std::string& name, locking::Millis& value,
                         const std::string& help) {
  return command
      .add_option_function<std::string>(
          name,
          [&value, name](const std::string& text) {
            const auto parsed = Parse(text);
            if (!parsed) {
              throw CLI::ValidationError(name, text + " is no duration; write 250ms, 10s, 5m, 24h");
            }
            value = *parsed;
          },
          help)
      ->type_name("DURATION");
}

}  // namespace fencepost::cli
