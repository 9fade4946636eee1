// Rows as JSON lines: one object a line, in UTF-8. One thread.
//
// With columns, an object of them in their order; a selector json:… keeps the type and the digits
// of what it finds. Without, the whole record:
//   {"record_id":…,"token":…,"worker":…,"topic":…,"partition":…,"offset":…,"timestamp":…,
//    "key":…,"value":…,"headers":{…}}
// `value` is embedded where it is JSON, else a string; bytes that are not UTF-8 are
// {"base64":"…"}. Null is null. Of several headers of one name the last counts, as in selectors.
#pragma once

#include <string>
#include <vector>

#include <tl/expected.hpp>

#include "consumer/outputs/output.h"
#include "consumer/outputs/rows/item_values.h"
#include "consumer/pipeline/options.h"
#include "consumer/record/selector.h"

namespace fencepost::consumer {

class JsonLines {
 public:
  JsonLines(std::vector<Column> columns, std::string worker);

  // All lines of a batch, a line a row, in the order of the items. A record that a selector refuses
  // gets kBadRecord in `outcomes` (as many as `items`) and no line, and those behind it in its
  // chain are kNotWritten. Good until the next call.
  const std::string& Fill(const std::vector<WriteItem>& items, std::vector<WriteOutcome>& outcomes);

 private:
  tl::expected<void, std::string> Append(const WriteItem& item);
  tl::expected<void, std::string> AppendLine(const WriteItem& item, const ItemValue& value);
  void AppendHeaders(const Record& record);

  const bool whole_;
  std::vector<Column> columns_;
  std::string worker_;
  Evaluator evaluator_;
  std::string text_;
};

}  // namespace fencepost::consumer
