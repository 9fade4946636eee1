// How the servers are reached that a pipeline file names in several places: clusters of Kafka,
// schema registries, services. Values.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "locking/base/secret.h"

namespace fencepost::consumer {

// OIDC's client credentials grant (RFC 6749, 4.4); empty: not used. `extensions` are of SASL
// OAUTHBEARER.
struct OauthOptions {
  std::string token_url, client_id;
  Secret client_secret;  // read for every token
  std::string scope, extensions;
  bool operator==(const OauthOptions&) const = default;
};

// How a service is told who calls: one of them, or none. Secrets are read at every request.
struct HttpAuthOptions {
  Secret bearer;
  std::string username;  // basic
  Secret password;
  OauthOptions oauth;
  [[nodiscard]] bool any() const {
    return !bearer.empty() || !username.empty() || !oauth.token_url.empty();
  }
};

// SASL GSSAPI.
struct KerberosOptions {
  std::string keytab;             // a path; empty: not used. Its first principal logs in
  std::string service = "kafka";  // the first part of the brokers' principals
};

// How a cluster is reached.
struct ClusterOptions {
  std::vector<std::string> brokers;
  bool tls = false;                              // without a CA by the system's
  std::string tls_ca, tls_certificate, tls_key;  // paths; empty: not used
  std::string sasl_mechanism, sasl_username;
  Secret sasl_password;     // PasswordFiles
  std::string sasl_region;  // of AWS_MSK_IAM, which needs it
  OauthOptions oauth;
  KerberosOptions kerberos;
};

// How keys or values are written in Kafka. kJson and kBytes are taken as they are, kJsonSchema
// without the header of Confluent's wire format; the others become JSON by their schema.
enum class RecordFormat : std::uint8_t { kAvro, kProtobuf, kJsonSchema, kJson, kBytes };

struct RegistryOptions {
  std::string url;  // empty: no format needs one
  HttpAuthOptions auth;
  std::vector<std::pair<std::string, std::string>> headers;  // of each request
  std::string tls_ca, tls_certificate, tls_key;              // paths; empty: not used
};

struct DecodeOptions {
  RecordFormat value = RecordFormat::kJson;
  RecordFormat key = RecordFormat::kJson;
  RegistryOptions registry;
  static bool IsWireFormat(RecordFormat format) { return format <= RecordFormat::kJsonSchema; }
  [[nodiscard]] bool Needed() const { return IsWireFormat(value) || IsWireFormat(key); }
};

}  // namespace fencepost::consumer
