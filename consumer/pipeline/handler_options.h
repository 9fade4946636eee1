// What a pipeline file can say of handlers and retries, and how parts of a record are named and
// read (columns). Values.
#pragma once

#include <array>
#include <charconv>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "consumer/pipeline/error_class.h"
#include "consumer/pipeline/server_options.h"
#include "consumer/record/record.h"
#include "consumer/record/selector.h"

namespace fencepost::consumer {

class Handler;  // consumer/handlers/handler.h

enum class Jitter : std::uint8_t { kFull, kNone };

// How the text or number that a selector finds is read: `convert` of an output with a table.
enum class Conversion : std::uint8_t {
  kNone,
  kDays,  // to kNanos: a number that counts since the Unix epoch, or since midnight
  kSeconds,
  kMillis,
  kMicros,
  kNanos,
  kBase64,  // a text that stands for bytes
  kHex,
  kBool,   // 0 or 1
  kInt32,  // so many bits as bytes, the highest first
  kInt64,
  kDecimal,  // base64 of the unscaled number's bytes; or an object of scale and value
  kJson,     // a text that holds a document
};
inline constexpr std::array<std::string_view, 13> kConversionWords{
    "", "d", "s", "ms", "us", "ns", "base64", "hex", "bool", "int32", "int64", "decimal", "json"};
constexpr int kMostScale = 4096;  // of kDecimal, with either sign
constexpr std::string_view kScaledDecimal = "decimal:";
constexpr bool IsTime(Conversion conversion) {
  return conversion >= Conversion::kDays && conversion <= Conversion::kNanos;
}
constexpr std::string_view WordOf(Conversion conversion) {
  return kConversionWords[static_cast<std::size_t>(conversion)];
}
struct ConversionOf {
  Conversion conversion = Conversion::kNone;
  int scale = -1;  // of kDecimal; -1: each value has its own
  bool operator==(const ConversionOf&) const = default;
};
// One of the words, decimal also with its scale ("decimal:2", 0 to kMostScale). nullopt: it is none
// of them.
inline std::optional<ConversionOf> ParseConversion(std::string_view text) {
  for (std::size_t i = 1; i < kConversionWords.size(); ++i) {
    if (kConversionWords[i] == text) return ConversionOf{.conversion = static_cast<Conversion>(i)};
  }
  if (!text.starts_with(kScaledDecimal)) return std::nullopt;
  text.remove_prefix(kScaledDecimal.size());
  if (text.starts_with(' ')) text.remove_prefix(1);
  int scale = -1;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), scale);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  if (scale < 0 || scale > kMostScale) return std::nullopt;
  return ConversionOf{.conversion = Conversion::kDecimal, .scale = scale};
}

struct Column {
  std::string name;
  Selector selector;
  Conversion conversion = Conversion::kNone;  // outputs with tables alone
  int scale = -1;                             // ConversionOf
  bool operator==(const Column&) const = default;
};

// Several records in one call: as many as wait, up to max_records, once the first has waited for
// `linger`.
struct BatchOptions {
  int max_records = 1;  // 1: a call a record
  Millis linger{0};
};

// What a request carries of a record.
enum class HttpBody : std::uint8_t { kValue, kNone, kJq };
// What an answer makes of it: the new value, nothing (the record stays as it was), a part of the
// record's value, or what a jq program makes of both.
enum class HttpResult : std::uint8_t { kReplace, kKeep, kMerge, kJq };
enum class HttpBatchForm : std::uint8_t { kArray, kNdjson };

struct HttpHandlerOptions {
  std::string url;  // with selectors in braces
  std::string method = "POST";
  std::vector<Column> query;                                 // beside what the url has
  std::vector<std::pair<std::string, std::string>> headers;  // with selectors in braces
  HttpBody body = HttpBody::kValue;
  std::string body_program;  // kJq
  HttpResult result = HttpResult::kReplace;
  std::string result_pointer;  // kMerge: RFC 6901
  std::string result_program;  // kJq
  BatchOptions batch;
  HttpBatchForm batch_form = HttpBatchForm::kArray;
  std::vector<ErrorClass> success{"2xx"};
  std::vector<ErrorClass> retry_on{"408", "429", "5xx"};  // and no answer: timeout, connection
  double rate_limit = 0;                                  // calls a second, of this worker; 0: any
  HttpAuthOptions auth;
  std::string tls_ca, tls_certificate, tls_key;  // paths; empty: the system's CAs, no certificate
};
enum class ExecValue : std::uint8_t { kJson, kText };
struct ExecHandlerOptions {
  std::vector<std::string> command;
  ExecValue value = ExecValue::kJson;  // the form in which a record's value is given
  int processes = 4;
  BatchOptions batch;
};
struct JqHandlerOptions {
  std::string program;
};
// A part of the value in its place.
struct TakeHandlerOptions {
  Selector part;  // json:
};
// A handler in C++, for programs that link the library: each thread of the pool makes its own.
struct CustomHandlerOptions {
  std::function<std::unique_ptr<Handler>()> make;
  int threads = 4;
};
struct HandlerOptions {
  std::variant<std::monostate, HttpHandlerOptions, ExecHandlerOptions, JqHandlerOptions,
               TakeHandlerOptions, CustomHandlerOptions>
      kind;
  bool idempotent = false;  // the receiver honours the Idempotency-Key (the user's word)

  [[nodiscard]] bool any() const { return kind.index() != 0; }
  [[nodiscard]] double calls_per_second() const {
    const auto* http = std::get_if<HttpHandlerOptions>(&kind);
    return http == nullptr ? 0 : http->rate_limit;
  }
  // It may have effects of its own: ids are looked up in the ledger before it runs, and calls of
  // one order chain never overlap.
  [[nodiscard]] bool outside() const {
    return any() && !std::holds_alternative<JqHandlerOptions>(kind) &&
           !std::holds_alternative<TakeHandlerOptions>(kind);
  }
};

// How a handler's failure is tried again: after a wait drawn from [0, b] (jitter: full) or of b,
// b = min(max, initial * multiplier^(attempt - 1)); a longer Retry-After counts instead. Until both
// `attempts` and `give_up_after` are reached, while other records succeed.
struct RetryOptions {
  int attempts = 5;               // calls in all; 1: never tried again
  Millis give_up_after{900'000};  // since the first failure, without the time of outages
  Millis initial{100};
  Millis max{10'000};
  double multiplier = 2;
  Jitter jitter = Jitter::kFull;
  std::vector<ErrorClass> never;  // not tried again; a class named exactly in retry_on beats "4xx"
};

}  // namespace fencepost::consumer
