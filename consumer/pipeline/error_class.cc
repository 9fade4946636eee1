#include "consumer/pipeline/error_class.h"

#include <algorithm>

namespace fencepost::consumer {
namespace {

// "4xx" for "404"; empty for what is no status.
std::string HundredOf(std::string_view error_class) {
  const bool status =
      error_class.size() == 3 && std::all_of(error_class.begin(), error_class.end(),
                                             [](char c) { return c >= '0' && c <= '9'; });
  return status ? std::string(1, error_class.front()) + "xx" : "";
}

}  // namespace

bool IsAboutTheCaller(std::string_view error_class) {
  static const std::vector<ErrorClass> classes{"3xx", "401", "403", "405", "407", "421", "426"};
  return MatchClass(classes, error_class) != ClassMatch::kNone;
}

ClassMatch MatchClass(const std::vector<ErrorClass>& patterns, std::string_view error_class) {
  const auto names = [&](std::string_view pattern) {
    return std::find(patterns.begin(), patterns.end(), pattern) != patterns.end();
  };
  if (names(error_class)) return ClassMatch::kExact;
  const std::string hundred = HundredOf(error_class);
  return !hundred.empty() && names(hundred) ? ClassMatch::kStatusClass : ClassMatch::kNone;
}

}  // namespace fencepost::consumer
