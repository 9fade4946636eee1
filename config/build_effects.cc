#include "config/build_effects.h"

#include <algorithm>
#include <cstdlib>

#include <fmt/format.h>

namespace fencepost::config {
namespace {

std::vector<consumer::Column> BuildColumns(const Values& values, std::string_view path) {
  std::vector<consumer::Column> columns;
  for (const Text& text : values.Texts(path)) {
    columns.push_back({.name = text.name, .selector = text.selector});
  }
  return columns;
}

// Of a table, with what `convert` says of them.
std::vector<consumer::Column> BuildTableColumns(const Values& values, const std::string& output) {
  auto columns = BuildColumns(values, output + ".columns");
  for (const Text& text : values.Texts(output + ".convert")) {
    const auto column = std::ranges::find(columns, text.name, &consumer::Column::name);
    if (column != columns.end()) column->conversion = *consumer::ParseConversion(text.value);
  }
  return columns;
}

consumer::RowRules BuildRules(const Values& values, const std::string& output) {
  consumer::RowRules rules;
  rules.on_conflict = static_cast<consumer::OnConflict>(values.Choice(output + ".on_conflict"));
  rules.key = values.Strings(output + ".key");
  rules.fence_column = values.String(output + ".fence_column");
  if (const auto* by = values.FindSelector(output + ".fence_by")) rules.fence_by = *by;
  rules.on_null_value = static_cast<consumer::OnNull>(values.Choice(output + ".on_null_value"));
  return rules;
}

consumer::EncodePart BuildEncodePart(const Values& values, const std::string& name) {
  const std::string path = "output.kafka.encode." + name;
  const auto key = [&](std::string_view last) { return fmt::format("{}.{}", path, last); };
  consumer::EncodePart part;
  if (!values.Given(path)) return part;
  part.format = static_cast<consumer::RecordFormat>(values.Choice(key("format")));
  part.subject = values.Given(key("subject")) ? values.String(key("subject"))
                                              : values.String("output.kafka.topic") + "-" + name;
  part.version = std::atoi(values.String(key("version")).c_str());  // latest: 0
  part.message = values.String(key("message"));
  part.schema = values.String(key("schema"));
  part.register_schema = values.Number(key("register")) != 0;
  return part;
}

consumer::KafkaOutputOptions BuildKafkaOutput(const Values& values) {
  consumer::KafkaOutputOptions kafka;
  kafka.topic = values.String("output.kafka.topic");
  if (const auto* key = values.FindSelector("output.kafka.key")) kafka.key = *key;
  if (const auto* value = values.FindSelector("output.kafka.value")) kafka.value = *value;
  kafka.headers = BuildColumns(values, "output.kafka.headers");
  kafka.transaction_timeout = values.Duration("output.kafka.transaction_timeout");
  kafka.linger = values.Duration("output.kafka.linger");
  kafka.max_records = static_cast<int>(values.Number("output.kafka.max_records"));
  kafka.encode.key = BuildEncodePart(values, "key");
  kafka.encode.value = BuildEncodePart(values, "value");
  const bool own = values.Given("output.kafka.encode.registry");
  kafka.encode.registry =
      BuildRegistry(values, own ? "output.kafka.encode.registry" : "kafka.decode.registry");
  return kafka;
}

consumer::HttpHandlerOptions BuildHttp(const Values& values) {
  consumer::HttpHandlerOptions http;
  http.url = values.String("handler.http.url");
  http.method = values.String("handler.http.method");
  http.headers = values.Pairs("handler.http.headers");
  if (values.Given("handler.http.success")) http.success = values.Strings("handler.http.success");
  if (values.Given("handler.http.retry_on")) {
    http.retry_on = values.Strings("handler.http.retry_on");
  }
  http.rate_limit = static_cast<double>(values.Number("handler.http.rate_limit")) / 1000;
  http.tls_ca = values.String("handler.http.tls.ca");
  return http;
}

}  // namespace

consumer::RegistryOptions BuildRegistry(const Values& values, const std::string& path) {
  return {.url = values.String(path + ".url"),
          .username = values.String(path + ".username"),
          .password = values.String(path + ".password"),
          .tls_ca = values.String(path + ".tls.ca")};
}

consumer::HandlerOptions BuildHandler(const Values& values) {
  consumer::HandlerOptions handler;
  if (values.Given("handler.http")) {
    handler.kind = BuildHttp(values);
    handler.idempotent = values.Number("handler.http.idempotent") != 0;
  } else if (values.Given("handler.exec")) {
    handler.kind = consumer::ExecHandlerOptions{
        .command = values.Strings("handler.exec.command"),
        .processes = static_cast<int>(values.Number("handler.exec.processes"))};
    handler.idempotent = values.Number("handler.exec.idempotent") != 0;
  } else if (values.Given("handler.jq")) {
    handler.kind = consumer::JqHandlerOptions{.program = values.String("handler.jq")};
  }
  return handler;
}

consumer::OutputOptions BuildOutput(const Values& values) {
  if (values.Given("output.postgres")) {
    return consumer::PostgresOptions{
        .dsn = values.String("output.postgres.dsn"),
        .password = values.String("output.postgres.password"),
        .table = values.String("output.postgres.table"),
        .columns = BuildTableColumns(values, "output.postgres"),
        .rules = BuildRules(values, "output.postgres"),
        .statement = values.String("output.postgres.statement"),
        .args = values.Selectors("output.postgres.args"),
        .max_records = static_cast<int>(values.Number("output.postgres.max_records"))};
  }
  if (values.Given("output.mysql")) {
    return consumer::MysqlOptions{
        .host = values.String("output.mysql.host"),
        .port = static_cast<int>(values.Number("output.mysql.port")),
        .user = values.String("output.mysql.user"),
        .password = values.String("output.mysql.password"),
        .database = values.String("output.mysql.database"),
        .tls_ca = values.String("output.mysql.tls.ca"),
        .tls_certificate = values.String("output.mysql.tls.certificate"),
        .tls_key = values.String("output.mysql.tls.key"),
        .table = values.String("output.mysql.table"),
        .columns = BuildTableColumns(values, "output.mysql"),
        .rules = BuildRules(values, "output.mysql"),
        .max_records = static_cast<int>(values.Number("output.mysql.max_records"))};
  }
  if (values.Given("output.sqlite")) {
    return consumer::SqliteOptions{
        .path = values.String("output.sqlite.path"),
        .table = values.String("output.sqlite.table"),
        .columns = BuildTableColumns(values, "output.sqlite"),
        .rules = BuildRules(values, "output.sqlite"),
        .max_records = static_cast<int>(values.Number("output.sqlite.max_records"))};
  }
  if (values.Given("output.kafka")) return BuildKafkaOutput(values);
  if (values.Given("output.file")) {
    return consumer::FileOptions{.path = values.String("output.file.path"),
                                 .columns = BuildColumns(values, "output.file.columns")};
  }
  return consumer::StdoutOptions{.columns = BuildColumns(values, "output.stdout.columns")};
}

}  // namespace fencepost::config
