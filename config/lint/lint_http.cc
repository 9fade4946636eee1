// handler.http: its templates, its body, batches, who calls, TLS.
#include <algorithm>
#include <array>
#include <variant>

#include <fmt/format.h>

#include "config/lint/lint_parts.h"
#include "config/schema/checks.h"
#include "consumer/handlers/http/http_template.h"
#include "consumer/record/text.h"

namespace fencepost::config {
namespace {

using consumer::HttpHeader;
using consumer::HttpUrl;
using consumer::Selector;
using consumer::TemplateProblem;

constexpr std::string_view kHeaders = "handler.http.headers";

// A selector is shown where all of its text may be.
void Tell(std::string_view path, const Text& text, const TemplateProblem& problem,
          Findings& findings) {
  if (problem.selector.empty()) {
    return findings.Error(text.at, "selector", "{} {}", path, problem.why);
  }
  const bool shown = text.shown == fmt::format("\"{}\"", text.value);
  const std::string meant =
      shown && !Selector::Parse(problem.selector) ? consumer::LikelySelector(problem.selector) : "";
  findings.Error(text.at, "selector", "{}: {{{}}}: {}", path, shown ? problem.selector : "…",
                 meant.empty() ? problem.why
                               : fmt::format("not a selector; did you mean {{{}}}? {}", meant,
                                             consumer::kSelectorForms));
}

void LintUrl(const Values& values, Findings& findings) {
  for (const Text& url : values.Texts("handler.http.url")) {
    const auto parsed = HttpUrl::Parse(url.value, {});
    if (!parsed) Tell("handler.http.url", url, parsed.error(), findings);
  }
  for (const Text& part : values.Texts("handler.http.query")) {
    const std::string_view why = consumer::RequestSelectorProblem(part.selector);
    if (why.empty()) continue;
    findings.Error(part.at, "selector", "handler.http.query.{}: {}", part.name, why);
  }
}

void LintHeader(const Text& header, Findings& findings) {
  constexpr std::array<std::string_view, 5> kOwn{"idempotency-key", "fencing-token",
                                                 "x-fencepost-source", "content-length",
                                                 "transfer-encoding"};
  const std::string name = consumer::Lower(header.name);
  const std::string path = fmt::format("{}.{}", kHeaders, header.name);
  if (std::ranges::find(kOwn, name) != kOwn.end()) {
    findings.Error(header.name_at, "handler", "{}: {} is set by fencepost: leave it out", kHeaders,
                   header.name);
  }
  if (header.value.find_first_of("\r\n") != std::string::npos) {
    findings.Error(header.at, "handler", "{}: a header is one line", path);
  }
  const auto parsed = HttpHeader::Parse(header.name, header.value);
  if (!parsed) return Tell(path, header, parsed.error(), findings);
  const auto selector = Selector::Parse(header.value);
  if (!parsed->constant() || !selector || selector->kind == Selector::Kind::kConstant) return;
  findings.Warning(header.at, "handler",
                   "{}: the word is sent as it is; what it selects is in braces, and {{=TEXT}} is "
                   "the text",
                   path);
}

void LintBody(const Values& values, Findings& findings) {
  constexpr std::string_view kBody = "handler.http.body";
  const auto* const http =
      std::get_if<consumer::HttpHandlerOptions>(&values.options().handler.kind);
  if (http == nullptr || http->method != "GET" || http->body == consumer::HttpBody::kNone) return;
  if (values.Find(kBody) == nullptr && !values.Given("handler.http.body.jq")) return;
  findings.Error(values.ValuePlace(kBody), "handler",
                 "{}: a GET request has none; leave it out, or take another method", kBody);
}

void LintBatch(const Values& values, Findings& findings) {
  if (!values.Given("handler.http.batch")) return;
  const auto needs_body = [&](std::string_view path) {
    findings.Error(values.ValuePlace(path), "handler",
                   "{}: a batch is a body: leave it out, or handler.http.batch", path);
  };
  if (values.String("handler.http.method") == "GET") needs_body("handler.http.method");
  if (values.String("handler.http.body") == "none") needs_body("handler.http.body");
}

// Who calls is said once.
void LintAuth(const Values& values, Findings& findings) {
  constexpr std::string_view kAuth = "handler.http.auth";
  if (!values.Given(kAuth)) return;
  for (const Text& header : values.Texts(kHeaders)) {
    if (consumer::Lower(header.name) != "authorization") continue;
    findings.Error(header.name_at, "handler", "{}: {} is set by {}: leave one of the two out",
                   kHeaders, header.name, kAuth);
  }
  const std::string url = WithoutSelectors(values.String("handler.http.url"));
  const std::size_t path = url.find_first_of("/?#", url.find("://") + 3);
  if (url.substr(0, path).find('@') == std::string::npos) return;
  findings.Error(values.KeyPlace(kAuth), "handler",
                 "{}: handler.http.url has a user: leave one of the two out", kAuth);
}

void LintServiceTls(const Values& values, Findings& findings) {
  LintPair(values, "handler.http.tls.certificate", "handler.http.tls.key", findings);
  if (!values.Given("handler.http.tls")) return;
  for (const Text& url : values.Texts("handler.http.url")) {
    if (!url.value.starts_with("http://")) continue;
    findings.Warning(url.at, "tls",
                     "handler.http.url: {} is reached without TLS, though there is "
                     "handler.http.tls; https:// is with it",
                     url.shown);
  }
}

}  // namespace

void LintHttp(const Values& values, Findings& findings) {
  LintAuth(values, findings);
  LintServiceTls(values, findings);
  LintUrl(values, findings);
  LintBody(values, findings);
  LintBatch(values, findings);
  for (const Text& header : values.Texts(kHeaders)) LintHeader(header, findings);
}

}  // namespace fencepost::config
