// A pipeline as commands name it, for commands that people copy.
#include "consumer/cli/shared/pipelines.h"

#include <gtest/gtest.h>

namespace fencepost::cli {
namespace {

std::string Words(const std::string& file, std::vector<std::string> with,
                  std::vector<std::string> set) {
  return InWords({.files = {file}, .beside = {.with = std::move(with), .set = std::move(set)}});
}

TEST(PipelineInWords, HasAllThatWasGivenAsAShellReadsIt) {
  EXPECT_EQ(Words("a.yaml", {}, {}), "a.yaml");
  EXPECT_EQ(Words("a.yaml", {"b.yaml", "../c d.yaml"}, {"lock.ttl=5s", "kafka.topics=[a, b]"}),
            "a.yaml --with b.yaml --with '../c d.yaml' --set lock.ttl=5s --set "
            "'kafka.topics=[a, b]'");
  EXPECT_EQ(Words("it's.yaml", {}, {}), "'it'\\''s.yaml'");
  EXPECT_EQ(Words("", {}, {}), "''");
}

TEST(PipelineInWords, HasNoSecret) {
  const std::pair<const char*, const char*> rows[] = {
      {"output.postgres.dsn=postgresql://u:p@h/d", "output.postgres.dsn=…"},
      {"output.postgres={dsn: x}", "output.postgres=…"},
      {"handler.http.headers.Authorization=Bearer x", "handler.http.headers.Authorization=…"},
      {"handler.http.url=http://u:p@h/", "'handler.http.url=http://***@h/'"},
      {"lock.ttl", "lock.ttl"}};
  for (const auto& [setting, shown] : rows) {
    EXPECT_EQ(Words("a", {}, {setting}), std::string("a --set ") + shown);
  }
}

}  // namespace
}  // namespace fencepost::cli
