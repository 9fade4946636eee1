// Selectors: the one way to name a part of a record (record_id, columns, keys). Parsed once from
// the pipeline file, evaluated for each record. Values; Evaluate is const and may run on any thread
// with an Evaluator of its own.
//
//   key value topic partition offset timestamp record_id token worker header:NAME json:/POINTER
//   key:/POINTER record:/POINTER record./POINTER index "=text"
//
// value and json: read what the handler made, record: the value as it was in Kafka. Where a row is
// made of each element of an array, they read the element, index is its place from 0 on, and
// record. reads the whole value. Of several headers of one name the last counts. json: reads the
// value as JSON, key:/ the key. timestamp is in milliseconds since the Unix epoch. The pointer ""
// is the whole document. A trailing '?' makes it optional: nothing found is null instead of a bad
// record; '?default' leaves the column of a table out, where JSON null is null. Numbers keep their
// digits: what is in the JSON text is what comes out (no doubles on the way). A JSON string comes
// out unescaped, an object or array as its JSON text, true/false as such, JSON null as null (RFC
// 8259, RFC 6901).
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include <tl/expected.hpp>

#include "consumer/json/json_reader.h"
#include "consumer/record/record.h"

namespace fencepost::consumer {

inline constexpr std::string_view kSelectorForms =
    "a selector is one of key, value, topic, partition, offset, timestamp, record_id, token, "
    "worker, header:NAME, json:/POINTER, key:/POINTER, record:/POINTER (each with ? at the end "
    "where null is fine), or \"=text\"";
// What somebody most likely meant who wrote this instead of a selector: JSONPath ($.a.b), or a name
// in the value. Empty: nobody knows.
std::string LikelySelector(std::string_view text);

struct Selector {
  enum class Kind : std::uint8_t {
    kPosition,  // only for record_id: CLUSTERID/topic/partition/offset
    kKey,
    kValue,
    kTopic,
    kPartition,
    kOffset,
    kTimestamp,
    kRecordId,
    kToken,
    kWorker,
    kHeader,
    kJson,
    kKeyJson,
    kRecordJson,
    kWholeJson,
    kIndex,
    kConstant
  };
  Kind kind = Kind::kPosition;
  std::string argument;  // header name, JSON pointer, constant text
  bool optional = false;
  bool omits = false;  // optional too: nothing found leaves the column out (?default)

  // The error is one line for the user: what is wrong and which forms there are.
  static tl::expected<Selector, std::string> Parse(std::string_view text);
  [[nodiscard]] std::string Text() const;  // the text that Parse takes
  // The same within a sentence: `json:` with what it selects, which its colon would run into.
  [[nodiscard]] std::string InWords() const;
  // It reads JSON by its pointer.
  [[nodiscard]] bool ReadsJson() const {
    return kind == Kind::kJson || kind == Kind::kKeyJson || kind == Kind::kRecordJson ||
           kind == Kind::kWholeJson;
  }
  // A tombstone has nothing for it.
  [[nodiscard]] bool NeedsValue() const {
    return kind == Kind::kValue || kind == Kind::kJson || kind == Kind::kWholeJson ||
           (kind == Kind::kRecordJson && !optional);
  }
  // It reads an element of an array, or what is around it.
  [[nodiscard]] bool OfElement() const { return kind == Kind::kIndex || kind == Kind::kWholeJson; }
  bool operator==(const Selector&) const = default;
};

// What a selector may need besides the record.
struct RecordContext {
  const Record* record = nullptr;
  const TopicPartition* where = nullptr;
  // Of an accepted replay: what partition, offset and timestamp read. nullptr: the record's own.
  const ReplayOrigin* origin = nullptr;
  std::string_view record_id;
  std::uint64_t token = 0;
  std::string_view worker;
  // What `value` and `json:` read instead of the record's own value (a handler's); nullptr: its
  // own, as `record:` does.
  const std::optional<std::string_view>* value = nullptr;
  // Of an element, which is `value`: its place, and what record. reads.
  const std::optional<std::string_view>* whole = nullptr;
  std::size_t index = 0;
};

// Evaluates selectors; holds the JSON parser's buffers. One thread. Call Begin for each record; the
// JSON is parsed once a record, and only when a json: selector asks.
class Evaluator {
 public:
  Evaluator();
  ~Evaluator();
  Evaluator(const Evaluator&) = delete;
  Evaluator& operator=(const Evaluator&) = delete;

  void Begin(const RecordContext& context);
  // The next element of the record that was begun; only the value is another one.
  void BeginElement(const RecordContext& context);
  // Appends the selected bytes to `out`. true: found; false: null (only where optional, or JSON
  // null, or a null key/value/timestamp that is optional). Error: one line, the record is bad.
  tl::expected<bool, std::string> Append(const Selector& selector, std::string& out);
  // The last Append was false since there is nothing, not even a null.
  [[nodiscard]] bool absent() const;
  // What the last Append found, where its selector reads JSON; nullopt: bytes, topic, offset, ….
  [[nodiscard]] std::optional<JsonType> type() const;
  // The same as one JSON value on one line (json_text.h), `null` for null. What is in JSON
  // keeps its type and digits; so does `value`, where it is JSON. Numbers: partition, offset,
  // timestamp, token. All else is a string.
  tl::expected<void, std::string> AppendAsJson(const Selector& selector, std::string& out);
  // A digest of the selected part (json_digest.h): of `json:`, and of `value` where it is JSON, by
  // what it means; else of its bytes. nullopt: as null of Append.
  tl::expected<std::optional<std::uint64_t>, std::string> Digest(const Selector& selector);

 private:
  enum class Form : std::uint8_t { kText, kJson };
  tl::expected<bool, std::string> AppendJson(const Selector& selector, Form form, std::string& out);
  tl::expected<bool, std::string> Found(const Selector& selector, const JsonReader& reader,
                                        JsonFound found) const;
  tl::expected<bool, std::string> NoValue(const Selector& selector) const;
  [[nodiscard]] const std::optional<std::string_view>& Bytes(Selector::Kind kind) const;
  JsonReader* Json(Selector::Kind kind);  // nullptr: there is no value, or no key
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace fencepost::consumer
