// A pipeline file to spoil, and what its variables are.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "config/loader.h"

namespace fencepost::config {

inline constexpr const char* kPipeline = R"(version: 1
name: orders
kafka:
  brokers: [127.0.0.1:9092]
  topics: [orders]
  start_from: earliest
record_id: json:/order_id
lock:
  redis:
    nodes: [127.0.0.1:7001, 127.0.0.1:7002, 127.0.0.1:7003]
    password: ${SECRET}
output:
  sqlite:
    path: orders.db
    table: effects
    columns:
      order_id: json:/order_id
      amount: json:/amount
)";

inline Environment FakeEnvironment() {
  Environment environment;
  environment.variable = [](const std::string& name) -> std::optional<std::string> {
    if (name == "SECRET") return "hunter2";
    return std::nullopt;
  };
  environment.read_file = [](const std::string& path) -> tl::expected<std::string, std::string> {
    if (path == "/run/secrets/redis") return "filed\n";
    return Environment::Process().read_file(path);
  };
  return environment;
}

inline std::vector<std::string> Lines(const std::vector<Finding>& findings) {
  std::vector<std::string> lines;
  for (const Finding& finding : findings) lines.push_back(FormatFinding(finding));
  return lines;
}

}  // namespace fencepost::config
