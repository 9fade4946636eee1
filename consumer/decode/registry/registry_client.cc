#include "consumer/decode/registry/registry_client.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <limits>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "consumer/handlers/http/http_request.h"
#include "consumer/handlers/http/oauth_client.h"
#include "consumer/record/text.h"
#include "locking/base/check.h"

namespace fencepost::consumer {
namespace {

using curl::Set;
using Json = nlohmann::json;

constexpr std::size_t kMaxAnswer = std::size_t{16} << 20;
constexpr std::size_t kMaxReferences = 1000;
constexpr std::string_view kNoRegistry = "the answer is not that of a schema registry";
constexpr long kTimeoutMs = 10'000;
constexpr long kConnectMs = 5'000;
constexpr Millis kTokenLimit{5'000};

// nullptr: there is no text of this name.
const std::string* TextAt(const Json& json, const char* name) {
  const auto found = json.find(name);
  return found == json.end() ? nullptr : found->get_ptr<const std::string*>();
}

// Schema, subject and version not found. A 404 without one of these is of something else: a proxy,
// or another path.
bool SaysUnknown(const Json& answer) {
  const auto code = answer.find("error_code");
  return code != answer.end() && (*code == 40401 || *code == 40402 || *code == 40403);
}

// What the registry says about a schema that is asked about or registered.
std::string Words(const Json& answer) {
  const std::string* const message = TextAt(answer, "message");
  return message == nullptr ? "" : fmt::format(" ({})", OneLine(*message, 120));
}

tl::unexpected<RegistryFailure> Unreliable(const std::string& path, std::string_view why) {
  return tl::unexpected(
      RegistryFailure{.unknown = false, .text = OneLine(path) + ": " + OneLine(why)});
}

std::optional<std::uint32_t> IdIn(const Json& answer) {
  const auto found = answer.find("id");
  if (found == answer.end() || !found->is_number_unsigned()) return std::nullopt;
  const auto id = found->get<std::uint64_t>();
  if (id == 0 || id > std::numeric_limits<std::int32_t>::max()) return std::nullopt;
  return static_cast<std::uint32_t>(id);
}

}  // namespace

RegistryClient::RegistryClient(RegistryOptions options)
    : options_(std::move(options)), easy_(curl_easy_init()) {
  FENCEPOST_CHECK(easy_ != nullptr, "curl_easy_init");
  while (options_.url.ends_with('/')) options_.url.pop_back();
}

std::size_t RegistryClient::OnBody(char* data, std::size_t size, std::size_t count, void* to) {
  auto& self = *static_cast<RegistryClient*>(to);
  if (size * count > self.left_) return 0;  // ends the transfer
  self.left_ -= size * count;
  self.body_.append(data, size * count);
  return size * count;
}

tl::expected<void, std::string> RegistryClient::LogIn() {
  CURL* const easy = easy_.get();
  const HttpAuthOptions& auth = options_.auth;
  if (!auth.any()) return {};
  const auto secret = auth.oauth.token_url.empty() ? SecretOf(auth) : Token();
  if (!secret) return tl::unexpected("no login: " + secret.error());
  if (auth.username.empty()) {
    Set(easy, CURLOPT_HTTPAUTH, CURLAUTH_BEARER);
    Set(easy, CURLOPT_XOAUTH2_BEARER, secret->c_str());
  } else {
    Set(easy, CURLOPT_HTTPAUTH, CURLAUTH_BASIC);
    Set(easy, CURLOPT_USERNAME, auth.username.c_str());
    Set(easy, CURLOPT_PASSWORD, secret->c_str());
  }
  return {};
}

tl::expected<std::string, std::string> RegistryClient::Token() {
  const auto now = std::chrono::steady_clock::now();
  if (!token_.empty() && now < renew_at_) return token_;
  HttpHandlerOptions options;
  options.auth = options_.auth;
  options.tls_ca = options_.tls_ca;
  auto fresh = AskForToken(options, "fencepost", kTokenLimit, [this] { return cancelled_.load(); });
  if (!fresh) return tl::unexpected(std::move(fresh.error()));
  token_ = std::move(fresh->text);
  renew_at_ = now + fresh->life * 4 / 5;
  return token_;
}

RegistryClient::Answer RegistryClient::Ask(const std::string& path, const std::string* post) {
  CURL* const easy = easy_.get();
  const std::string url = options_.url + path;
  body_.clear();
  std::array<char, CURL_ERROR_SIZE> words{};
  curl_easy_reset(easy);  // connections stay
  Set(easy, CURLOPT_URL, url.c_str());
  Set(easy, CURLOPT_PROTOCOLS_STR, "http,https");
  Set(easy, CURLOPT_NOSIGNAL, 1L);
  Set(easy, CURLOPT_FOLLOWLOCATION, 0L);
  Set(easy, CURLOPT_USERAGENT, "fencepost");
  Set(easy, CURLOPT_TIMEOUT_MS, kTimeoutMs);
  Set(easy, CURLOPT_CONNECTTIMEOUT_MS, kConnectMs);
  Set(easy, CURLOPT_ERRORBUFFER, words.data());
  Set(easy, CURLOPT_WRITEFUNCTION, &RegistryClient::OnBody);
  Set(easy, CURLOPT_WRITEDATA, static_cast<void*>(this));
  Set(easy, CURLOPT_NOPROGRESS, 0L);
  Set(easy, CURLOPT_XFERINFODATA, static_cast<void*>(this));
  Set(
      easy, CURLOPT_XFERINFOFUNCTION,
      +[](void* self, curl_off_t, curl_off_t, curl_off_t, curl_off_t) {
        return static_cast<RegistryClient*>(self)->cancelled_ ? 1 : 0;
      });
  if (!options_.tls_ca.empty()) {
    Set(easy, CURLOPT_CAINFO, options_.tls_ca.c_str());
  }
  if (!options_.tls_certificate.empty()) {
    Set(easy, CURLOPT_SSLCERT, options_.tls_certificate.c_str());
    Set(easy, CURLOPT_SSLKEY, options_.tls_key.c_str());
  }
  if (auto in = LogIn(); !in) return Unreliable(path, in.error());
  curl::Lines headers;
  for (const auto& [name, text] : options_.headers) headers.Add(name + ": " + text);
  headers.Add("Accept: application/vnd.schemaregistry.v1+json, application/json");
  if (post != nullptr) {
    headers.Add("Content-Type: application/vnd.schemaregistry.v1+json");
    Set(easy, CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(post->size()));
    Set(easy, CURLOPT_POSTFIELDS, post->c_str());
  }
  Set(easy, CURLOPT_HTTPHEADER, headers.List());
  const CURLcode code = curl_easy_perform(easy);
  if (code != CURLE_OK) {
    return Unreliable(path, words[0] != '\0' ? words.data() : curl_easy_strerror(code));
  }
  long status = 0;
  curl_easy_getinfo(easy, CURLINFO_RESPONSE_CODE, &status);
  Json answer = Json::parse(body_, nullptr, false);
  if (status == 200 && !answer.is_object()) return Unreliable(path, kNoRegistry);
  if (status == 200) return answer;
  if (status == 401) token_.clear();  // it may have been withdrawn: asked again, with another one
  const bool unknown = status == 404 && SaysUnknown(answer);
  return tl::unexpected(
      RegistryFailure{.unknown = unknown,
                      .page_missing = status == 404 && !unknown,
                      .text = OneLine(fmt::format("{}: HTTP {}{}", path, status, Words(answer)))});
}

// References come before what refers to them. A subject and version met twice is the same.
tl::expected<std::string, RegistryFailure> RegistryClient::Take(const Json& answer,
                                                                const std::string& path,
                                                                SchemaText& schema,
                                                                std::set<std::string>& seen) {
  const std::string* const text = TextAt(answer, "schema");
  if (text == nullptr) return Unreliable(path, kNoRegistry);
  const auto references = answer.find("references");  // not copied, which goes by recursion
  if (references == answer.end() || !references->is_array()) return *text;  // null: none
  for (const Json& one : *references) {
    const std::string* const name = TextAt(one, "name");
    const std::string* const subject = TextAt(one, "subject");
    const auto version = one.find("version");
    if (name == nullptr || subject == nullptr || version == one.end() ||
        !version->is_number_integer() || seen.size() > kMaxReferences) {
      return Unreliable(path, "a reference without name, subject and version, or too many");
    }
    const std::string at =
        fmt::format("{}/versions/{}", PathOf(*subject), version->get<std::int64_t>());
    if (!seen.insert(*name + '\0' + at).second) continue;
    const auto referred = Ask(at, nullptr);
    if (!referred) return tl::unexpected(referred.error());
    auto taken = Take(*referred, at, schema, seen);
    if (!taken) return taken;
    schema.references.push_back({.name = *name, .text = std::move(*taken)});
  }
  return *text;
}

tl::expected<RegisteredSchema, RegistryFailure> RegistryClient::Whole(const std::string& path) {
  left_ = kMaxAnswer;
  const auto answer = Ask(path, nullptr);
  if (!answer) return tl::unexpected(answer.error());
  RegisteredSchema found{.id = IdIn(*answer).value_or(0), .schema = {}};
  if (answer->contains("schemaType")) {  // Avro has none
    const std::string* const named = TextAt(*answer, "schemaType");
    constexpr std::array kKinds = {SchemaKind::kAvro, SchemaKind::kProtobuf, SchemaKind::kJson};
    const auto* const kind = std::ranges::find_if(
        kKinds, [&](SchemaKind one) { return named != nullptr && NameOf(one) == *named; });
    if (kind == kKinds.end()) {
      return Unreliable(path, "a schema of another kind than AVRO, PROTOBUF and JSON");
    }
    found.schema.kind = *kind;
  }
  std::set<std::string> seen;
  auto text = Take(*answer, path, found.schema, seen);
  if (!text) return tl::unexpected(text.error());
  found.schema.text = std::move(*text);
  return found;
}

tl::expected<SchemaText, RegistryFailure> RegistryClient::Fetch(std::uint32_t id) {
  return Whole(fmt::format("/schemas/ids/{}", id)).map([](RegisteredSchema found) {
    return std::move(found.schema);
  });
}

tl::expected<RegisteredSchema, RegistryFailure> RegistryClient::Version(const std::string& subject,
                                                                        int version) {
  const std::string path = fmt::format("{}/versions/{}", PathOf(subject),
                                       version == 0 ? "latest" : std::to_string(version));
  auto found = Whole(path);
  if (found && found->id == 0) return Unreliable(path, kNoRegistry);
  return found;
}

tl::expected<std::uint32_t, RegistryFailure> RegistryClient::IdOf(const std::string& subject,
                                                                  const SchemaText& schema,
                                                                  bool add) {
  const std::string path = PathOf(subject) + (add ? "/versions" : "");
  Json question = {{"schema", schema.text}};
  if (schema.kind != SchemaKind::kAvro) question["schemaType"] = NameOf(schema.kind);
  const std::string post = question.dump(-1, ' ', false, Json::error_handler_t::replace);
  left_ = kMaxAnswer;
  const auto answer = Ask(path, &post);
  if (!answer) return tl::unexpected(answer.error());
  const auto id = IdIn(*answer);
  if (!id) return Unreliable(path, kNoRegistry);
  return *id;
}

std::string RegistryClient::PathOf(const std::string& subject) const {
  const curl::Text escaped(
      curl_easy_escape(easy_.get(), subject.data(), static_cast<int>(subject.size())));
  return fmt::format("/subjects/{}", escaped ? escaped.get() : "");
}

}  // namespace fencepost::consumer
