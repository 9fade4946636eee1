// The loop of a client under test, which the test itself turns.
#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>
#include <asio/io_context.hpp>

namespace fencepost::locking {

// Runs the loop until the condition holds; else what was waited for, and what was noted meanwhile.
inline ::testing::AssertionResult RunUntil(
    asio::io_context& io, const std::vector<std::string>& notes, std::string_view what,
    const std::function<bool()>& condition,
    std::chrono::milliseconds limit = std::chrono::seconds(20)) {
  const auto end = std::chrono::steady_clock::now() + limit;
  while (!condition()) {
    if (std::chrono::steady_clock::now() >= end) {
      auto failure = ::testing::AssertionFailure() << "waited in vain for " << what;
      for (const std::string& note : notes) failure << "\n  " << note;
      return failure;
    }
    io.restart();
    io.run_one_for(std::chrono::milliseconds(5));
  }
  return ::testing::AssertionSuccess();
}

}  // namespace fencepost::locking
