// Tokens for a Kafka broker without a validator of its own.
#pragma once

#include <chrono>
#include <string>

#include <fmt/format.h>

#include "consumer/json/json_text.h"

namespace fencepost::testing {

// A JWT without a signature (RFC 7519, 6) that ends after `life`.
inline std::string UnsignedJwt(std::chrono::seconds life) {
  const auto now = std::chrono::duration_cast<std::chrono::seconds>(
      std::chrono::system_clock::now().time_since_epoch());
  const auto part = [](const std::string& json) {
    std::string text = consumer::ToBase64(json);
    text.erase(text.find_last_not_of('=') + 1);
    for (char& c : text) c = c == '+' ? '-' : c == '/' ? '_' : c;
    return text;
  };
  return part(R"({"alg":"none"})") + "." +
         part(fmt::format(R"({{"sub":"billing","iat":{},"exp":{}}})", now.count() - 5,
                          (now + life).count())) +
         ".";
}

}  // namespace fencepost::testing
