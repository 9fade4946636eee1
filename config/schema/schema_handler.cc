// The rows of handler, retry and dead_letter.
#include <variant>

#include "config/schema/checks.h"
#include "config/schema/schema.h"
#include "config/schema/schema_oauth.h"

namespace fencepost::config {
namespace {

using namespace consumer;  // the options
using T = Type;

template <typename Kind>
constexpr auto kHandler = [](auto& o) { return std::get_if<Kind>(&o.handler.kind); };
constexpr auto kHttp = kHandler<HttpHandlerOptions>;
constexpr auto kExec = kHandler<ExecHandlerOptions>;
constexpr auto kHttpOauth = [](auto& o) {
  auto* const http = kHttp(o);
  return http == nullptr ? nullptr : &http->auth.oauth;
};
constexpr auto kRetry = [](auto& o) { return &o.retry; };
constexpr auto kDeadLetter = [](auto& o) { return o.dead_letter ? &*o.dead_letter : nullptr; };

// Of the handler whose section has the key.
template <typename Kind>
constexpr auto kHandlerWith =
    [](auto& o) { return kHandler<Kind>(o) == nullptr ? nullptr : &o.handler; };

// The key chooses the handler, too, and is all there is to say of it.
template <typename Kind, typename Member>
Target Whole(Member Kind::*member) {
  Target target = At(kHandler<Kind>, member);
  target.store = [member, store = target.store](const Given& given, PipelineOptions& o) {
    o.handler.kind = Kind();
    store(given, o);
  };
  target.same = [chosen = Chosen(kHandler<Kind>, nullptr), at = target](
                    const auto& a, const auto& b) { return chosen.same(a, b) && at.same(a, b); };
  return target;
}

// A key of a section in the place of a word (or_section): with it, `form` is `chosen`.
template <typename Form>
Target InPlaceOfWord(std::string HttpHandlerOptions::*text, Form HttpHandlerOptions::*form,
                     Form chosen) {
  Target target = At(kHttp, text);
  target.store = [=, store = target.store](const Given& given, PipelineOptions& o) {
    if (auto* const http = kHttp(o)) http->*form = chosen;
    store(given, o);
  };
  return target;
}

std::vector<Key> HttpKeys() {
  const KeysOf http("handler.http", kHttp);
  const KeysOf oauth("handler.http.auth.oauth2", kHttpOauth);
  std::vector<Key> keys = {
      http("", Chosen(kHttp, [](PipelineOptions& o) { o.handler.kind = HttpHandlerOptions(); }),
           "Sends the record's value to an HTTP service; the answer's body becomes the value. Each "
           "call carries `Idempotency-Key` and `Fencing-Token`."),
      http("url", &HttpHandlerOptions::url,
           "`http://…` or `https://…`. A segment of its path or a value of its query may have "
           "selectors in braces, as in `/orders/{json:/id}`, which are percent-encoded.",
           {.check = CheckHttpTemplate, .required = true, .basic = true}),
      http("method", &HttpHandlerOptions::method, "The request method.",
           {.choices = {"POST", "PUT", "PATCH", "DELETE", "GET"}}),
      http("query", &HttpHandlerOptions::query,
           "Names and selectors of what is added to the url's query. With `?` what is not found is "
           "left out."),
      http("headers", &HttpHandlerOptions::headers,
           "Headers that each call carries: a text, with selectors in braces or as one selector "
           "alone (`header:NAME`, `json:/POINTER`, `key:/POINTER`). With `?` a header is left out "
           "where nothing is found. `{{` is a brace.",
           {.check = CheckHttpHeader, .secret = true}),
      http("body",
           OneOf<HttpBody>({{"value", HttpBody::kValue}, {"none", HttpBody::kNone}}, kHttp,
                           &HttpHandlerOptions::body),
           "What a request carries: the record's `value`, or `none`. GET has no body.",
           {.or_section = true}),
      http("body.jq",
           InPlaceOfWord(&HttpHandlerOptions::body_program, &HttpHandlerOptions::body,
                         HttpBody::kJq),
           "The one result of a program, as of `handler.jq`; with none or several the record is "
           "bad.",
           {.lines = true}),
      http(
          "result",
          OneOf<HttpResult>({{"replace", HttpResult::kReplace}, {"keep", HttpResult::kKeep}}, kHttp,
                            &HttpHandlerOptions::result),
          "What an answer makes of the record. `replace`: its body is the value. `keep`: the value "
          "stays, and the body is not read.",
          {.or_section = true}),
      http("result.merge_into",
           InPlaceOfWord(&HttpHandlerOptions::result_pointer, &HttpHandlerOptions::result,
                         HttpResult::kMerge),
           "`/POINTER` in the record's value where the body, which is JSON, is put; all other "
           "bytes stay. Missing objects are made.",
           {.check = CheckPart}),
      http("result.jq",
           InPlaceOfWord(&HttpHandlerOptions::result_program, &HttpHandlerOptions::result,
                         HttpResult::kJq),
           "The results of a program on `{\"record\": VALUE, \"answer\": BODY}`, as of "
           "`handler.jq`.",
           {.lines = true}),
      http("success", &HttpHandlerOptions::success,
           "Statuses that count as an answer: `200`, `2xx`.",
           {.default_words = "`[2xx]`", .check = CheckStatus, .by_commas = true}),
      http("retry_on", &HttpHandlerOptions::retry_on,
           "Failures that are retried, besides `timeout` and `connection`: `408`, `429`, `5xx`. "
           "Others fail at once, but for 3xx, 401, 403, 405, 407, 421 and 426, which are about the "
           "caller, and for any until the worker's first success.",
           {.default_words = "`[408, 429, 5xx]`",
            .check = CheckErrorClass,
            .may_be_empty = true,
            .by_commas = true}),
      http("idempotent", At(kHandlerWith<HttpHandlerOptions>, &HandlerOptions::idempotent),
           "Your word that the service treats a second call with the same `Idempotency-Key` as the "
           "first one. `guarantee: exactly-once` requires it.",
           {.basic = true}),
      http(
          "rate_limit", &HttpHandlerOptions::rate_limit,
          "Requests a second at most, of each worker: `50`, `0.5`. Records wait for their turn.",
          {.reload = Reload::kLive, .default_words = "no limit", .limits = {{"0.001", "1000000"}}}),
      http("auth", "How the service is told who calls, instead of a header `Authorization`.",
           {.one_child = true}),
      http("auth.basic", "A user and a password."),
      http("auth.basic.username", At(kHttp, &HttpHandlerOptions::auth, &HttpAuthOptions::username),
           "User.", {.check = CheckBasicUser, .required = true}),
      http("auth.basic.password", At(kHttp, &HttpHandlerOptions::auth, &HttpAuthOptions::password),
           "Its password.", {.required = true, .empty_text = true}),
      http("auth.bearer", At(kHttp, &HttpHandlerOptions::auth, &HttpAuthOptions::bearer),
           "A token, without the word Bearer.", {.check = CheckBearer}),
      http("tls", "How the service's certificate is checked, and ours."),
      http("tls.ca", &HttpHandlerOptions::tls_ca,
           "File with the certificates that are trusted, instead of the system's."),
      http("tls.certificate", &HttpHandlerOptions::tls_certificate,
           "File with the client's certificate; with `key`."),
      http("tls.key", &HttpHandlerOptions::tls_key,
           "File with the client's key, without passphrase; with `certificate`."),
  };
  Append(keys, OauthKeys(oauth,
                         "A token by OAuth's client credentials grant: one for all calls, renewed "
                         "before it expires and once the service refuses it (401).",
                         "Where tokens come from; its certificate is checked against the system's "
                         "and `tls.ca`."));
  return keys;
}

std::vector<Key> RetryKeys() {
  const KeysOf retry("retry", kRetry);
  const KeysOf dead("dead_letter", kDeadLetter);
  return {
      retry("",
            "Retries of a failed handler call. The wait is drawn from 0 to `initial` × "
            "`multiplier`^(attempt - 1), at most `max`, or a longer `Retry-After`. Other keys do "
            "not wait. When a record is given up: "
            "[outages](../consumer/handlers/README.md#outages)."),
      retry("attempts", &RetryOptions::attempts,
            "A record is given up after so many calls or more: it becomes a dead letter, or the "
            "pipeline stops without `dead_letter`. `1`: no retry. A call that did not reach the "
            "service does not count.",
            {.reload = Reload::kLive, .limits = {{"1", "1000"}}, .basic = true}),
      retry("give_up_after", &RetryOptions::give_up_after,
            "A record is given up once it has failed for this long while others succeeded, or as "
            "the only one that was tried. Rebalances and restarts do not reset it. `0s`: after "
            "`attempts` calls.",
            {.reload = Reload::kLive, .limits = {{"0s", "30d"}}, .basic = true}),
      retry("backoff", "The wait between two calls."),
      retry("backoff.initial", &RetryOptions::initial, "The first wait.",
            {.reload = Reload::kLive, .limits = {{"1ms", "1h"}}}),
      retry("backoff.max", &RetryOptions::max, "The longest wait.",
            {.reload = Reload::kLive, .limits = {{"1ms", "1d"}}}),
      retry("backoff.multiplier", &RetryOptions::multiplier,
            "Each wait is this many times the one before.",
            {.reload = Reload::kLive, .limits = {{"1", "100"}}}),
      retry("backoff.jitter",
            OneOf<Jitter>({{"full", Jitter::kFull}, {"none", Jitter::kNone}}, kRetry,
                          &RetryOptions::jitter),
            "`full`: drawn from 0 to b; `none`: b itself.", {.reload = Reload::kLive}),
      retry("never", &RetryOptions::never,
            "Errors that are not retried: `404`, `4xx`, or a word such as `timeout`. A status that "
            "`retry_on` names is retried even if `4xx` or `5xx` is named here. `4xx` leaves out "
            "what is about the caller, such as `401`.",
            {.reload = Reload::kLive,
             .default_words = "none",
             .check = CheckErrorClass,
             .may_be_empty = true,
             .by_commas = true}),
      dead("", Chosen(kDeadLetter, [](PipelineOptions& o) { o.dead_letter.emplace(); }),
           "Where records go that cannot be processed: untouched, with headers that say why."),
      dead("topic", &DeadLetterOptions::topic, "Topic; on the same cluster none of `kafka.topics`.",
           {.check = CheckTopic, .required = true, .basic = true}),
      dead("max_consecutive", &DeadLetterOptions::max_consecutive,
           "Records in a row that become dead letters while none takes effect. Then the others "
           "wait and the worker is not ready until one does: what all share is a mistake in file, "
           "table or service. `0`: no limit.",
           {.limits = {{"0", "1000000"}}}),
      dead("on_publish_failure",
           "Partitions pause until the topic takes records again; nothing is dropped.",
           {.type = T::kChoice, .default_value = "pause", .choices = {"pause"}}),
  };
}

}  // namespace

std::vector<Key> HandlerKeys() {
  const KeysOf handler("handler");
  const KeysOf exec("handler.exec", kExec);
  std::vector<Key> keys = {
      handler("",
              "What is done to a record before it is written; without a handler it passes through. "
              "`http` and `exec` may run more than once for a record.",
              {.one_child = true}),
  };
  Append(keys, HttpKeys());
  Append(keys, HttpBatchKeys());
  Append(keys,
         {exec("", Chosen(kExec, [](PipelineOptions& o) { o.handler.kind = ExecHandlerOptions(); }),
               "Long-lived processes that read one JSON object a line and answer with one."),
          exec("command", &ExecHandlerOptions::command,
               "Program and arguments; no shell. Relative paths start at the working directory.",
               {.required = true, .lines = true, .basic = true}),
          exec("value",
               OneOf<ExecValue>({{"json", ExecValue::kJson}, {"text", ExecValue::kText}}, kExec,
                                &ExecHandlerOptions::value),
               "The form of the record's value in the line. `json`: a value that is not JSON makes "
               "the record bad. `text`: any value, as `value_text` or `value_base64`."),
          exec("processes", &ExecHandlerOptions::processes, "How many run at a time.",
               {.limits = {{"1", "1024"}}}),
          exec("idempotent", At(kHandlerWith<ExecHandlerOptions>, &HandlerOptions::idempotent),
               "Your word that a second run for the same `record_id` has no second effect. "
               "`guarantee: exactly-once` requires it.")});
  Append(keys, ExecBatchKeys());
  Append(keys,
         {handler(
              "jq", Whole(&JqHandlerOptions::program),
              "A jq program. Several results are several rows under one record id, none is no row.",
              {.lines = true, .basic = true}),
          handler("take", Whole(&TakeHandlerOptions::part),
                  "A part of the value in its place, `json:/POINTER`: its bytes as they are. With "
                  "`?` at the end it may be missing, which is null.")});
  Append(keys, RetryKeys());
  Append(keys, LetterClusterKeys());
  return keys;
}

}  // namespace fencepost::config
