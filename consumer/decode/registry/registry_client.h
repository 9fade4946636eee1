// Asks a schema registry for schemas, by Confluent's REST API: GET /schemas/ids/{id} and GET
// /subjects/{subject}/versions/{version} for schemas and what they refer to, POST
// /subjects/{subject} for the id of a schema that is there, POST /subjects/{subject}/versions to
// register one. Blocks for some seconds at most; one thread, but for Cancel.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>
#include <tl/expected.hpp>

#include "consumer/decode/decoder.h"
#include "consumer/handlers/http/curl_holders.h"
#include "consumer/pipeline/options.h"

namespace fencepost::consumer {

struct RegisteredSchema {
  std::uint32_t id = 0;
  SchemaText schema;
};

struct RegistryFailure {
  // The registry answered, and has no such schema. Otherwise it gave no answer to rely on: it is
  // away, overloaded, or refuses us; that is asked again.
  bool unknown = false;
  // A 404 that may be of something else: a proxy, or a path that is none of a registry.
  bool page_missing = false;
  std::string text;  // one line
};

class RegistryClient {
 public:
  explicit RegistryClient(RegistryOptions options);
  // With all that it refers to.
  tl::expected<SchemaText, RegistryFailure> Fetch(std::uint32_t id);
  // A subject's version; 0: the newest one. With all that it refers to.
  tl::expected<RegisteredSchema, RegistryFailure> Version(const std::string& subject, int version);
  // The id that a schema without references has under a subject; `add`: the subject has it from
  // now on. Unknown: it is not there.
  tl::expected<std::uint32_t, RegistryFailure> IdOf(const std::string& subject,
                                                    const SchemaText& schema, bool add);
  void Cancel() { cancelled_ = true; }  // any thread: a call ends soon

 private:
  using Answer = tl::expected<nlohmann::json, RegistryFailure>;
  // An object. A POST where there is a body.
  Answer Ask(const std::string& path, const std::string* body);
  // With all that it refers to; the id is 0 where the answer has none.
  tl::expected<RegisteredSchema, RegistryFailure> Whole(const std::string& path);
  // Says who asks. Error: why that is not known.
  tl::expected<void, std::string> LogIn();
  // Of OAuth: renewed after four fifths of its life, and once it was refused.
  tl::expected<std::string, std::string> Token();
  [[nodiscard]] std::string PathOf(const std::string& subject) const;
  // The schema's text; what it refers to goes to `schema`.
  tl::expected<std::string, RegistryFailure> Take(const nlohmann::json& answer,
                                                  const std::string& path, SchemaText& schema,
                                                  std::set<std::string>& seen);
  static std::size_t OnBody(char* data, std::size_t size, std::size_t count, void* to);

  RegistryOptions options_;
  curl::Easy easy_;
  std::string token_;  // empty: none
  std::chrono::steady_clock::time_point renew_at_;
  std::string body_;      // of the answer
  std::size_t left_ = 0;  // bytes that answers may have yet, for one schema
  std::atomic<bool> cancelled_ = false;
};

}  // namespace fencepost::consumer
