#include "consumer/handlers/jq/jq_handler.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <mutex>
#include <span>
#include <sstream>
#include <utility>

#include <fmt/format.h>

#include "consumer/handlers/jq/jq_memory.h"
#include "consumer/handlers/jq/jq_numbers.h"
#include "consumer/handlers/runner.h"
#include "consumer/json/json_text.h"
#include "consumer/json/memory_bound.h"
#include "consumer/record/text.h"
#include "locking/base/check.h"

extern "C" {
#include <jq.h>
}

namespace fencepost::consumer {

// (name, text) of prelude.jq.
std::span<const std::pair<std::string_view, std::string_view>> JqPreludeFile();

namespace {

// Of the inexact numbers of a record that is refused, so many at most are asked for the guilty one.
constexpr std::size_t kMostNamed = 16;

// The builtin `now`, which would be another in each run.
constexpr std::string_view kNow = "now";
constexpr std::array<std::string_view, 6> kVariables = {"record_id", "topic", "partition",
                                                        "offset",    "key",   "headers"};

// Owns one reference to a value; libjq's functions take references over (Release) or want a copy.
class Jv {
 public:
  explicit Jv(jv value) : value_(value) {}
  ~Jv() { jv_free(value_); }
  Jv(Jv&& other) noexcept : value_(std::exchange(other.value_, jv_null())) {}
  Jv& operator=(Jv&& other) noexcept {
    std::swap(value_, other.value_);
    return *this;
  }
  [[nodiscard]] jv Copy() const { return jv_copy(value_); }
  [[nodiscard]] jv Look() const { return value_; }  // for those that take nothing over
  [[nodiscard]] jv Release() { return std::exchange(value_, jv_null()); }
  [[nodiscard]] jv_kind Kind() const { return jv_get_kind(value_); }

 private:
  jv value_;
};

// On one line, so that jq counts the lines of the program as the user does.
std::string Prelude() {
  std::istringstream lines{std::string(JqPreludeFile()[0].second)};
  std::string all;
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with('#')) all += line + " ";
  }
  return all;
}

std::string StringOf(const Jv& string) {
  return {jv_string_value(string.Look()),
          static_cast<std::size_t>(jv_string_length_bytes(string.Copy()))};
}

std::string Dumped(const Jv& value) { return StringOf(Jv(jv_dump_string(value.Copy(), 0))); }

jv ToJv(std::string_view text) {
  return jv_string_sized(text.data(), static_cast<int>(text.size()));
}

// jq's own words quote what they are about, so they go into the dead letter alone.
HandlerResult Bad(std::string error_class, std::string_view text, std::string shown) {
  return tl::unexpected(HandlerFailure{.error_class = std::move(error_class),
                                       .text = OneLine(text),
                                       .shown = std::move(shown),
                                       .retry = false});
}

jv Variable(std::string_view name, const HandlerRequest& request) {
  const Record& record = *request.record;
  if (name == "record_id") return ToJv(request.record_id);
  if (name == "topic") return ToJv(request.where->topic);
  if (name == "partition") return jv_number(request.where->partition);
  if (name == "offset") return jv_number(static_cast<double>(record.offset));
  if (name == "key") return record.key ? ToJv(*record.key) : jv_null();
  jv headers = jv_object();
  for (const HeaderView& header : record.headers) {
    headers =
        jv_object_set(headers, ToJv(header.name), header.value ? ToJv(*header.value) : jv_null());
  }
  return headers;
}

// What an error says: a text as it is, anything else as JSON.
std::string ErrorText(const Jv& message) {
  if (message.Kind() == JV_KIND_INVALID) return "";
  return message.Kind() == JV_KIND_STRING ? StringOf(message) : Dumped(message);
}

// The first thing that jq said of a program, without what is true of its command line only.
std::string WhatIsWrong(std::string words) {
  constexpr std::string_view kPrefix = "jq: error: ";
  constexpr std::string_view kShell = " (Unix shell quoting issues?)";
  if (words.starts_with(kPrefix)) words.erase(0, kPrefix.size());
  if (const auto at = words.find(kShell); at != std::string::npos) words.erase(at, kShell.size());
  return OneLine(words.empty() ? "it does not compile" : words, 300);
}

}  // namespace

struct JqHandler::Jq {
  Jq() : state(jq_init()) {
    FENCEPOST_CHECK(state != nullptr, "jq_init");
    // libjq 1.6 leaves these two as the memory was; `debug` and `input` call them.
    jq_set_debug_cb(state, nullptr, nullptr);
    jq_set_input_cb(state, nullptr, nullptr);
    // Without them an import in the program ends this process.
    jq_set_attr(state, jv_string("JQ_LIBRARY_PATH"), jv_array());
    jq_set_attr(state, jv_string("JQ_ORIGIN"), jv_string("/"));
    jq_set_attr(state, jv_string("PROGRAM_ORIGIN"), jv_string("/"));
  }
  ~Jq() { jq_teardown(&state); }
  Jq(const Jq&) = delete;
  Jq& operator=(const Jq&) = delete;

  // Empty, or what is wrong, in jq's words.
  std::string Compile(const std::string& program, const std::vector<std::string_view>& variables) {
    std::string words;
    jq_set_error_cb(
        state,
        [](void* data, jv message) {
          const Jv held(message);
          auto& first = *static_cast<std::string*>(data);
          if (first.empty()) first = ErrorText(held);
        },
        &words);
    jv null_variables = jv_object();
    for (const std::string_view name : variables) {
      null_variables = jv_object_set(null_variables, ToJv(name), jv_null());
    }
    const bool good = jq_compile_args(state, program.c_str(), null_variables) != 0;
    jq_set_error_cb(
        state, [](void*, jv message) { jv_free(message); }, nullptr);
    return good ? "" : WhatIsWrong(std::move(words));
  }

  jq_state* state;
};

// libjq and its regular expressions set themselves up at first use, which no two threads may do at
// once.
void JqHandler::WarmUp() {
  static std::once_flag once;
  std::call_once(once, [] {
    const auto handler = Compile(R"([match("a")] | {a: tojson, b: now | todate})", "");
    FENCEPOST_CHECK(handler.has_value(), handler.error().what);
    const TopicPartition where{.topic = "warm-up"};
    Record record;
    record.value = R"("a")";
    const HandlerRequest request{.record = &record, .where = &where};
    FENCEPOST_CHECK((*handler)->Handle(request, {}).has_value(), "jq does not run");
  });
}

tl::expected<std::unique_ptr<Handler>, Error> JqHandler::Make(const std::string& program,
                                                              std::string_view where) {
  WarmUp();
  return Compile(program, where);
}

tl::expected<std::unique_ptr<Handler>, Error> JqHandler::Compile(const std::string& program,
                                                                 std::string_view where) {
  const auto error = [where](std::string what) {
    return tl::unexpected(Error{.code = "bad_program",
                                .what = "the jq program does not compile: " + std::move(what),
                                .where = std::string(where),
                                .hint = ""});
  };
  if (program.find('\0') != std::string::npos) return error("it holds a NUL character");
  std::vector<std::string_view> variables;
  for (const std::string_view name : kVariables) {
    if (program.find(fmt::format("${}", name)) != std::string::npos) variables.push_back(name);
  }
  // As written first, so that what jq says of lines is true of the user's text.
  if (std::string words = Jq().Compile(program, variables); !words.empty()) {
    return error(std::move(words));
  }
  if (program.find(kNow) != std::string::npos) variables.push_back(kNow);
  // libjq binds variables when it compiles. Ours change with each record, so they come in beside
  // the value: [$topic, $key, VALUE].
  std::string whole = Prelude();
  for (std::size_t i = 0; i < variables.size(); ++i) {
    whole += variables[i] == kNow ? fmt::format(".[{}] as $_now | def now: $_now; ", i)
                                  : fmt::format(".[{}] as ${} | ", i, variables[i]);
  }
  whole += variables.empty() ? program : fmt::format(".[{}] | ({}\n)", variables.size(), program);
  auto jq = std::make_unique<Jq>();
  if (!jq->Compile(whole, {}).empty()) {
    return error("it must be an expression, without a module line");
  }
  return std::unique_ptr<Handler>(
      new JqHandler(std::move(jq), std::move(whole), std::move(variables)));
}

JqHandler::JqHandler(std::unique_ptr<Jq> jq, std::string program,
                     std::vector<std::string_view> variables)
    : jq_(std::move(jq)), program_(std::move(program)), variables_(std::move(variables)) {}

JqHandler::~JqHandler() = default;

// jq reads numbers as doubles. Whether one that no double holds has a part in the results shows
// when its neighbours are in its place: then they differ.
HandlerResult JqHandler::Handle(const HandlerRequest& request, const std::stop_token& stop) {
  const std::string_view value = request.record->value.value_or("null");
  if (const std::string_view why = JsonProblem(value); !why.empty()) {
    return tl::unexpected(NotJson(why, ""));
  }
  if (JqMemoryOf(value) > MaxMemoryOf(value.size())) {
    constexpr const char* kTooMuch = "the value takes too much memory in jq";
    return Bad("bad_record", kTooMuch, kTooMuch);
  }
  const double now =
      std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
  HandlerResult result = Run(value, request, now, stop);
  const auto inexact = FindInexactNumbers(value);
  if (!result || inexact.empty()) return result;
  const auto differs = [&](const std::vector<std::string_view>& numbers, Nudge nudge) {
    const HandlerResult other = Run(Nudged(value, numbers, nudge), request, now, stop);
    return !other || *other != *result;
  };
  const auto count = [&](const std::vector<std::string_view>& numbers) {
    return differs(numbers, Nudge::kDown) || differs(numbers, Nudge::kUp);
  };
  if (!count(inexact)) return result;
  if (stop.stop_requested()) return Cancelled();
  std::string_view named = inexact.front();
  for (std::size_t i = 0; i < std::min(inexact.size(), kMostNamed); ++i) {
    if (count({inexact[i]})) {
      named = inexact[i];
      break;
    }
  }
  return Bad("bad_record", fmt::format("jq would change the number {}", OneLine(named, 100)),
             "jq would change a number");
}

HandlerResult JqHandler::Run(std::string_view value, const HandlerRequest& request, double now,
                             const std::stop_token& stop) {
  Jv input(jv_parse_sized(value.data(), static_cast<int>(value.size())));
  if (input.Kind() == JV_KIND_INVALID) {
    const Jv message(jv_invalid_get_msg(input.Release()));
    return Bad("bad_record", "jq cannot read the value: " + ErrorText(message),
               "jq cannot read the value");
  }
  if (!variables_.empty()) {
    jv all = jv_array();
    for (const std::string_view name : variables_) {
      all = jv_array_append(all, name == kNow ? jv_number(now) : Variable(name, request));
    }
    input = Jv(jv_array_append(all, input.Release()));
  }
  jq_start(jq_->state, input.Release(), 0);
  return Results(stop);
}

// jq has nothing more to give: it is done, or failed (`error`), or halted.
HandlerResult JqHandler::AtTheEnd(HandlerValues values, std::string error) {
  if (jq_halted(jq_->state) != 0) {  // `halt` ends the results, halt_error fails
    const bool failed = Jv(jq_get_exit_code(jq_->state)).Kind() != JV_KIND_INVALID;
    if (failed) error = ErrorText(Jv(jq_get_error_message(jq_->state)));
    if (failed && error.empty()) error = "halt_error";
    // libjq 1.6 frees what a halt left behind with every later start.
    jq_ = std::make_unique<Jq>();
    const std::string words = jq_->Compile(program_, {});
    FENCEPOST_CHECK(words.empty(), words);
  }
  if (!error.empty()) return Bad("jq", error, "the program failed on the value");
  return values;
}

HandlerResult JqHandler::Results(const std::stop_token& stop) {
  HandlerValues values;
  std::size_t bytes = 0;
  while (!stop.stop_requested()) {
    Jv result(jq_next(jq_->state));
    if (result.Kind() == JV_KIND_INVALID) {
      const Jv message(jv_invalid_get_msg(result.Release()));
      const bool none = message.Kind() == JV_KIND_NULL;
      return AtTheEnd(std::move(values), none ? "" : ErrorText(message));
    }
    const bool null = result.Kind() == JV_KIND_NULL;
    const auto& value = null ? values.emplace_back() : values.emplace_back(Dumped(result));
    bytes += sizeof value + (value ? value->size() : 0);
    if (bytes > kMaxAnswerBytes) return TooLarge("the sum of the results");
  }
  return Cancelled();
}

}  // namespace fencepost::consumer
