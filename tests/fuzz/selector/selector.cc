// Selectors, and the identity that they give a record. The first line is a selector, the second the
// key, the third a header, the rest the value.
#include "consumer/record/selector.h"
#include "consumer/json/json_reader.h"
#include "consumer/record/identity.h"
#include "tests/fuzz/target.h"

namespace fencepost::fuzz {
namespace {

using namespace consumer;

Record RecordOf(Parts& parts) {
  Record record;
  record.key = parts.Line();
  record.headers = {{"h", parts.Line()}, {"none", std::nullopt}};
  if (parts.rest() != "null") record.value = parts.rest();
  record.offset = 77;
  return record;
}

// All three forms agree on whether there is something, and the JSON is JSON.
void CheckEvaluation(const Selector& selector, const Record& record, const TopicPartition& where) {
  Evaluator evaluator;
  RecordContext context;
  context.record = &record;
  context.where = &where;
  context.record_id = "id";
  context.worker = "w";
  evaluator.Begin(context);
  std::string text = "before";
  const auto found = evaluator.Append(selector, text);
  FENCEPOST_CHECK(text.starts_with("before") && (found.value_or(false) || text == "before"),
                  selector.Text());
  if (!found) FENCEPOST_CHECK(IsOneLine(found.error()), Shown(found.error()));
  evaluator.Begin(context);
  const auto digest = evaluator.Digest(selector);
  FENCEPOST_CHECK(digest.has_value() == found.has_value(), selector.Text());
  evaluator.Begin(context);
  std::string json;
  if (!evaluator.AppendAsJson(selector, json)) return;
  FENCEPOST_CHECK(IsOneLine(json) || json.find('\n') == std::string::npos, Shown(json));
  JsonReader reader;
  std::string again;
  reader.Begin(json);
  FENCEPOST_CHECK(reader.AppendRaw("", again) != JsonFound::kMalformed, Shown(json));
}

void CheckIdentity(const Selector& selector, const Record& record, const TopicPartition& where) {
  IdentityRule rule;
  rule.record_id = {selector, Selector{.kind = Selector::Kind::kTopic}};
  if (selector.kind == Selector::Kind::kPosition) rule.record_id.pop_back();
  Identifier identifier(rule, "cluster");
  Identity identity;
  const auto identified = identifier.Identify(record, where, identity);
  if (!identified) {
    FENCEPOST_CHECK(IsOneLine(identified.error()), Shown(identified.error()));
    return;
  }
  FENCEPOST_CHECK(!identity.id.empty() && identity.id.size() <= 512, Shown(identity.id));
  FENCEPOST_CHECK(StoredId(identity.id) == identity.id, Shown(identity.id));
  const Identity first = identity;
  FENCEPOST_CHECK(identifier.Identify(record, where, identity) && identity.id == first.id &&
                      identity.crc == first.crc,
                  Shown(identity.id));
}

}  // namespace

void OneInput(std::string_view input) {
  Parts parts(input);
  const std::string_view text = parts.Line();
  if (!IsOneLine(text)) return;  // a pipeline file has no others
  const auto selector = Selector::Parse(text);
  if (!selector) {
    FENCEPOST_CHECK(IsOneLine(selector.error()), Shown(selector.error()));
    return;
  }
  FENCEPOST_CHECK(selector->Text() == text, Shown(text));
  const TopicPartition where{"orders", 3};
  const Record record = RecordOf(parts);
  if (selector->kind != Selector::Kind::kPosition) CheckEvaluation(*selector, record, where);
  CheckIdentity(*selector, record, where);
}

}  // namespace fencepost::fuzz
