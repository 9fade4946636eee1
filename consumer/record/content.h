// What of a record counts as its content: two records of one id with other content are a conflict.
// Pure values; a ContentDigest is used by one thread.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <tl/expected.hpp>

#include "consumer/record/selector.h"
#include "locking/base/types.h"

namespace fencepost::consumer {

// `id_content` of the pipeline file.
struct ContentRule {
  enum class Kind : std::uint8_t {
    kValue,      // the value: as JSON where it is JSON, else its bytes
    kSelectors,  // these parts, each as JSON where it is JSON
    kNone,       // nothing: the id alone says that two records are the same
    kRecord      // key, value, headers and timestamp, as bytes: of a position
  };
  Kind kind = Kind::kValue;
  std::vector<Selector> selectors;
};

// By the rule kRecord, which needs no evaluator. `origin`: of a replay, with the original's time.
locking::ContentCrc ContentOfRecord(const Record& record, const ReplayOrigin* origin = nullptr);

// A digest by a rule. Its high half names the rule (and never has its highest bit set, so that it
// is a bigint), its low half what the rule found; digests of two rules are never in conflict.
class ContentDigest {
 public:
  explicit ContentDigest(ContentRule rule);
  // `evaluator` has begun with the record and its origin. Error: one line, why a selector finds
  // nothing.
  tl::expected<locking::ContentCrc, std::string> Of(const Record& record,
                                                    const ReplayOrigin* origin,
                                                    Evaluator& evaluator);

 private:
  ContentRule rule_;
  locking::ContentCrc meaning_;  // the high half, in its place
};

}  // namespace fencepost::consumer
