#include "consumer/encode/record_encoder.h"

#include <utility>

#include <fmt/format.h>

#include "consumer/decode/wire_format.h"

namespace fencepost::consumer {
namespace {

SchemaKind KindOf(RecordFormat format) {
  return format == RecordFormat::kAvro       ? SchemaKind::kAvro
         : format == RecordFormat::kProtobuf ? SchemaKind::kProtobuf
                                             : SchemaKind::kJson;
}

Error Unavailable(std::string what, const std::string& where, std::string hint) {
  return {"schema_registry", std::move(what), where, std::move(hint)};
}

}  // namespace

RecordEncoder::RecordEncoder(EncodeOptions options) : registry_(std::move(options.registry)) {
  if (options.key.Needed()) key_.emplace(Part{std::move(options.key), "key", nullptr, ""});
  if (options.value.Needed()) value_.emplace(Part{std::move(options.value), "value", nullptr, ""});
}

tl::expected<void, Error> RecordEncoder::Prepare() {
  for (std::optional<Part>* part : {&key_, &value_}) {
    if (!*part || (*part)->encoder != nullptr) continue;
    if (auto prepared = Prepare(**part); !prepared) return prepared;
  }
  return {};
}

tl::expected<void, Error> RecordEncoder::Prepare(Part& part) {
  const EncodePart& options = part.options;
  const std::string where = fmt::format("output.kafka.encode.{}", part.name);
  const auto found = Find(options);
  if (!found && found.error().unknown) {
    const std::string what =
        options.schema.empty()
            ? fmt::format(
                  "the schema registry has no {} of subject '{}'",
                  options.version == 0 ? "version" : fmt::format("version {}", options.version),
                  options.subject)
            : fmt::format("subject '{}' of the schema registry does not have this schema",
                          options.subject);
    return tl::unexpected(Error{std::string(kSchemaMissing), what, where,
                                "register it, it is looked for again by itself"});
  }
  if (!found) {
    return tl::unexpected(Unavailable(
        fmt::format("the schema registry gives no schema: {}", found.error().text), where, ""));
  }
  const SchemaKind wanted = KindOf(options.format);
  if (found->schema.kind != wanted) {
    return tl::unexpected(
        Unavailable(fmt::format("schema {} of subject '{}' is {}, and {}.format is {}", found->id,
                                options.subject, NameOf(found->schema.kind), where, NameOf(wanted)),
                    where, "change one of them"));
  }
  auto encoder = MakeEncoder(found->schema, options.message);
  if (!encoder) {
    return tl::unexpected(Unavailable(
        fmt::format("schema {} of subject '{}': {}", found->id, options.subject, encoder.error()),
        where, ""));
  }
  part.encoder = std::move(*encoder);
  part.header.clear();
  AppendWireHeader(found->id, part.header);
  return {};
}

tl::expected<RegisteredSchema, RegistryFailure> RecordEncoder::Find(const EncodePart& part) {
  if (part.schema.empty()) return registry_.Version(part.subject, part.version);
  RegisteredSchema own{.id = 0, .schema = {KindOf(part.format), part.schema, {}}};
  auto id = registry_.IdOf(part.subject, own.schema, false);
  const bool absent = !id && id.error().unknown;
  if (absent && part.register_schema) id = registry_.IdOf(part.subject, own.schema, true);
  if (!id) return tl::unexpected(id.error());
  own.id = *id;
  return own;
}

tl::expected<void, EncodeProblem> RecordEncoder::Encode(Part& part, std::string_view json,
                                                        std::string& out) {
  out = part.header;
  return part.encoder->Encode(json, out);
}

}  // namespace fencepost::consumer
