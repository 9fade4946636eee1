// Dead letters for tests: a record with the headers that a dead letter has.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "consumer/cli/dlq/dlq_letter.h"

namespace fencepost::cli {

struct PlantedLetter {
  std::vector<std::pair<std::string, std::optional<std::string>>> headers{
      {"source", "shop"},
      {"fencepost-error", "HTTP 404 from the service"},
      {"fencepost-error-class", "404"},
      {"fencepost-pipeline", "orders"},
      {"fencepost-topic", "orders"},
      {"fencepost-partition", "3"},
      {"fencepost-offset", "1042"},
      {"fencepost-record-id", "o-17"},
      {"fencepost-attempts", "5"},
      {"fencepost-failed-at", "2026-11-03T10:00:00.000Z"}};
  std::optional<std::string> key = "customer-17";
  std::optional<std::string> value = R"({"order_id":"o-17"})";

  PlantedLetter& Set(const std::string& name, const std::string& text) {
    for (auto& [header, old] : headers) {
      if (header == name) old = text;
    }
    return *this;
  }
  PlantedLetter& Drop(const std::string& name) {
    std::erase_if(headers, [&](const auto& header) { return header.first == name; });
    return *this;
  }

  // At orders.dead/0/7.
  [[nodiscard]] consumer::TopicRecord Stored() const {
    auto owner = std::make_shared<PlantedLetter>(*this);
    consumer::TopicRecord stored{{"orders.dead", 0}, {}};
    stored.record.offset = 7;
    stored.record.timestamp = std::chrono::milliseconds(1793690000000);
    if (owner->key) stored.record.key = *owner->key;
    if (owner->value) stored.record.value = *owner->value;
    for (const auto& [name, text] : owner->headers) {
      stored.record.headers.push_back({name, std::nullopt});
      if (text) stored.record.headers.back().value = *text;
    }
    stored.record.owner = owner;
    return stored;
  }
  [[nodiscard]] StoredLetter Read() const { return ReadLetter(Stored()).value(); }
};

}  // namespace fencepost::cli
