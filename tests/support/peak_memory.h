// What one record takes while something is done with it: the peak of a process that does nothing
// else.
#pragma once

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <functional>
#include <string>
#include <string_view>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "consumer/json/memory_bound.h"

namespace fencepost::testing {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kMemoryIsAsShipped = false;
#else
constexpr bool kMemoryIsAsShipped = true;
#endif

// In bytes, of a child that does `work`. Its words come out at `said`.
inline std::size_t PeakOf(const std::function<std::string()>& work, std::string& said) {
  int ends[2];
  EXPECT_EQ(pipe(ends), 0);
  const pid_t child = fork();
  if (child == 0) {
    const std::string words = work().substr(0, 200);
    const bool written = write(ends[1], words.data(), words.size()) >= 0;
    _exit(written ? 0 : 1);
  }
  close(ends[1]);
  char buffer[256];
  const ssize_t size = read(ends[0], buffer, sizeof buffer);
  close(ends[0]);
  said.assign(buffer, size > 0 ? static_cast<std::size_t>(size) : 0);
  int status = 0;
  rusage usage{};
  EXPECT_EQ(wait4(child, &status, 0, &usage), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << "status " << status;
  return static_cast<std::size_t>(usage.ru_maxrss) << 10;
}

// `work` says nothing, or "error" with `verdict`; what it is done to has so many bytes.
inline void ExpectBounded(std::string_view name, std::size_t bytes, std::string_view verdict,
                          const std::function<std::string()>& work) {
  std::string said;
  const std::size_t nothing = PeakOf([] { return std::string("nothing"); }, said);
  const std::size_t peak = PeakOf(work, said);
  EXPECT_THAT(said, ::testing::HasSubstr(verdict)) << name;
  EXPECT_EQ(said.find("error") == std::string::npos, verdict.empty()) << name << ": " << said;
  if (!kMemoryIsAsShipped) return;
  EXPECT_LT(peak - std::min(peak, nothing), consumer::MaxMemoryOf(bytes)) << name << ": " << said;
}

inline std::string Repeated(std::string_view piece, std::size_t times) {
  std::string all;
  for (std::size_t i = 0; i < times; ++i) all += piece;
  return all;
}
// Of JSON: the item once more than that.
inline std::string List(std::string_view item, std::size_t times) {
  return "[" + Repeated(std::string(item) + ",", times) + std::string(item) + "]";
}

}  // namespace fencepost::testing
