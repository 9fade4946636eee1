#include "metrics/traces/otlp.h"

#include <algorithm>
#include <initializer_list>

#include <google/protobuf/unknown_field_set.h>

#include "consumer/record/text.h"

namespace fencepost::metrics {
namespace {

using consumer::Nanos;
using consumer::Span;
using consumer::SpanAttributes;
using consumer::TraceContext;
using google::protobuf::UnknownField;
using google::protobuf::UnknownFieldSet;

constexpr std::string_view kScope = "fencepost";
constexpr std::string_view kSchema = "https://opentelemetry.io/schemas/1.30.0";  // span.h's names
constexpr int kStatusError = 2;

// A message by the numbers of its fields.
class Message {
 public:
  Message() = default;
  Message(Message&& other) noexcept { fields_.Swap(&other.fields_); }

  void Number(int field, std::uint64_t value) { fields_.AddVarint(field, value); }
  void Time(int field, Nanos unix_time) {
    const auto since = std::max<Nanos::rep>(unix_time.count(), 0);
    fields_.AddFixed64(field, static_cast<std::uint64_t>(since));
  }
  void Flags(int field, const TraceContext& context) {  // W3C's
    if (context.sampled) fields_.AddFixed32(field, 1);
  }
  void Text(int field, std::string_view text) {
    fields_.AddLengthDelimited(
        field, consumer::IsUtf8(text) ? std::string(text) : consumer::OneLine(text, text.size()));
  }
  void Id(int field, std::initializer_list<std::uint64_t> big_endian) {
    constexpr int kBits = 64, kByte = 8;
    std::string& bytes = *fields_.AddLengthDelimited(field);
    for (const std::uint64_t number : big_endian) {
      for (int shift = kBits - kByte; shift >= 0; shift -= kByte) {
        bytes += static_cast<char>(number >> shift & 0xff);
      }
    }
  }
  void Sub(int field, const Message& message) {
    message.fields_.SerializeToString(fields_.AddLengthDelimited(field));
  }
  [[nodiscard]] std::string Bytes() const {
    std::string bytes;
    fields_.SerializeToString(&bytes);
    return bytes;
  }

 private:
  UnknownFieldSet fields_;
};

// Its value has a field for each type.
Message KeyValue(std::string_view name, const consumer::SpanValue& of) {
  Message value;
  if (const auto* const text = std::get_if<std::string>(&of)) {
    value.Text(1, *text);
  } else {
    value.Number(3, static_cast<std::uint64_t>(std::get<std::int64_t>(of)));
  }
  Message pair;
  pair.Text(1, name);
  pair.Sub(2, value);
  return pair;
}

void AddAttributes(Message& to, int field, const SpanAttributes& attributes) {
  for (const auto& [name, value] : attributes) to.Sub(field, KeyValue(name, value));
}

void AddIds(Message& to, const TraceContext& context) {
  to.Id(1, {context.trace_high, context.trace_low});
  to.Id(2, {context.span});
}

Message SpanMessage(const Span& span) {
  Message message;
  AddIds(message, span.context);
  if (span.parent != 0) message.Id(4, {span.parent});
  message.Text(5, span.name);
  message.Number(6, static_cast<std::uint64_t>(span.kind));
  message.Time(7, span.start);
  message.Time(8, span.end);
  AddAttributes(message, 9, span.attributes);
  for (const consumer::SpanEvent& event : span.events) {
    Message one;
    one.Time(1, event.at);
    one.Text(2, event.name);
    AddAttributes(one, 3, event.attributes);
    message.Sub(11, one);
  }
  for (const TraceContext& link : span.links) {
    Message one;
    AddIds(one, link);
    one.Flags(6, link);
    message.Sub(13, one);
  }
  if (!span.error.empty()) {
    Message status;
    status.Text(2, span.error);
    status.Number(3, kStatusError);
    message.Sub(15, status);
  }
  message.Flags(16, span.context);
  return message;
}

Message ResourceMessage(const TraceSource& source) {
  std::vector<std::pair<std::string_view, std::string_view>> attributes;
  const auto set = [&](std::string_view name, std::string_view value) {
    std::erase_if(attributes, [&](const auto& one) { return one.first == name; });
    attributes.emplace_back(name, value);
  };
  for (const auto& [name, value] : source.attributes) set(name, value);
  set("service.name", source.service);
  set("service.version", source.version);
  set("service.instance.id", source.instance);
  Message message;
  for (const auto& [name, value] : attributes) message.Sub(1, KeyValue(name, std::string(value)));
  return message;
}

}  // namespace

std::string TraceRequest(const TraceSource& source, std::span<const Span> spans) {
  Message scope;
  scope.Text(1, kScope);
  scope.Text(2, source.version);
  Message of_scope;
  of_scope.Sub(1, scope);
  for (const Span& span : spans) of_scope.Sub(2, SpanMessage(span));
  of_scope.Text(3, kSchema);
  Message of_resource;
  of_resource.Sub(1, ResourceMessage(source));
  of_resource.Sub(2, of_scope);
  Message request;
  request.Sub(1, of_resource);
  return request.Bytes();
}

std::optional<TraceAnswer> ReadTraceAnswer(const std::string& bytes) {
  UnknownFieldSet message, partial;
  if (!message.ParseFromString(bytes)) return std::nullopt;
  TraceAnswer answer;
  for (int i = 0; i < message.field_count(); ++i) {
    const UnknownField& field = message.field(i);
    if (field.number() != 1 || field.type() != UnknownField::TYPE_LENGTH_DELIMITED) continue;
    if (!partial.ParseFromString(field.length_delimited())) return std::nullopt;
  }
  for (int i = 0; i < partial.field_count(); ++i) {
    const UnknownField& field = partial.field(i);
    if (field.number() == 1 && field.type() == UnknownField::TYPE_VARINT) {
      answer.rejected = static_cast<std::int64_t>(field.varint());
    } else if (field.number() == 2 && field.type() == UnknownField::TYPE_LENGTH_DELIMITED) {
      answer.why = field.length_delimited();
    }
  }
  return answer;
}

}  // namespace fencepost::metrics
