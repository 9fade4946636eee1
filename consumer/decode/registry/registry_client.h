// Asks a schema registry for schemas, by Confluent's REST API: GET /schemas/ids/{id}, and GET
// /subjects/{subject}/versions/{version} for what a schema refers to. Blocks for some seconds at
// most; one thread, but for Cancel.
#pragma once

#include <atomic>
#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include <tl/expected.hpp>

#include "consumer/decode/decoder.h"
#include "consumer/handlers/http/curl_holders.h"
#include "consumer/pipeline/options.h"

namespace fencepost::consumer {

struct RegistryFailure {
  // The registry answered, and has no such schema. Otherwise it gave no answer to rely on: it is
  // away, overloaded, or refuses us; that is asked again.
  bool unknown = false;
  std::string text;  // one line
};

class RegistryClient {
 public:
  explicit RegistryClient(DecodeOptions options);
  // With all that it refers to.
  tl::expected<SchemaText, RegistryFailure> Fetch(std::uint32_t id);
  void Cancel() { cancelled_ = true; }  // any thread: a Fetch ends soon

 private:
  tl::expected<std::string, RegistryFailure> Get(const std::string& path);
  tl::expected<void, RegistryFailure> Take(const std::string& body, const std::string& path,
                                           SchemaText& schema, std::set<std::string>& seen,
                                           bool top);
  static std::size_t OnBody(char* data, std::size_t size, std::size_t count, void* to);

  DecodeOptions options_;
  curl::Easy easy_;
  std::atomic<bool> cancelled_ = false;
};

}  // namespace fencepost::consumer
