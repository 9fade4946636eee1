// Orders whose ids are positions, and the databases with a ledger by position.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tests/component/outputs/store.h"

namespace fencepost::consumer {

// "C/orders/PARTITION/OFFSET".
inline std::string Id(Offset offset, std::int32_t partition = 3) {
  return fmt::format("C/orders/{}/{}", partition, offset);
}

struct OrderAt {
  std::uint64_t token = 1;
  std::int32_t partition = 3;
  std::optional<Offset> read_at = std::nullopt;  // another place than the id says
  Offset gap = 0;
  AssignmentEpoch epoch = 1;
  std::uint64_t chain = 0;
};

// Its effect is (OFFSET or PARTITION-OFFSET, amount OFFSET).
inline Batch::Entry Order(Offset offset, OrderAt at = {}) {
  return {.id = Id(offset, at.partition),
          .offset = at.read_at.value_or(offset),
          .token = at.token,
          .crc = 1,
          .value = fmt::format(R"({{"amount":{}}})", offset),
          .key = at.partition == 3 ? std::to_string(offset)
                                   : fmt::format("{}-{}", at.partition, offset),
          .chain = at.chain,
          .partition = at.partition,
          .gap = at.gap,
          .epoch = at.epoch};
}

// What the log has at this offset, where it is the order.
inline LogSample RecordAt(Offset offset, std::uint32_t content = 1) {
  return {.offset = offset, .timestamp = 1'700'000'000'123, .crc = {}, .content = content};
}

// The orders of these offsets, without the last.
class Orders : public Batch {
 public:
  Orders(Offset begin, Offset end, OrderAt at = {}) {
    for (Offset offset = begin; offset < end; ++offset) Add(Order(offset, at));
  }
};

class PositionsTest : public StoreTest {
 protected:
  [[nodiscard]] std::unique_ptr<Output> Open(const std::string& worker, OutputTerms terms = {}) {
    terms.by_position = true;
    return store_->Open(ByKey(), {}, std::move(terms), worker);
  }
  [[nodiscard]] std::string Effects() {
    return store_->Exec(fmt::format("SELECT id, amount FROM effects ORDER BY {}",
                                    IsPostgres() ? "id::int" : "id+0"));
  }
  [[nodiscard]] std::string Done(std::int32_t partition = 3) {
    return store_->Exec(fmt::format("SELECT done FROM fencepost_positions WHERE {} = {}",
                                    Name("partition"), partition));
  }
  [[nodiscard]] std::string Name(const std::string& column) const {
    return IsMysql() ? "`" + column + "`" : column;
  }
  // As the Writer does where it is told to try again at once.
  static std::vector<WriteResult> ResultsOfRetries(Output& output, const Batch& batch) {
    for (;;) {
      const auto outcomes = output.Write({.items = batch.items(), .offsets = {}});
      if (!outcomes && outcomes.error().retry_at_once) continue;
      if (!outcomes) ADD_FAILURE() << outcomes.error().error.Line();
      std::vector<WriteResult> results;
      for (const WriteOutcome& one : outcomes.value_or(std::vector<WriteOutcome>())) {
        results.push_back(one.result);
      }
      return results;
    }
  }
};

}  // namespace fencepost::consumer
