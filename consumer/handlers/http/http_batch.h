// Several records in one request: its text, and what its answer says of each of them. README.md has
// both forms. Pure; one thread.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <tl/expected.hpp>

#include "consumer/handlers/batch_queue.h"
#include "consumer/handlers/http/http_answer.h"
#include "consumer/handlers/http/http_rules.h"
#include "consumer/handlers/runner.h"

namespace fencepost::consumer {

class HttpBatchText {
 public:
  explicit HttpBatchText(HttpBatchForm form) : array_(form == HttpBatchForm::kArray) {}
  // The record's element, whose value is the body that it would have alone (http_rules.h). Failure:
  // that is not JSON.
  std::optional<HandlerFailure> Add(const HandlerCall& call,
                                    const std::optional<std::string>& body);
  std::string Take();

 private:
  const bool array_;
  std::string text_;
};

// What a good answer says of the records with these ids, in their order: a value each (nullopt:
// null), or a failure. Unexpected: it does not say which record it speaks of, or cannot be read.
tl::expected<std::vector<AnswerBody>, HandlerFailure> ParseHttpBatch(
    const HttpHandlerOptions& options, const std::optional<std::string>& answer,
    std::span<const std::string_view> ids);

// A batch that the service takes in parts (413): it is to be sent again in halves.
bool IsTooMuch(const AnswerBody& body, const CallBatch& calls);
// What one request made of its records, in their order. What fails for several is shared.
std::vector<HandlerResult> ResultsOf(const HttpHandlerOptions& options, AnswerBody body,
                                     const CallBatch& calls, HttpResultRule& rule);

}  // namespace fencepost::consumer
