// The rows of handler.http.batch and handler.exec.batch.
#include "config/schema/schema.h"

namespace fencepost::config {

using consumer::BatchOptions;
using consumer::ExecHandlerOptions;
using consumer::HttpBatchForm;
using consumer::HttpHandlerOptions;

namespace {

template <typename Kind>
constexpr auto kBatched = [](auto& o) { return std::get_if<Kind>(&o.handler.kind); };

template <typename Kind>
std::vector<Key> KeysOfBatch(const std::string& handler, std::string_view help) {
  const KeysOf batch(handler + ".batch", Reach(kBatched<Kind>, &Kind::batch));
  return {
      batch("", help),
      batch("max_records", &BatchOptions::max_records,
            "Records of one call at most, and 2 MiB. `processing.concurrency` and "
            "`processing.timeout` are those of a call.",
            {.limits = {{"2", "10000"}}, .required = true}),
      batch("linger", &BatchOptions::linger,
            "So long a record waits for others, unless the batch is full.",
            {.limits = {{"0s", "1m"}}}),
  };
}

}  // namespace

std::vector<Key> HttpBatchKeys() {
  auto keys = KeysOfBatch<HttpHandlerOptions>(
      "handler.http",
      "Several records in one request: those of which url, query and headers are the same. "
      "[Both forms](../consumer/handlers/http/README.md#batches).");
  keys.push_back(KeysOf("handler.http.batch")(
      "body",
      OneOf<HttpBatchForm>({{"array", HttpBatchForm::kArray}, {"ndjson", HttpBatchForm::kNdjson}},
                           kBatched<HttpHandlerOptions>, &HttpHandlerOptions::batch_form),
      "`array`: a JSON array; `ndjson`: a line each."));
  return keys;
}

std::vector<Key> ExecBatchKeys() {
  auto keys = KeysOfBatch<ExecHandlerOptions>(
      "handler.exec",
      "Several records in one line. "
      "[The protocol](../consumer/handlers/exec/README.md#batches).");
  for (std::size_t i = 1; i < keys.size(); ++i) {
    keys[i].same_as = "handler.http" + keys[i].path.substr(std::string("handler.exec").size());
  }
  return keys;
}

}  // namespace fencepost::config
