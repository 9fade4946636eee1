// A pipeline whose HTTP handler asks a service in the test itself, which fails, hangs and recovers
// as the test says.
#pragma once

#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "tests/support/pipeline_test.h"
#include "tests/support/stub_server.h"

namespace fencepost::testing {

class TroubleTest : public PipelineTest {
 protected:
  using Answer = StubServer::Answer;

  // The calls for this order are answered so, one after the other, the last answer for ever. Every
  // other call gets what it sent.
  void Answers(const std::string& id, std::vector<int> statuses,
               std::vector<std::string> headers = {}) {
    const std::lock_guard guard(mutex_);
    plan_[id] = {std::move(statuses), std::move(headers)};
  }
  // Every call is answered with this status until it is 200 again.
  void AnswersAll(int status) {
    const std::lock_guard guard(mutex_);
    of_all_ = status;
  }
  // This call, counted from 0 over all orders or over those of one, is not answered until
  // service_.Release().
  void HangOn(int call, const std::string& id = "") {
    const std::lock_guard guard(mutex_);
    hang_ = {id, call};
  }
  [[nodiscard]] std::map<std::string, int> Calls() const {
    const std::lock_guard guard(mutex_);
    return calls_;
  }
  [[nodiscard]] int CallsOf(const std::string& id) const {
    const auto calls = Calls();
    const auto found = calls.find(id);
    return found == calls.end() ? 0 : found->second;
  }
  [[nodiscard]] int AllCalls() const {
    int sum = 0;
    for (const auto& [id, count] : Calls()) sum += count;
    return sum;
  }
  // `handler:` with the service.
  [[nodiscard]] std::string Http() const {
    return fmt::format("handler:\n  http: {{url: \"{}\", idempotent: true}}\n",
                       service_.Url("/charge"));
  }
  void SendOrder(int partition, const std::string& id, const std::string& key,
                 const std::string& amount = "5") const {
    TestProducer producer(Kafka().bootstrap());
    producer.Send(name_, partition, key,
                  fmt::format(R"({{"order_id":"{}","amount":{}}})", id, amount));
    producer.Flush();
  }
  [[nodiscard]] std::string DeadTopic() const { return name_ + ".dead"; }
  // `dead_letter:` with a topic that exists.
  std::string DeadLetters(const std::string& more = "") const {
    Kafka().CreateTopic(DeadTopic(), 1);
    return fmt::format("dead_letter: {{topic: {}{}}}\n", DeadTopic(), more);
  }
  [[nodiscard]] std::vector<TestRecord> Letters() const {
    return ReadTopic(Kafka().bootstrap(), DeadTopic());
  }
  ::testing::AssertionResult Shows(WorkerProcess& worker, std::string_view metric,
                                   const MetricsPage::Labels& labels, double value) const {
    return WaitUntil(std::chrono::seconds(20), fmt::format("{} to be {}", metric, value),
                     [&] { return worker.Now(metric, labels) == value; });
  }

 private:
  struct Plan {
    std::vector<int> statuses;
    std::vector<std::string> headers;
  };

  Answer Serve(const StubServer::Request& request) {
    const std::string id = request.headers.at("idempotency-key");
    Answer answer{.body = request.body};
    bool hangs = false;
    {
      const std::lock_guard guard(mutex_);
      const int call = calls_[id]++;
      const int of_all = all_calls_++;
      hangs =
          hang_.first.empty() ? of_all == hang_.second : id == hang_.first && call == hang_.second;
      if (const auto plan = plan_.find(id); plan != plan_.end()) {
        const auto& statuses = plan->second.statuses;
        answer.status = statuses[std::min(static_cast<std::size_t>(call), statuses.size() - 1)];
        if (answer.status != 200) answer.headers = plan->second.headers;
      }
      if (of_all_ != 200) answer.status = of_all_;
    }
    if (hangs) service_.Hold();
    return answer;
  }

  mutable std::mutex mutex_;
  std::map<std::string, Plan> plan_;
  int of_all_ = 200;
  std::pair<std::string, int> hang_{"", -1};
  std::map<std::string, int> calls_;
  int all_calls_ = 0;

 protected:
  // Last: its threads use what stands above.
  StubServer service_{[this](const StubServer::Request& request) { return Serve(request); }};
};

}  // namespace fencepost::testing
