#include "consumer/pipeline/route.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

namespace fencepost::consumer {
namespace {

// 'a', 'b' and 3 more: of the file.
std::string TextsOf(const Route& route) {
  constexpr std::size_t kNamed = 5;
  std::string texts;
  for (std::size_t i = 0; i < std::min(kNamed, route.of.size()); ++i) {
    texts += fmt::format("{}'{}'", i == 0 ? "" : ", ", route.of[i].first);
  }
  if (route.of.size() <= kNamed) return texts;
  return fmt::format("{} and {} more", texts, route.of.size() - kNamed);
}

}  // namespace

std::vector<std::string> NamesOf(const Route& route) {
  std::vector<std::string> names;
  const auto add = [&](const std::string& name) {
    if (std::ranges::find(names, name) == names.end()) names.push_back(name);
  };
  for (const auto& [found, name] : route.of) add(name);
  if (route.otherwise == Route::Otherwise::kName) add(route.name);
  return names;
}

std::vector<std::string> NamesOf(const std::string& name, const std::optional<Route>& route) {
  return route ? NamesOf(*route) : std::vector<std::string>{name};
}

std::vector<std::string> TopicsOf(const KafkaOutputOptions& output) {
  std::vector<std::string> topics;
  for (const KafkaRecord& record : RecordsOf(output)) {
    for (std::string& name : NamesOf(record.topic, record.route)) {
      if (std::ranges::find(topics, name) == topics.end()) topics.push_back(std::move(name));
    }
  }
  return topics;
}

tl::expected<std::optional<std::string_view>, std::string> Choose(const Route& route,
                                                                  Evaluator& evaluator,
                                                                  std::string& buffer) {
  buffer.clear();
  const auto found = evaluator.Append(route.by, buffer);
  if (!found) return tl::unexpected(found.error());
  if (*found) {
    for (const auto& [text, name] : route.of) {
      if (text == buffer) return name;
    }
  }
  if (route.otherwise == Route::Otherwise::kSkip) return std::nullopt;
  if (route.otherwise == Route::Otherwise::kName) return route.name;
  return tl::unexpected(route.by.InWords() + " gives none of " + TextsOf(route));
}

}  // namespace fencepost::consumer
