#include "consumer/cli/tables/schema_types.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "consumer/decode/registry/registry_client.h"
#include "consumer/json/json_reader.h"
#include "consumer/json/json_text.h"

namespace fencepost::cli {
namespace {

using consumer::KnownBy;
using consumer::Selector;
using consumer::ValueKind;
using consumer::avro::Kind;
using consumer::avro::Logical;
using consumer::avro::Type;

std::optional<ValueKind> KindOf(const Type& type) {
  switch (type.kind) {
    case Kind::kNull:
      return std::nullopt;
    case Kind::kBoolean:
      return ValueKind::kBoolean;
    case Kind::kInt:
    case Kind::kLong:
      if (type.logical != Logical::kMoment) return ValueKind::kWhole;
      if (!type.moment.date) return ValueKind::kText;
      return type.moment.time ? ValueKind::kMoment : ValueKind::kDate;
    case Kind::kFloat:
    case Kind::kDouble:
      return ValueKind::kDecimal;
    case Kind::kBytes:
    case Kind::kFixed:
      return type.logical == Logical::kDecimal ? ValueKind::kDecimal : ValueKind::kText;
    case Kind::kString:  // of anything: samples say more
      return type.logical == Logical::kNone ? std::nullopt : std::optional(ValueKind::kText);
    case Kind::kEnum:
      return ValueKind::kText;
    case Kind::kRecord:
    case Kind::kArray:
    case Kind::kMap:
      return ValueKind::kJson;
    case Kind::kUnion:
      break;
  }
  std::optional<ValueKind> kind;
  for (const Type* branch : type.members) {
    if (branch->kind == Kind::kNull) continue;
    const auto one = KindOf(*branch);
    if (!one || (kind && kind != one)) return std::nullopt;
    kind = one;
  }
  return kind;
}

// `name`: without ~0 and ~1.
const Type* Member(const Type& type, std::string_view name) {
  if (type.kind == Kind::kArray || type.kind == Kind::kMap) return type.members.front();
  if (type.kind == Kind::kUnion) {
    for (const Type* branch : type.members) {
      if (const Type* found = Member(*branch, name)) return found;
    }
  }
  if (type.kind != Kind::kRecord) return nullptr;
  std::string quoted;
  consumer::AppendJsonString(name, quoted);
  const auto field = std::ranges::find(type.names, quoted);
  if (field == type.names.end()) return nullptr;
  return type.members[static_cast<std::size_t>(field - type.names.begin())];
}

// Where in the record's value a column's is; nullopt: it is not there, or a handler makes it.
std::optional<std::string> PlaceOf(const consumer::WantedTable& table, const Selector& selector,
                                   bool handled) {
  const auto of_value = [&](Selector::Kind kind) {
    return kind == Selector::Kind::kRecordJson || (kind == Selector::Kind::kJson && !handled);
  };
  const auto& each = table.effect.each;
  if (selector.kind == Selector::Kind::kRecordJson) return selector.argument;
  if (selector.kind == Selector::Kind::kWholeJson && !handled) return selector.argument;
  if (selector.kind != Selector::Kind::kJson) return std::nullopt;
  if (!each) return handled ? std::nullopt : std::optional(selector.argument);
  if (!of_value(each->kind)) return std::nullopt;
  return each->argument + "/0" + selector.argument;
}

}  // namespace

std::optional<ValueKind> KindInSchema(const consumer::avro::Schema& schema,
                                      std::string_view pointer) {
  const Type* type = &schema.top();
  std::string scratch;
  while (type != nullptr && !pointer.empty()) {
    pointer.remove_prefix(1);
    const std::size_t end = std::min(pointer.find('/'), pointer.size());
    type = Member(*type, consumer::UnescapeToken(pointer.substr(0, end), scratch));
    pointer.remove_prefix(end);
  }
  return type == nullptr ? std::nullopt : KindOf(*type);
}

tl::expected<std::vector<std::string>, Error> TakeSchemaTypes(
    const consumer::PipelineOptions& options, const std::vector<std::string>& topics,
    std::vector<consumer::WantedTable>& tables) {
  consumer::RegistryClient registry(options.kafka.decode.registry);
  std::vector<std::string> taken;
  std::vector<consumer::avro::Schema> schemas;
  for (const std::string& topic : topics) {
    const auto found = registry.Version(topic + "-value", 0);
    if (!found && found.error().unknown) continue;
    if (!found) {
      return tl::unexpected(Error{"registry",
                                  "the schema registry gives no schemas: " + found.error().text,
                                  "kafka.decode.registry", "check its address, user and password"});
    }
    if (found->schema.kind != consumer::SchemaKind::kAvro) continue;
    auto parsed = consumer::avro::Schema::Parse(found->schema);
    if (!parsed) continue;  // records of it are bad ones
    taken.push_back(topic);
    schemas.push_back(std::move(*parsed));
  }
  for (consumer::WantedTable& table : tables) {
    for (std::size_t i = 0; i < table.columns.size(); ++i) {
      const auto place = PlaceOf(table, table.shape.columns[i].selector, options.handler.any());
      if (!place) continue;
      std::optional<ValueKind> kind;
      bool same = true;
      for (const consumer::avro::Schema& schema : schemas) {
        const auto one = KindInSchema(schema, *place);
        same = same && (!one || !kind || one == kind);
        if (one) kind = one;
      }
      if (kind && same) Learn(table, i, *kind, KnownBy::kSchema);
    }
  }
  return taken;
}

}  // namespace fencepost::cli
