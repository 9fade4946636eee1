#include "tests/fault/matrix/receiver.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <sstream>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace fencepost::matrix {
namespace {

using nlohmann::json;
using testing::StubServer;

constexpr std::chrono::milliseconds kSlowly{2500};  // beyond processing.timeout of a trial

class HttpReceiver : public Receiver {
 public:
  HttpReceiver()
      : server_([this](const StubServer::Request& request) { return Answer(request); }),
        proxy_(PortOf(server_.Url())) {}
  ~HttpReceiver() override { HttpReceiver::Behave(Manner::kGood); }

  [[nodiscard]] std::string HandlerYaml() const override {
    return fmt::format(
        "handler:\n  http: {{url: \"http://{}/\", idempotent: true,"
        " headers: {{X-Life: \"${{LIFE}}\"}}}}\n",
        proxy_.address());
  }
  void Behave(Manner manner) override {
    const std::lock_guard guard(mutex_);
    manner_ = manner;
    changed_.notify_all();
  }
  [[nodiscard]] std::vector<Call> Calls() const override {
    const std::lock_guard guard(mutex_);
    return calls_;
  }
  [[nodiscard]] testing::TcpProxy* proxy() override { return &proxy_; }

 private:
  static int PortOf(const std::string& url) {
    return std::stoi(url.substr(url.rfind(':') + 1));  // the path behind it ends the number
  }
  StubServer::Answer Answer(const StubServer::Request& request);

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  Manner manner_ = Manner::kGood;
  std::vector<Call> calls_;
  std::map<int, std::int64_t> highest_;
  StubServer server_;  // calls Answer
  testing::TcpProxy proxy_;
};

StubServer::Answer HttpReceiver::Answer(const StubServer::Request& request) {
  const auto header = [&](const char* name) {
    const auto at = request.headers.find(name);
    return at == request.headers.end() ? std::string() : at->second;
  };
  const json value = json::parse(request.body, nullptr, /*allow_exceptions=*/false);
  if (!value.is_object() || header("fencing-token").empty()) return {.status = 400};
  Call call;
  call.order = std::stoi(value.at("order_id").get<std::string>().substr(2));
  call.token = std::stoll(header("fencing-token"));
  call.life = std::stoi(header("x-life"));

  std::unique_lock lock(mutex_);
  std::int64_t& highest = highest_[call.order];
  const Manner manner = manner_;
  call.accepted = manner != Manner::kError && call.token >= highest;
  call.unusable = call.accepted && manner == Manner::kHuge;
  if (call.accepted) highest = call.token;
  calls_.push_back(call);
  if (manner == Manner::kError) return {.status = 500, .body = "not now"};
  if (!call.accepted) return {.status = 409, .body = "an older token"};
  const json answer = {{"order_id", value.at("order_id")}, {"amount", AmountOf(call.order)}};
  switch (manner) {
    case Manner::kSlow:
      changed_.wait_for(lock, kSlowly, [&] { return manner_ != Manner::kSlow; });
      break;
    case Manner::kCut:
      return {.raw = "HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\n{\"order_id\":"};
    case Manner::kHuge:
      lock.unlock();
      return {.body = std::string(17U << 20, ' ')};
    case Manner::kEndless:
      return {.raw = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
              .over_and_over = "1\r\n \r\n"};
    default:
      break;
  }
  return {.body = answer.dump()};
}

// The log, the highest tokens and the manner are files beside the script: several processes of
// several workers share them. One write a line.
constexpr std::string_view kScript = R"(
import fcntl, json, os, sys

folder = os.path.dirname(os.path.abspath(__file__))
log = os.open(os.path.join(folder, "calls"), os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
hold = open(os.path.join(folder, "hold"))
for line in sys.stdin:
    record = json.loads(line)
    order = int(record["value"]["order_id"][2:])
    with open(os.path.join(folder, "manner")) as file:
        manner = file.read()
    with open(os.path.join(folder, "token-%d" % order), "a+") as highest:
        fcntl.flock(highest, fcntl.LOCK_EX)
        highest.seek(0)
        accepted = manner != "error" and record["token"] >= int(highest.read() or 0)
        if accepted:
            highest.truncate(0)
            highest.write(str(record["token"]))
            highest.flush()
        call = {"order": order, "token": record["token"], "accepted": accepted,
                "life": int(os.environ["LIFE"])}
        os.write(log, (json.dumps(call) + "\n").encode())
    fcntl.flock(hold, fcntl.LOCK_SH)  # waits while the test has it for itself
    fcntl.flock(hold, fcntl.LOCK_UN)
    value = record["value"]
    if manner == "error":
        reply = {"error": "not now", "class": "busy"}
    elif not accepted:
        reply = {"error": "an older token", "class": "stale", "retry": False}
    elif manner == "cut":
        os.write(1, b'{"value": ')
        sys.exit(7)
    elif manner == "garbage":
        os.write(1, b"no answer\n")
        continue
    else:
        reply = {"value": {"order_id": value["order_id"], "amount": order * 7 % 1000 * 2}}
    reply["record_id"] = record["record_id"]
    print(json.dumps(reply), flush=True)
)";

class ExecReceiver : public Receiver {
 public:
  explicit ExecReceiver(const testing::TempDir& folder)
      : folder_(folder),
        path_(folder.Write("handle.py", kScript)),
        hold_(open(folder.Write("hold", "").c_str(), O_RDONLY | O_CLOEXEC)) {
    ExecReceiver::Behave(Manner::kGood);
  }
  ~ExecReceiver() override { close(hold_); }
  ExecReceiver(const ExecReceiver&) = delete;
  ExecReceiver& operator=(const ExecReceiver&) = delete;

  [[nodiscard]] std::string HandlerYaml() const override {
    return fmt::format(
        "handler:\n  exec: {{command: [python3, {}], processes: 2, idempotent: true}}\n", path_);
  }
  void Behave(Manner manner) override {
    const char* word = manner == Manner::kError     ? "error"
                       : manner == Manner::kCut     ? "cut"
                       : manner == Manner::kGarbage ? "garbage"
                                                    : "good";
    const std::string next = folder_.Write("manner.next", word);
    std::filesystem::rename(next, folder_.File("manner"));
  }
  [[nodiscard]] std::vector<Call> Calls() const override {
    std::vector<Call> calls;
    std::istringstream text(testing::ReadFile(folder_.File("calls")));
    for (std::string line; std::getline(text, line);) {
      const json call = json::parse(line);
      calls.push_back({.order = call.at("order"),
                       .token = call.at("token"),
                       .accepted = call.at("accepted"),
                       .life = call.at("life")});
    }
    return calls;
  }
  void Hold() override { flock(hold_, LOCK_EX); }
  void Release() override { flock(hold_, LOCK_UN); }

 private:
  const testing::TempDir& folder_;
  std::string path_;
  int hold_;
};

}  // namespace

std::unique_ptr<Receiver> MakeHttpReceiver() { return std::make_unique<HttpReceiver>(); }
std::unique_ptr<Receiver> MakeExecReceiver(const testing::TempDir& folder) {
  return std::make_unique<ExecReceiver>(folder);
}

}  // namespace fencepost::matrix
