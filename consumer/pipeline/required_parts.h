// What an output takes from a record itself, whatever a handler makes of it: whether it is there is
// known before the handler is called. So is what it takes from a value that the handler leaves as
// it is (`result: keep`, `merge_into`). Values; any thread with an Evaluator of its own.
#pragma once

#include <string>
#include <vector>

#include "consumer/pipeline/options.h"
#include "consumer/record/selector.h"

namespace fencepost::consumer {

struct RequiredPart {
  std::string name;  // as the output's messages say it: "column amount", "argument $1", "key"
  Selector selector;
  bool names_a_row = false;  // it cannot be null
  bool of_values = false;    // a record without a value does not need it (on_null_value)
};
// Those that it takes whatever the handler makes: a null value may need fewer (on_null_value).
std::vector<RequiredPart> RequiredPartsOf(const OutputOptions& output,
                                          const HandlerOptions& handler = {});
// Why the record is bad, in one line without anything of it; empty: it has them all.
std::string MissingPart(const std::vector<RequiredPart>& parts, const RecordContext& context,
                        Evaluator& evaluator);

}  // namespace fencepost::consumer
