#include "tests/e2e/life/calls.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <chrono>
#include <sstream>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace fencepost::testing {
namespace {

using nlohmann::json;

std::int64_t NowNs() {
  return std::chrono::nanoseconds(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// One write a call: lines of several processes do not mix.
constexpr std::string_view kScript = R"(
import fcntl, json, os, sys, time

folder = os.path.dirname(os.path.abspath(__file__))
name = os.path.join(folder, os.environ["FENCEPOST_PIPELINE"] + ".calls")
log = os.open(name, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
hold = open(os.path.join(folder, "hold"))
for line in sys.stdin:
    begin = time.monotonic_ns()
    record = json.loads(line)
    fcntl.flock(hold, fcntl.LOCK_SH)  # waits while the test has it for itself
    fcntl.flock(hold, fcntl.LOCK_UN)
    order = int(record["value"]["order_id"][2:])
    refused = record["attempt"] <= (2 if order % 49 == 0 else 1 if order % 7 == 0 else 0)
    if refused:
        reply = {"error": "not now", "class": "busy"}
    else:
        value = record["value"]
        reply = {"value": {"order_id": value["order_id"], "amount": value["amount"] * 3}}
    call = {"id": record["record_id"], "token": record["token"], "source": record["source"],
            "life": os.environ["LIFE"], "begin": begin, "end": time.monotonic_ns(),
            "refused": refused}
    os.write(log, (json.dumps(call) + "\n").encode())
    print(json.dumps(reply), flush=True)
)";

std::string PercentDecoded(const std::string& text) {
  std::string decoded;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '%' && i + 2 < text.size()) {
      decoded += static_cast<char>(std::stoi(text.substr(i + 1, 2), nullptr, 16));
      i += 2;
    } else {
      decoded += text[i];
    }
  }
  return decoded;
}

}  // namespace

int Refusals(int order) { return order % 49 == 0 ? 2 : order % 7 == 0 ? 1 : 0; }

HttpService::HttpService()
    : server_([this](const StubServer::Request& request) { return Answer(request); }) {}

StubServer::Answer HttpService::Answer(const StubServer::Request& request) {
  Call call{.begin_ns = NowNs()};
  if (held_) server_.Hold();
  const std::size_t slash = request.line.find('/');
  call.pipeline = request.line.substr(slash + 1, request.line.find(' ', slash) - slash - 1);
  const json value = json::parse(request.body);
  const std::lock_guard guard(mutex_);
  for (const char* name : {"idempotency-key", "fencing-token", "x-fencepost-source", "x-life"}) {
    if (request.headers.contains(name)) continue;
    missing_ = fmt::format("{} of {}: {}", name, call.pipeline, request.body);
    return {.status = 400};
  }
  call.record_id = PercentDecoded(request.headers.at("idempotency-key"));
  call.token = std::stoll(request.headers.at("fencing-token"));
  call.source = request.headers.at("x-fencepost-source");
  call.life = std::stoi(request.headers.at("x-life"));
  const int order = std::stoi(value.at("order_id").get<std::string>().substr(2));
  call.refused = tries_[call.pipeline + " " + call.record_id]++ < Refusals(order);
  const json body = {{"order_id", value.at("order_id")},
                     {"amount", value.at("amount").get<int>() * 2}};
  call.end_ns = NowNs();
  calls_.push_back(call);
  if (call.refused) return {.status = 503, .body = "not now"};
  return {.body = body.dump()};
}

std::vector<Call> HttpService::Calls(const std::string& pipeline) const {
  const std::lock_guard guard(mutex_);
  std::vector<Call> calls;
  for (const Call& call : calls_) {
    if (call.pipeline == pipeline) calls.push_back(call);
  }
  return calls;
}

std::string HttpService::Missing() const {
  const std::lock_guard guard(mutex_);
  return missing_;
}

ExecScript::ExecScript(const TempDir& folder)
    : folder_(folder),
      path_(folder.Write("handle.py", kScript)),
      hold_(open(folder.Write("hold", "").c_str(), O_RDONLY | O_CLOEXEC)) {}
ExecScript::~ExecScript() { close(hold_); }

void ExecScript::Hold() const { flock(hold_, LOCK_EX); }
void ExecScript::Release() const { flock(hold_, LOCK_UN); }

std::vector<Call> ExecScript::Calls(const std::string& pipeline) const {
  std::vector<Call> calls;
  std::istringstream text(ReadFile(folder_.File(pipeline + ".calls")));
  for (std::string line; std::getline(text, line);) {
    const json call = json::parse(line);
    calls.push_back({.pipeline = pipeline,
                     .record_id = call.at("id"),
                     .token = call.at("token"),
                     .source = call.at("source"),
                     .life = std::stoi(call.at("life").get<std::string>()),
                     .begin_ns = call.at("begin"),
                     .end_ns = call.at("end"),
                     .refused = call.at("refused")});
  }
  return calls;
}

}  // namespace fencepost::testing
