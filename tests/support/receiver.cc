#include "tests/support/receiver.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <atomic>
#include <condition_variable>
#include <map>
#include <mutex>
#include <sstream>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "tests/support/stub_server.h"

namespace fencepost::testing {
namespace {

using nlohmann::json;

constexpr std::chrono::milliseconds kSlowly{2500};  // beyond processing.timeout of a trial

std::int64_t NowNs() {
  return std::chrono::nanoseconds(std::chrono::steady_clock::now().time_since_epoch()).count();
}

int MoodyRefusals(int order) { return order % 49 == 0 ? 2 : order % 7 == 0 ? 1 : 0; }

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

std::vector<Call> Of(const std::string& pipeline, std::vector<Call> calls) {
  if (!pipeline.empty()) {
    std::erase_if(calls, [&](const Call& call) { return call.pipeline != pipeline; });
  }
  return calls;
}

// What an element of a batch lacks of the headers of a call, it has in its value.
constexpr const char* kBatches = R"yaml(, batch: {max_records: 8, linger: 5ms},
    body: {jq: '{order: ., source: "\($topic)/\($partition)/\($offset)"}'})yaml";

class HttpReceiver : public Receiver {
 public:
  explicit HttpReceiver(bool batches)
      : batches_(batches),
        server_([this](const StubServer::Request& request) { return Answer(request); }),
        proxy_(PortOf(server_.Url())) {}
  ~HttpReceiver() override { HttpReceiver::Behave(Manner::kGood); }

  [[nodiscard]] std::string HandlerYaml(const std::string& pipeline) const override {
    return fmt::format(
        "handler:\n  http: {{url: \"http://{}/{}\", idempotent: true,"
        " headers: {{X-Life: \"${{LIFE}}\"}}{}}}\n",
        proxy_.address(), pipeline, batches_ ? kBatches : "");
  }
  void Behave(Manner manner) override {
    const std::lock_guard guard(mutex_);
    manner_ = manner;
    changed_.notify_all();
  }
  [[nodiscard]] std::vector<Call> Calls(const std::string& pipeline) const override {
    const std::lock_guard guard(mutex_);
    return Of(pipeline, calls_);
  }
  [[nodiscard]] int factor() const override { return 2; }
  [[nodiscard]] std::string Missing() const override {
    const std::lock_guard guard(mutex_);
    return missing_;
  }
  [[nodiscard]] TcpProxy* proxy() override { return &proxy_; }
  void Hold() override { held_ = true; }
  void Release() override { server_.Release(); }

 private:
  static int PortOf(const std::string& url) {
    return std::stoi(url.substr(url.rfind(':') + 1));  // the path behind it ends the number
  }
  StubServer::Answer Answer(const StubServer::Request& request);
  StubServer::Answer AnswerBatch(const StubServer::Request& request, Call call);
  // The status for a call that is complete, which is logged. Under the lock.
  int Judge(Call call);
  // What comes of a request that was accepted.
  StubServer::Answer Slowly(std::unique_lock<std::mutex> lock, Manner manner, const json& answer);
  static StubServer::Answer BadAnswer(Manner manner);

  const bool batches_;
  std::atomic<bool> held_{false};
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  Manner manner_ = Manner::kGood;
  std::vector<Call> calls_;
  std::map<std::string, int> tries_;  // by pipeline and record id
  std::map<std::string, std::int64_t> highest_;
  std::string missing_;
  StubServer server_;  // calls Answer
  TcpProxy proxy_;
};

StubServer::Answer HttpReceiver::BadAnswer(Manner manner) {
  switch (manner) {
    case Manner::kCut:
      return {.raw = "HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\n{\"order_id\":"};
    case Manner::kHuge:
      return {.body = std::string(17U << 20, ' ')};
    default:  // kEndless
      return {.raw = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
              .over_and_over = "1\r\n \r\n"};
  }
}

StubServer::Answer HttpReceiver::Answer(const StubServer::Request& request) {
  Call call{.begin_ns = NowNs()};
  if (held_) server_.Hold();
  const std::size_t slash = request.line.find('/');
  call.pipeline = request.line.substr(slash + 1, request.line.find(' ', slash) - slash - 1);
  if (batches_) return AnswerBatch(request, std::move(call));
  const json value = json::parse(request.body, nullptr, /*allow_exceptions=*/false);

  std::unique_lock lock(mutex_);
  for (const char* name : {"idempotency-key", "fencing-token", "x-fencepost-source", "x-life"}) {
    if (value.is_object() && request.headers.contains(name)) continue;
    missing_ = fmt::format("{} of {}: {}", name, call.pipeline, request.body);
    return {.status = 400};
  }
  call.record = {std::stoi(value.at("order_id").get<std::string>().substr(2)),
                 PlaceIn(request.headers.at("x-fencepost-source"))};
  call.record_id = PercentDecoded(request.headers.at("idempotency-key"));
  call.token = std::stoll(request.headers.at("fencing-token"));
  call.life = std::stoi(request.headers.at("x-life"));
  const Manner manner = manner_;
  const int status = Judge(call);
  if (status == 409) return {.status = status, .body = "an older token"};
  if (status != 200) return {.status = status, .body = "not now"};
  const json answer = {{"order_id", value.at("order_id")},
                       {"amount", AmountOf(call.record.order, factor())}};
  return Slowly(std::move(lock), manner, answer);
}

int HttpReceiver::Judge(Call call) {
  const std::string id = call.pipeline + " " + call.record_id;
  std::int64_t& highest = highest_[id];
  const bool refused =
      manner_ == Manner::kError ||
      (manner_ == Manner::kMoody && tries_[id]++ < MoodyRefusals(call.record.order));
  call.accepted = !refused && call.token >= highest;
  call.unusable = call.accepted && manner_ == Manner::kHuge;
  if (call.accepted) highest = call.token;
  call.end_ns = NowNs();
  calls_.push_back(call);
  if (refused) return manner_ == Manner::kError ? 500 : 503;
  return call.accepted ? 200 : 409;
}

StubServer::Answer HttpReceiver::Slowly(std::unique_lock<std::mutex> lock, Manner manner,
                                        const json& answer) {
  if (manner == Manner::kSlow) {
    changed_.wait_for(lock, kSlowly, [&] { return manner_ != Manner::kSlow; });
  }
  lock.unlock();
  if (manner == Manner::kCut || manner == Manner::kHuge || manner == Manner::kEndless) {
    return BadAnswer(manner);
  }
  return {.body = answer.dump()};
}

StubServer::Answer HttpReceiver::AnswerBatch(const StubServer::Request& request, Call call) {
  const json elements = json::parse(request.body);
  std::unique_lock lock(mutex_);
  const Manner manner = manner_;
  call.life = std::stoi(request.headers.at("x-life"));
  json answers = json::array();
  for (const json& element : elements) {
    const json& order = element.at("value").at("order");
    call.record = {std::stoi(order.at("order_id").get<std::string>().substr(2)),
                   PlaceIn(element.at("value").at("source"))};
    call.record_id = element.at("id");
    call.token = element.at("token");
    const int status = Judge(call);
    json answer = {{"id", element.at("id")}};
    if (status == 200) {
      answer["value"] = {{"order_id", order.at("order_id")},
                         {"amount", AmountOf(call.record.order, factor())}};
    } else {
      answer["error"] = {{"class", std::to_string(status)}, {"retry", status != 409}};
    }
    answers.push_back(std::move(answer));
  }
  if (manner == Manner::kError) return {.status = 500, .body = "not now"};
  if (manner == Manner::kTwice) answers.back() = answers.front();
  if (manner == Manner::kHalf) {
    answers.erase(answers.begin() + static_cast<std::ptrdiff_t>((answers.size() + 1) / 2),
                  answers.end());
  }
  return Slowly(std::move(lock), manner, answers);
}

// The log, the highest tokens and the manner are files beside the script: several processes of
// several workers share them. One write a line: one when the call has come, one when it is
// answered.
constexpr std::string_view kScript = R"(
import fcntl, json, os, sys, time

folder = os.path.dirname(os.path.abspath(__file__))
pipeline = os.environ["FENCEPOST_PIPELINE"]
log = os.open(os.path.join(folder, "calls"), os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
hold = open(os.path.join(folder, "hold"))
number = 0

def note(entry):
    os.write(log, (json.dumps(entry | {"call": "%d %d" % (os.getpid(), number)}) + "\n").encode())

def handle(record, manner, begin):
    order = int(record["value"]["order_id"][2:])
    refusals = 2 if order % 49 == 0 else 1 if order % 7 == 0 else 0
    refused = manner == "error" or manner == "moody" and record["attempt"] <= refusals
    name = "token-%s-%s" % (pipeline, record["record_id"].replace("/", "_"))
    with open(os.path.join(folder, name), "a+") as highest:
        fcntl.flock(highest, fcntl.LOCK_EX)
        highest.seek(0)
        accepted = not refused and record["token"] >= int(highest.read() or 0)
        if accepted:
            highest.truncate(0)
            highest.write(str(record["token"]))
            highest.flush()
        note({"order": order, "id": record["record_id"], "source": record["source"],
              "token": record["token"], "accepted": accepted, "life": int(os.environ["LIFE"]),
              "pipeline": pipeline, "begin": begin})
    fcntl.flock(hold, fcntl.LOCK_SH)  # waits while the test has it for itself
    fcntl.flock(hold, fcntl.LOCK_UN)
    value = record["value"]
    if refused:
        reply = {"error": "not now", "class": "busy"}
    elif not accepted:
        reply = {"error": "an older token", "class": "stale", "retry": False}
    elif manner == "cut":
        os.write(1, b'{"value": ')
        sys.exit(7)
    else:
        reply = {"value": {"order_id": value["order_id"], "amount": order * 7 % 1000 * 3}}
    reply["record_id"] = record["record_id"]
    if manner != "garbage":
        note({"end": time.monotonic_ns()})
    return reply

for line in sys.stdin:
    begin = time.monotonic_ns()
    request = json.loads(line)
    with open(os.path.join(folder, "manner")) as file:
        manner = file.read()
    records = request.get("batch", [request])
    replies = []
    for place, record in enumerate(records):
        number += 1
        amid = manner == "cut" and place < len(records) // 2
        replies.append(handle(record, "good" if amid else manner, begin))
    if manner == "garbage" and any("value" in reply for reply in replies):
        os.write(1, b"no answer\n")
    else:
        print(json.dumps({"batch": replies} if "batch" in request else replies[0]), flush=True)
)";

class ExecReceiver : public Receiver {
 public:
  ExecReceiver(const TempDir& folder, bool batches)
      : folder_(folder),
        batches_(batches),
        path_(folder.Write("handle.py", kScript)),
        hold_(open(folder.Write("hold", "").c_str(), O_RDONLY | O_CLOEXEC)) {
    ExecReceiver::Behave(Manner::kGood);
  }
  ~ExecReceiver() override { close(hold_); }
  ExecReceiver(const ExecReceiver&) = delete;
  ExecReceiver& operator=(const ExecReceiver&) = delete;

  [[nodiscard]] std::string HandlerYaml(const std::string&) const override {
    return fmt::format(
        "handler:\n  exec: {{command: [python3, {}], processes: 2, idempotent: true{}}}\n", path_,
        batches_ ? ", batch: {max_records: 8, linger: 5ms}" : "");
  }
  void Behave(Manner manner) override {
    const char* word = manner == Manner::kError     ? "error"
                       : manner == Manner::kMoody   ? "moody"
                       : manner == Manner::kCut     ? "cut"
                       : manner == Manner::kGarbage ? "garbage"
                                                    : "good";
    const std::string next = folder_.Write("manner.next", word);
    std::filesystem::rename(next, folder_.File("manner"));
  }
  [[nodiscard]] std::vector<Call> Calls(const std::string& pipeline) const override {
    std::vector<Call> calls;
    std::map<std::string, std::size_t> open;  // where the call is
    std::istringstream text(ReadFile(folder_.File("calls")));
    for (std::string line; std::getline(text, line);) {
      const json entry = json::parse(line);
      const std::string number = entry.at("call");
      if (entry.contains("end")) {
        calls.at(open.at(number)).end_ns = entry.at("end");
        continue;
      }
      open[number] = calls.size();
      calls.push_back({.record = {entry.at("order"), PlaceIn(entry.at("source"))},
                       .token = entry.at("token"),
                       .accepted = entry.at("accepted"),
                       .life = entry.at("life"),
                       .record_id = entry.at("id"),
                       .pipeline = entry.at("pipeline"),
                       .begin_ns = entry.at("begin"),
                       .end_ns = entry.at("begin")});
    }
    return Of(pipeline, std::move(calls));
  }
  [[nodiscard]] int factor() const override { return 3; }
  void Hold() override { flock(hold_, LOCK_EX); }
  void Release() override { flock(hold_, LOCK_UN); }

 private:
  const TempDir& folder_;
  const bool batches_;
  std::string path_;
  int hold_;
};

}  // namespace

Place PlaceIn(const std::string& source) {
  const std::size_t last = source.rfind('/');
  const std::size_t first = source.rfind('/', last - 1);
  return {std::stoi(source.substr(first + 1, last - first - 1)),
          std::stoll(source.substr(last + 1))};
}

std::unique_ptr<Receiver> MakeHttpReceiver(bool batches) {
  return std::make_unique<HttpReceiver>(batches);
}
std::unique_ptr<Receiver> MakeExecReceiver(const TempDir& folder, bool batches) {
  return std::make_unique<ExecReceiver>(folder, batches);
}

}  // namespace fencepost::testing
