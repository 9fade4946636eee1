// Lists of maps in an output: effects, records. Each map is read as a section whose options are the
// last of the list.
#pragma once

#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "config/schema/schema.h"

namespace fencepost::config {

// `section` reaches the options that hold the list.
template <typename Section, typename Options, typename Of>
Target ListTarget(Section section, std::vector<Of> Options::*member) {
  Target list{.type = Type::kSections};
  list.store = [=](const Given& /*given*/, PipelineOptions& o) {
    if (auto* const to = section(o)) (to->*member).emplace_back();
  };
  list.same = [=](const PipelineOptions& a, const PipelineOptions& b) {
    const auto* const one = section(a);
    const auto* const other = section(b);
    return one == nullptr || other == nullptr || one->*member == other->*member;
  };
  return list;
}

template <typename Section, typename Options, typename Of>
auto LastOf(Section section, std::vector<Of> Options::*member) {
  return [=](auto& o) {
    auto* const at = section(o);
    return at == nullptr || (at->*member).empty() ? nullptr : &(at->*member).back();
  };
}

// The list says whether any key of its maps differs.
inline std::vector<Key> OfList(std::vector<Key> keys) {
  for (Key& key : keys) key.to.same = [](const auto&, const auto&) { return true; };
  return keys;
}

// Of a name that the record may choose: a map in its place. `section` reaches options with a route.
template <typename Section>
std::vector<Key> RouteKeys(const std::string& path, Section section) {
  using consumer::Route;
  const auto route = [section](auto& o) {
    auto* const at = section(o);
    if constexpr (!std::is_const_v<std::remove_reference_t<decltype(o)>>) {
      if (at != nullptr && !at->route) at->route.emplace();
    }
    return at == nullptr || !at->route ? nullptr : &*at->route;
  };
  Target otherwise = Bind(
      route,
      [](const Given& given, Route& to) {
        const std::string& word = given.texts.front().value;
        to.otherwise = word == "bad"    ? Route::Otherwise::kBad
                       : word == "skip" ? Route::Otherwise::kSkip
                                        : Route::Otherwise::kName;
        if (to.otherwise == Route::Otherwise::kName) to.name = word;
      },
      [](const Route&) { return std::string("bad"); });
  otherwise.type = Type::kText;
  const KeysOf keys(path, section);
  return {
      keys("by", At(route, &Route::by), "What chooses it.", {.required = true}),
      keys("of", At(route, &Route::of), "Texts, and the name for each.", {.required = true}),
      keys("otherwise", std::move(otherwise),
           "For any other text: it is a bad record (`bad`), it has none (`skip`), or a name.",
           {.default_value = "bad"}),
  };
}

}  // namespace fencepost::config
