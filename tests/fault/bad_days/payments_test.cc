// What `fencepost create payments` prints, to the letter but for addresses, through bad days of its
// payment service: it is away for a minute, while a worker is killed and another one frozen.
#include <algorithm>
#include <atomic>
#include <map>
#include <mutex>
#include <optional>

#include <nlohmann/json.hpp>

#include "tests/support/pipeline_test.h"
#include "tests/support/stub_server.h"

namespace fencepost::testing {
namespace {

using nlohmann::json;
using std::chrono::seconds;
using Clock = std::chrono::steady_clock;

constexpr seconds kOutage{60};
constexpr int kPartitions = 4;

// Charges an id once. Knows what an access token is, answers in an order of its own, and remembers
// whether a token ever fell.
class PaymentService {
 public:
  [[nodiscard]] std::string Url() const { return server_.Url(""); }
  void GoAway() {
    const std::lock_guard guard(mutex_);
    away_since_ = Clock::now();
  }
  void ComeBack() {
    const std::lock_guard guard(mutex_);
    away_since_.reset();
  }
  [[nodiscard]] bool HasBeenAwayFor(seconds time) const {
    const std::lock_guard guard(mutex_);
    return away_since_ && Clock::now() - *away_since_ >= time;
  }

  [[nodiscard]] std::map<std::string, std::string> charges() const {  // the merchant, by id
    const std::lock_guard guard(mutex_);
    return charges_;
  }
  // A charge came with a token below one of before; a request with other than what a call must
  // have.
  [[nodiscard]] std::string wrong() const {
    const std::lock_guard guard(mutex_);
    return wrong_;
  }
  [[nodiscard]] int tokens_given() const { return tokens_given_; }
  [[nodiscard]] std::size_t largest_batch() const { return largest_batch_; }

 private:
  StubServer::Answer Answer(const StubServer::Request& request) {
    const std::lock_guard guard(mutex_);
    if (away_since_) return {.status = 0};
    if (request.line == "POST /oauth/token HTTP/1.1") return GiveToken(request);
    const auto authorization = request.headers.find("authorization");
    if (authorization == request.headers.end() ||
        authorization->second != fmt::format("Bearer t-{}", tokens_given_.load())) {
      return {.status = 401};
    }
    const std::string before = "POST /merchants/";
    const std::size_t end = request.line.find("/charges HTTP/1.1");
    const json payments = json::parse(request.body, nullptr, /*allow_exceptions=*/false);
    if (!request.line.starts_with(before) || end == std::string::npos || !payments.is_array()) {
      return Wrong(request.line + " " + request.body);
    }
    const std::string merchant = request.line.substr(before.size(), end - before.size());
    largest_batch_ = std::max(largest_batch_.load(), payments.size());
    json verdicts = json::array();
    for (const json& payment : payments)
      verdicts.insert(verdicts.begin(), Charge(merchant, payment));
    return {.body = verdicts.dump()};
  }
  // The one before is good no more.
  StubServer::Answer GiveToken(const StubServer::Request& request) {
    // payments:s3cret
    if (request.headers.at("authorization") != "Basic cGF5bWVudHM6czNjcmV0") return {.status = 401};
    if (request.body != "grant_type=client_credentials") return Wrong(request.body);
    const json token = {{"access_token", fmt::format("t-{}", ++tokens_given_)},
                        {"token_type", "Bearer"},
                        {"expires_in", 20}};
    return {.body = token.dump()};
  }
  json Charge(const std::string& merchant, const json& payment) {
    const auto id = payment.at("id").get<std::string>();
    const auto token = payment.at("token").get<std::int64_t>();
    std::int64_t& highest = highest_[id];
    if (token < highest) wrong_ = fmt::format("{}: token {} behind {}", id, token, highest);
    highest = std::max(highest, token);
    const json& value = payment.at("value");
    if (value.size() != 2) wrong_ = payment.dump();
    if (value.at("card") == "expired") {
      return {{"id", id},
              {"error", {{"retry", false}, {"message", "card declined"}, {"class", "declined"}}}};
    }
    charges_.emplace(id, merchant);
    return {{"id", id}, {"value", {{"charge_id", "ch-" + id}}}};
  }
  StubServer::Answer Wrong(const std::string& what) {
    wrong_ = what;
    return {.status = 400};
  }

  mutable std::mutex mutex_;
  std::optional<Clock::time_point> away_since_;
  std::map<std::string, std::string> charges_;
  std::map<std::string, std::int64_t> highest_;
  std::string wrong_;
  std::atomic<int> tokens_given_ = 0;
  std::atomic<std::size_t> largest_batch_ = 0;
  StubServer server_{[this](const StubServer::Request& request) { return Answer(request); }};
};

class Payments : public PipelineTest {
 protected:
  Payments() {
    table_->Exec(
        "CREATE TABLE charges (payment_id text, merchant text, cents int, charge_id text, "
        "receipt text)");
    Kafka().CreateTopic("payments", kPartitions);
    Kafka().CreateTopic("payments.dead", 1);
    InitLocks(nodes_);
    team_.emplace(WorkerOptions{
        .files = {folder_.Write("payments.yaml", Printed())},
        .env = {
            {"PSP_URL", service_.Url()}, {"PSP_SECRET", "s3cret"}, {"SHOP_DSN", table_->dsn()}}});
  }

  // Some are sent twice; each 50th has a card that is refused.
  void Produce(int payments) {
    TestProducer producer(Kafka().bootstrap());
    for (int i = 0; i < payments; ++i) {
      const int number = sent_++;
      const json value = {{"payment_id", Id(number)},
                          {"merchant", Merchant(number)},
                          {"cents", number},
                          {"card", IsRefused(number) ? "expired" : "visa"}};
      for (int times = number % 20 == 0 ? 2 : 1; times > 0; --times) {
        producer.Send("payments", number % kPartitions, fmt::format("c-{}", number % 199),
                      value.dump());
      }
    }
    producer.Flush();
  }
  [[nodiscard]] std::string Charged(const std::string& what) const {
    return table_->Value("SELECT " + what + " FROM charges");
  }
  [[nodiscard]] int charged_of_sent() const { return sent_ - Refused(); }
  [[nodiscard]] int Refused() const { return (sent_ + 49) / 50; }
  void AwaitRows(int rows, Deadline limit) {
    EXPECT_TRUE(WaitUntil(limit, "rows", [&] { return Rows() >= rows; }))
        << Rows() << " of " << rows << "\n"
        << team_->Tails();
  }
  [[nodiscard]] int Rows() const { return std::stoi(Charged("count(*)")); }

  static std::string Id(int number) { return fmt::format("p-{}", number); }
  static std::string Merchant(int number) { return fmt::format("m-{}", number % 7); }
  static bool IsRefused(int number) { return number % 50 == 0; }

  [[nodiscard]] std::string Printed() const {
    EXPECT_EQ(RunFencepost({"create", "payments", folder_.File("created")}).exit_code, 0);
    std::string text = ReadFile(folder_.File("created/payments.yaml"));
    const auto replace = [&](const std::string& what, const std::string& with) {
      const std::size_t at = text.find(what);
      ASSERT_NE(at, std::string::npos) << what;
      text.replace(at, what.size(), with);
    };
    replace("127.0.0.1:9092", Kafka().bootstrap());
    replace("127.0.0.1:7001, 127.0.0.1:7002, 127.0.0.1:7003", nodes_.list());
    return text;
  }

  RedisServers nodes_{3};
  PaymentService service_;
  int sent_ = 0;
  std::optional<WorkerTeam> team_;
};

TEST_F(Payments, AreChargedOnceThroughAMinuteWithoutTheServiceAKillAndAFreeze) {
  Produce(1000);
  team_->Start(3);
  AwaitRows(500, seconds(90));
  service_.GoAway();
  Produce(1000);
  (*team_)[0].Kill();
  (*team_)[1].Pause();
  team_->Add();
  RequireWithin(2 * kOutage, "a minute to pass", [&] { return service_.HasBeenAwayFor(kOutage); });
  service_.ComeBack();
  (*team_)[1].Resume();
  Produce(1000);
  AwaitRows(charged_of_sent(), seconds(120));
  EXPECT_TRUE(WaitUntil(seconds(60), "all to be committed", [&] {
    return CommittedToTheEnd(Kafka(), "payments", "payments");
  })) << team_->Tails();
  EXPECT_EQ(team_->StopAll(), "");

  EXPECT_EQ(service_.wrong(), "");
  EXPECT_EQ(Rows(), charged_of_sent());
  EXPECT_EQ(Charged("count(DISTINCT payment_id)"), std::to_string(charged_of_sent()));
  EXPECT_EQ(Charged("count(*) FILTER (WHERE charge_id = 'ch-' || payment_id AND payment_id = 'p-' "
                    "|| cents AND merchant = 'm-' || cents % 7)"),
            std::to_string(charged_of_sent()));
  EXPECT_EQ(service_.charges().size(), static_cast<std::size_t>(charged_of_sent()));
  const auto letters = ReadTopic(Kafka().bootstrap(), "payments.dead");
  std::set<std::string> refused;
  for (const TestRecord& letter : letters) {
    refused.insert(json::parse(*letter.value).at("payment_id").get<std::string>());
  }
  EXPECT_EQ(refused.size(), static_cast<std::size_t>(Refused()));
  EXPECT_GT(service_.tokens_given(), 1);
  EXPECT_GT(service_.largest_batch(), 1U);
  team_->Look();
  EXPECT_EQ(team_->Sum("fencepost_invariant_violations_total"), 0);
}

}  // namespace
}  // namespace fencepost::testing
