// `when`: which records a pipeline is about. The source asks on its thread, once a record is
// decoded, so that no program holds the engine's thread; the flow then knows it by
// Record::filtered. One thread, with a filter of its own.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <tl/expected.hpp>

#include "consumer/pipeline/options.h"
#include "consumer/record/selector.h"
#include "locking/base/error.h"

namespace fencepost::consumer {

class RecordFilter {
 public:
  virtual ~RecordFilter() = default;
  // Error: why the record is bad, one line without anything of it.
  virtual tl::expected<bool, std::string> Matches(const RecordContext& context) = 0;
  // What the last one that did not match lacks, likewise.
  [[nodiscard]] virtual std::string WhyNot() const = 0;
};

// What a jq program of the output makes of a record. One thread, with a program of its own.
class ValueProgram {
 public:
  using Values = std::vector<std::optional<std::string>>;  // nullopt: null

  virtual ~ValueProgram() = default;
  // Its results, in their order. Error: why the record is bad, one line without anything of it.
  virtual tl::expected<Values, std::string> Run(const RecordContext& context) = 0;
};

// Who makes what an output needs of jq. Error: the program does not compile.
struct JqMakers {
  std::function<tl::expected<std::unique_ptr<RecordFilter>, Error>(const FilterOptions&)> filter;
  std::function<tl::expected<std::unique_ptr<ValueProgram>, Error>(const std::string&)> values;
};

// `SELECTOR = TEXT` or `SELECTOR exists`: what there is as text, or that there is something, which
// is not null. Error: what is wrong, for people.
tl::expected<FilterOptions::Condition, std::string> ParseCondition(std::string_view text);

// All conditions hold. A value or key that a condition reads as JSON, and that is none, is bad.
std::unique_ptr<RecordFilter> MakeConditionFilter(std::vector<FilterOptions::Condition> all);

// `as_original`: a replayed dead letter is where its original was (kafka.accept_replay_ids). What
// is bad already stays it.
void Filter(RecordFilter& filter, bool as_original, const TopicPartition& where, Record& record);

}  // namespace fencepost::consumer
