// What goes between an exec handler and its program: the line for a record is one line of JSON
// whatever the record holds, and a reply is values, a failure that is fit to print, or neither. The
// first line is the record's id and key; the rest its value, and the reply.
#include <array>

#include <nlohmann/json.hpp>

#include "consumer/handlers/exec/exec_protocol.h"
#include "consumer/json/json_text.h"
#include "consumer/record/identity.h"
#include "consumer/record/text.h"
#include "tests/fuzz/target.h"

namespace fencepost::fuzz {
namespace {

using namespace consumer;

void CheckRequest(std::string_view key, std::string_view value, ExecValue form) {
  HandlerCall call;
  call.record.key = key;
  call.record.value = value;
  call.record.headers = {{key, value}, {"h", key}, {key, std::nullopt}};
  call.where.topic = "orders";
  call.record_id = StoredId(key);
  const auto made = ExecRequest(call, form);
  if (!made) {
    FENCEPOST_CHECK(form == ExecValue::kJson && IsOneLine(made.error().shown), Shown(value));
    return;
  }
  const std::string line = ExecLine({&*made, 1}, false);
  FENCEPOST_CHECK(ExecLine({&*made, 1}, true).ends_with("]}\n"), Shown(line));
  FENCEPOST_CHECK(line.find('\n') == line.size() - 1, Shown(line));
  FENCEPOST_CHECK(line.find('\r') == std::string::npos, Shown(line));
  FENCEPOST_CHECK(JsonProblem(line, kMostJsonLevels + 1).empty(), Shown(line));
  const auto json = nlohmann::json::parse(line, nullptr, false);
  if (json.is_discarded()) return;  // a number that is no double
  FENCEPOST_CHECK(json.is_object() && json["record_id"] == call.record_id, Shown(line));
  if (json.contains("value_text")) FENCEPOST_CHECK(json["value_text"] == value, Shown(line));
  if (json.contains("value_base64")) {
    const auto bytes = FromBase64(json["value_base64"].get<std::string>());
    FENCEPOST_CHECK(bytes && *bytes == value, Shown(line));
  }
}

void CheckBatch(std::string_view line, std::string_view id) {
  const std::array<std::string_view, 2> ids = {id, "another"};
  const auto replies = ParseExecBatch(line, ids);
  FENCEPOST_CHECK(!IsExecHeartbeat(line) || !replies, Shown(line));
  if (!replies) {
    FENCEPOST_CHECK(!replies.error().empty() && IsOneLine(replies.error()), Shown(line));
    return;
  }
  FENCEPOST_CHECK(replies->size() == ids.size(), Shown(line));
  for (const HandlerResult& reply : *replies) {
    FENCEPOST_CHECK(reply || IsOneLine(reply.error().text), Shown(line));
  }
}

}  // namespace

void OneInput(std::string_view input) {
  Parts parts(input);
  const std::string_view id = parts.Line();
  CheckBatch(parts.rest(), id);
  const auto reply = ParseExecReply(parts.rest(), id);
  if (!reply) {
    FENCEPOST_CHECK(!reply.error().empty() && IsOneLine(reply.error()), Shown(reply.error()));
  } else if (!*reply) {
    const HandlerFailure& failure = reply->error();
    FENCEPOST_CHECK(failure.text.size() <= 1000 && IsOneLine(failure.text), Shown(failure.text));
    FENCEPOST_CHECK(failure.error_class.size() <= 64 && IsOneLine(failure.error_class),
                    Shown(failure.error_class));
    FENCEPOST_CHECK(IsOneLine(failure.shown), Shown(failure.shown));
  }
  CheckRequest(id, parts.rest(), ExecValue::kJson);
  CheckRequest(id, parts.rest(), ExecValue::kText);
}

}  // namespace fencepost::fuzz
