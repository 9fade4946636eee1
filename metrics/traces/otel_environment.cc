#include "metrics/traces/otel_environment.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>

#include <fmt/format.h>

#include "consumer/record/text.h"
#include "metrics/traces/trace_post.h"

namespace fencepost::metrics {
namespace {

using Pairs = std::vector<std::pair<std::string, std::string>>;

constexpr std::string_view kPath = "/v1/traces";

std::string_view Trimmed(std::string_view text) {
  const std::size_t first = std::min(text.find_first_not_of(" \t"), text.size());
  return text.substr(first, text.find_last_not_of(" \t") + 1 - first);
}

std::string Lower(std::string_view text) {
  std::string lower(text);
  for (char& c : lower) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return lower;
}

// nullopt: a % without two digits behind it.
std::optional<std::string> PercentDecoded(std::string_view text) {
  std::string decoded;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      decoded += text[i];
      continue;
    }
    constexpr int kHex = 16;
    unsigned char byte = 0;
    const std::string_view digits = text.substr(i + 1, 2);
    const char* const end = digits.data() + digits.size();
    const auto [at, error] = std::from_chars(digits.data(), end, byte, kHex);
    if (digits.size() != 2 || error != std::errc() || at != end) return std::nullopt;
    decoded += static_cast<char>(byte);
    i += 2;
  }
  return decoded;
}

// NAME=VALUE,…: the form of W3C's baggage. nullopt: one of them is none.
std::optional<Pairs> PairsOf(std::string_view text) {
  Pairs pairs;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(','), text.size());
    const std::string_view pair = Trimmed(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
    if (pair.empty()) continue;
    const std::size_t equals = pair.find('=');
    if (equals == std::string_view::npos) return std::nullopt;
    const auto name = PercentDecoded(Trimmed(pair.substr(0, equals)));
    const auto value = PercentDecoded(Trimmed(pair.substr(equals + 1)));
    if (!name || name->empty() || !value) return std::nullopt;
    pairs.emplace_back(*name, *value);
  }
  return pairs;
}

bool IsHeader(const std::pair<std::string, std::string>& header) {
  constexpr std::string_view kSpecial = "!#$%&'*+-.^_`|~";
  const auto& [name, value] = header;
  return std::ranges::all_of(name,
                             [&](char c) {
                               return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                                      (c >= '0' && c <= '9') || kSpecial.find(c) != kSpecial.npos;
                             }) &&
         value.find_first_of(std::string_view("\r\n\0", 3)) == value.npos;
}

// http://otel:4318 and http://otel:4318/v1/traces alike; a query stays behind.
std::string WithPath(const std::string& endpoint) {
  std::size_t end = std::min(endpoint.find_first_of("?#"), endpoint.size());
  const std::string rest = endpoint.substr(end);
  while (end > 0 && endpoint[end - 1] == '/') --end;
  std::string url = endpoint.substr(0, end);
  if (!url.ends_with(kPath)) url += kPath;
  return url + rest;
}

// Of gRPC's port OTLP's for HTTP.
std::string AtHttpPort(std::string endpoint) {
  constexpr std::string_view kGrpc = ":4317", kHttp = ":4318";
  const std::size_t host = endpoint.find("://") + 3;
  const std::size_t end = std::min(endpoint.find_first_of("/?#", host), endpoint.size());
  if (endpoint.substr(host, end - host).ends_with(kGrpc)) {
    endpoint.replace(end - kGrpc.size(), kGrpc.size(), kHttp);
  }
  return endpoint;
}

class Resolver {
 public:
  Resolver(const TracesOfFile& file,
           const std::function<std::optional<std::string>(const std::string&)>& variable)
      : file_(file), variable_(variable), result_{.options = {.traces = file.options}} {}

  ResolvedTraces Resolve() {
    if (!Endpoint()) {
      traces().endpoint.clear();
      return std::move(result_);
    }
    Protocol();
    Headers();
    Request();
    Sampler();
    Resource();
    Batches();
    Propagators();
    return std::move(result_);
  }

 private:
  consumer::TraceOptions& traces() { return result_.options.traces; }
  [[nodiscard]] bool FileHas(std::string_view key) const { return file_.given(key); }

  [[nodiscard]] std::optional<std::string> Get(const std::string& name) const {
    const auto value = variable_(name);
    if (!value) return std::nullopt;
    std::string trimmed(Trimmed(*value));
    return trimmed.empty() ? std::nullopt : std::optional(std::move(trimmed));
  }
  // That of traces, or of all signals; its name too.
  [[nodiscard]] std::optional<std::pair<std::string, std::string>> GetOtlp(
      std::string_view part) const {
    for (const char* const of : {"TRACES_", ""}) {
      std::string name = fmt::format("OTEL_EXPORTER_OTLP_{}{}", of, part);
      if (auto value = Get(name)) return std::pair(std::move(name), std::move(*value));
    }
    return std::nullopt;
  }

  template <typename... Args>
  void Warn(fmt::format_string<Args...> text, Args&&... args) {
    result_.warnings.push_back(fmt::format(text, std::forward<Args>(args)...));
  }
  void WarnOfWord(std::string_view name, std::string_view value, std::string_view allowed) {
    Warn("{}={} is not known here and has no effect: write {}", name, consumer::OneLine(value, 80),
         allowed);
  }

  // False: there are no traces.
  bool Endpoint() {
    const bool of_file = !file_.options.endpoint.empty();
    const auto of_traces = Get("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT");
    const auto of_all = Get("OTEL_EXPORTER_OTLP_ENDPOINT");
    if (!of_file && !of_traces && !of_all) {
      if (FileHas("")) Warn("observe.traces has no endpoint, so there are no traces: give it one");
      return false;
    }
    if (const auto off = Get("OTEL_SDK_DISABLED"); off && Lower(*off) == "true") {
      if (of_file) Warn("OTEL_SDK_DISABLED=true: no traces go to observe.traces.endpoint");
      return false;
    }
    if (of_file) {
      traces().endpoint = WithPath(file_.options.endpoint);
      return true;
    }
    if (!Exporter()) return false;
    const std::string& url = of_traces ? *of_traces : *of_all;
    if (ShownEndpoint(url).empty() || url.find("://") == url.npos) {
      Warn(
          "OTEL_EXPORTER_OTLP_{}ENDPOINT is no URL, so there are no traces: write http://HOST:4318",
          of_traces ? "TRACES_" : "");
      return false;
    }
    traces().endpoint = of_traces ? url : WithPath(url);
    return true;
  }

  bool Exporter() {
    constexpr const char* kName = "OTEL_TRACES_EXPORTER";
    const auto exporter = Get(kName);
    if (!exporter || *exporter == "otlp") return true;
    if (*exporter == "none") return false;
    WarnOfWord(kName, *exporter, "otlp or none");
    return true;
  }

  void Protocol() {
    const auto protocol = GetOtlp("PROTOCOL");
    if (!protocol || protocol->second == "http/protobuf") return;
    if (file_.options.endpoint.empty() && protocol->second == "grpc") {
      traces().endpoint = AtHttpPort(traces().endpoint);
    }
    Warn("{}={}: spans are sent by http/protobuf to {}, as OTLP's port 4318 takes them",
         protocol->first, consumer::OneLine(protocol->second, 80),
         ShownEndpoint(traces().endpoint));
  }

  void Headers() {
    const auto headers = GetOtlp("HEADERS");
    if (!file_.options.headers.empty() || !headers) return;
    auto pairs = PairsOf(headers->second);
    if (!pairs || !std::ranges::all_of(*pairs, IsHeader)) {
      Warn("{} is not NAME=VALUE,… with values percent-encoded, and has no effect", headers->first);
      return;
    }
    traces().headers = std::move(*pairs);
  }

  void Request() {
    if (const auto file = GetOtlp("CERTIFICATE")) result_.options.certificate = file->second;
    if (const auto file = GetOtlp("CLIENT_CERTIFICATE")) {
      result_.options.client_certificate = file->second;
    }
    if (const auto file = GetOtlp("CLIENT_KEY")) result_.options.client_key = file->second;
    const std::int64_t usual = traces().timeout.count();
    if (const auto timeout = GetOtlp("TIMEOUT")) {
      traces().timeout = Millis(Whole(timeout->first, timeout->second, usual));
    } else {
      traces().timeout = Millis(Size("OTEL_BSP_EXPORT_TIMEOUT", usual));
    }
    const auto compression = GetOtlp("COMPRESSION");
    if (!compression) return;
    result_.options.gzip = compression->second == "gzip";
    if (!result_.options.gzip && compression->second != "none") {
      WarnOfWord(compression->first, compression->second, "gzip or none");
    }
  }

  void Sampler() {
    constexpr const char* kName = "OTEL_TRACES_SAMPLER";
    constexpr std::string_view kParent = "parentbased_";
    auto sampler = Get(kName);
    if (FileHas("sample") || !sampler) return;
    std::string_view word = *sampler;
    const bool parent = word.starts_with(kParent);
    if (parent) word.remove_prefix(kParent.size());
    if (word != "always_on" && word != "always_off" && word != "traceidratio") {
      return WarnOfWord(kName, *sampler,
                        "always_on, always_off, traceidratio, or one of these with parentbased_ "
                        "before it");
    }
    traces().parent_decides = parent;
    traces().sample = word == "always_off" ? 0 : word == "always_on" ? 1 : Ratio();
  }

  double Ratio() {
    constexpr const char* kName = "OTEL_TRACES_SAMPLER_ARG";
    const auto text = Get(kName);
    if (!text) return 1;
    double ratio = 1;
    const char* const end = text->data() + text->size();
    const auto [at, error] = std::from_chars(text->data(), end, ratio);
    if (error == std::errc() && at == end && ratio >= 0 && ratio <= 1) return ratio;
    WarnOfWord(kName, *text, "a number from 0 to 1");
    return 1;
  }

  void Resource() {
    constexpr const char* kName = "OTEL_RESOURCE_ATTRIBUTES";
    constexpr std::string_view kService = "service.name";
    if (const auto attributes = Get(kName)) {
      auto pairs = PairsOf(*attributes);
      if (!pairs)
        Warn("{} is not NAME=VALUE,… with values percent-encoded, and has no effect", kName);
      for (auto& [name, value] : pairs.value_or(Pairs())) {
        if (name == kService) {
          traces().service = value;
        } else {
          traces().resource.emplace_back(name, value);
        }
      }
    }
    if (const auto service = Get("OTEL_SERVICE_NAME")) traces().service = *service;
  }

  void Batches() {
    ExportOptions& options = result_.options;
    options.max_queue = Size("OTEL_BSP_MAX_QUEUE_SIZE", options.max_queue);
    options.max_batch =
        std::min(Size("OTEL_BSP_MAX_EXPORT_BATCH_SIZE", options.max_batch), options.max_queue);
    options.delay = Millis(Size("OTEL_BSP_SCHEDULE_DELAY", options.delay.count()));
  }

  // What is read and written is no matter of a variable: only what cannot be is worth a word.
  void Propagators() {
    constexpr const char* kName = "OTEL_PROPAGATORS";
    constexpr std::array<std::string_view, 4> kKnown = {"tracecontext", "b3", "b3multi", "baggage"};
    const auto propagators = Get(kName);
    for (std::string_view rest = propagators ? *propagators : std::string_view(); !rest.empty();) {
      const std::size_t end = std::min(rest.find(','), rest.size());
      const std::string_view word = Trimmed(rest.substr(0, end));
      rest.remove_prefix(std::min(end + 1, rest.size()));
      if (!word.empty() && std::ranges::count(kKnown, word) == 0) {
        WarnOfWord(kName, word, "tracecontext, b3, b3multi, baggage, or several with commas");
      }
    }
  }

  template <typename T>
  T Size(const char* name, T otherwise) {
    const auto text = Get(name);
    return text ? static_cast<T>(Whole(name, *text, static_cast<std::int64_t>(otherwise)))
                : otherwise;
  }

  std::int64_t Whole(std::string_view name, std::string_view text, std::int64_t otherwise) {
    constexpr std::int64_t kMost = 1'000'000;
    std::int64_t number = 0;
    const char* const end = text.data() + text.size();
    const auto [at, error] = std::from_chars(text.data(), end, number);
    if (error == std::errc() && at == end && number >= 1 && number <= kMost) return number;
    WarnOfWord(name, text, fmt::format("a whole number from 1 to {}", kMost));
    return otherwise;
  }

  const TracesOfFile& file_;
  const std::function<std::optional<std::string>(const std::string&)>& variable_;
  ResolvedTraces result_;
};

}  // namespace

ResolvedTraces ResolveTraces(
    const TracesOfFile& file,
    const std::function<std::optional<std::string>(const std::string& name)>& variable) {
  return Resolver(file, variable).Resolve();
}

}  // namespace fencepost::metrics
