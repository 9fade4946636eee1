// `fencepost dev`: a pipeline without any server, as a user runs it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <regex>
#include <sstream>

#include <fmt/format.h>

#include "tests/support/http.h"
#include "tests/support/kafka_client.h"
#include "tests/support/paths.h"
#include "tests/support/process.h"
#include "tests/support/stub_server.h"
#include "tests/support/worker_process.h"

namespace fencepost::testing {
namespace {

using std::chrono::seconds;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

constexpr seconds kLimit{60};

// Runs `fencepost dev` in a folder of its own, which holds its temporary files, too.
class DevRun {
 public:
  explicit DevRun(std::vector<std::string> words, std::map<std::string, std::string> env = {},
                  const std::string& stdin_text = "") {
    std::filesystem::create_directory(temporary());
    words.insert(words.begin(), {FencepostBinary(), "dev"});
    env["TMPDIR"] = temporary();
    options_ = {.argv = std::move(words),
                .env = std::move(env),
                .directory = folder_.path(),
                .stdin_text = stdin_text,
                .separate_stderr = true};
  }
  std::string Write(const std::string& name, const std::string& text) {
    return folder_.Write(name, text);
  }
  void Start() { process_.emplace(options_); }
  [[nodiscard]] ::testing::AssertionResult Says(const std::string& text) {
    return WaitUntil(kLimit, text, [&] { return Output().find(text) != std::string::npos; })
           << Everything();
  }
  Process& process() { return *process_; }
  [[nodiscard]] std::optional<int> Wait() { return process_->Wait(kLimit); }
  [[nodiscard]] std::string Output() const { return process_->Output(); }
  [[nodiscard]] std::string Errors() const { return process_->ErrorOutput(); }
  [[nodiscard]] std::string Everything() const { return Output() + Errors(); }
  [[nodiscard]] std::string folder() const { return folder_.path(); }
  [[nodiscard]] std::string temporary() const { return folder_.File("tmp"); }

  // Files and processes that are left; empty: none.
  [[nodiscard]] std::string Left() const {
    std::string left;
    for (const auto& entry : std::filesystem::directory_iterator(temporary())) {
      left += entry.path().string() + "; ";
    }
    for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
      // One that ends meanwhile reads as empty.
      const std::string words = ReadFile(entry.path() / "cmdline");
      if (words.find(temporary()) != std::string::npos) left += words + "; ";
    }
    return left;
  }

 private:
  const TempDir folder_;
  ProcessOptions options_;
  std::optional<Process> process_;
};

std::string PartOf(const std::string& text, const char* pattern) {
  std::smatch found;
  return std::regex_search(text, found, std::regex(pattern)) ? found[1] : std::string();
}

struct Expected {
  std::string records;             // lines
  std::vector<std::string> shown;  // lines
  int exit_code = 0;
};
const std::map<std::string, Expected>& ByExample() {
  static const std::map<std::string, Expected> expected = {
      {"orders",
       {R"({"order_id": "o-1", "amount": 5}
{"order_id": "o-1", "amount": 5}
)",
        {R"(orders/0/0 o-1 -> effects {"order_id": "o-1", "amount": 5})",
         "orders/0/1 o-1 -> skipped: it was done before",
         "2 records: 1 took effect, 1 was done before"}}},
      {"orders-full",
       {R"({"key": "c-1", "value": {"order_id": "o-1", "cents": 1250}}
{"key": "c-1", "value": {"cents": 1250}}
)",
        {R"(orders/0/0 o-1 -> priced_orders {"order_id": "o-1", "amount": 12.50, "note": null, )",
         "orders/0/1 -> dead letter in orders.dead: bad_record: ",
         "2 records: 1 took effect, 1 is a dead letter"},
        1}},
      {"payments",
       {R"({"payment_id": "p-1", "merchant": "m-1", "cents": 1250, "card": "visa"})",
        {R"(payments/0/0 p-1 -> charges {"payment_id": "p-1", "merchant": "m-1", "cents": 1250, )"
         R"("charge_id": "ch-1", "receipt": null})"}}},
      {"cdc",
       {R"({"key": {"id": 1}, "value": {"after": {"id": 1, "name": "Ada", "balance": "BAg=", )"
        R"("updated_at": 0}, "source": {"lsn": 10}, "op": "c"}}
{"key": {"id": 1}, "value": {"after": {"name": "old", "updated_at": 0}, "source": {"lsn": 9}}}
{"key": {"id": 1}, "value": {"after": null, "source": {"lsn": 12}, "op": "d"}}
)",
        {R"(shop.public.customers/0/0 -> customers {"id": 1, "name": "Ada", "balance": 10.32, )"
         R"("updated_at": "1970-01-01T00:00:00.000000Z", "lsn": 10})",
         R"(shop.public.customers/0/1 -> customers: a newer row stayed in the place of {"id": 1, )",
         R"(shop.public.customers/0/2 -> customers deletes {"id": 1})",
         "3 records: 2 took effect, 1 lost to a newer row"}}},
      {"cdc-upsert",
       {R"({"key": "c-1", "value": {"name": "Ada"}}
{"key": "c-1", "value": null}
)",
        {R"(shop.public.customers/0/0 -> customers {"id": "c-1", "name": "Ada", "email": null})",
         R"(shop.public.customers/0/1 -> customers deletes {"id": "c-1"})"}}},
      {"orders-lines",
       {R"({"value": {"id": 7, "customer": "c-1", "total": 30.50, "lines": [{"sku": "pen", )"
        R"("price": 10}]}}
{"value": {"id": 8, "customer": "c-2", "total": 1, "lines": [{}]}}
)",
        {R"(shop.orders/0/0 -> shop_orders {"id": 7, "customer": "c-1", "total": 30.50}, )"
         R"(shop_order_lines {"order_id": 7, "line": 0, "sku": "pen", "price": 10})",
         "shop.orders/0/1 -> dead letter in shop.orders.dead: bad_record: effect 2 "
         "(shop_order_lines): element 1: column sku (TEXT) from json:/sku: "},
        1}},
      {"route",
       {R"({"value": {"id": 7, "kind": "order", "total": 30}}
{"value": {"id": 8, "kind": "note", "total": 2000}}
{"value": {"kind": "order"}}
)",
        {R"(shop.events/0/0 -> shop.orders {"key": "7", "value": {"id": 7, "kind": "order", )"
         R"("total": 30}})",
         R"(shop.events/0/1 -> shop.others {"key": "8", "value": {"id": 8, "kind": "note", )"
         R"("total": 2000}}, shop.alerts {"key": "8", "value": {"id":8,"total":2000}})",
         "shop.events/0/2 -> dead letter in shop.events.dead: bad_record: record 1 (topic by "
         "json:/kind): key from json:/id: "},
        1}},
      {"enrich",
       {R"({"order_id": "o", "customer": "c-7", "lines": [{"sku": "nut", "cents": 3, "count": 9}]}
{"order_id": "o-2", "customer": "c-7", "lines": []}
{"key": "o-3", "value": "<order/>"}
)",
        {R"(orders/0/0 -> order-lines {"key": "c-7", "value": {"order":"o",)",
         "orders/0/1 -> no row", "orders/0/2 -> dead letter in orders.dead: "},
        1}},
      {"python",
       {R"({"key": "c-1", "value": {"payment_id": "p-1", "cents": 1250}})",
        {R"(payments/0/0 p-1 -> charges {"payment_id": "p-1", "cents": 1250, "charge_id": "ch-1", )"
         R"("status": "paid"})"}}},
  };
  return expected;
}

// All at a time: each waits for most of its time.
TEST(Dev, RunsEveryPipelineThatCreatePrints) {
  const StubServer service([](const StubServer::Request& request) -> StubServer::Answer {
    if (request.line.starts_with("POST /oauth/token ")) {
      return {.body = R"({"access_token": "t", "token_type": "Bearer", "expires_in": 60})"};
    }
    if (request.line.starts_with("POST /merchants/m-1/charges ")) {
      return {.body = R"([{"charge_id": "ch-1"}])"};
    }
    return {.body = R"({"amount": 12.50, "charge_id": "ch-1", "status": "paid"})"};
  });
  const std::map<std::string, std::string> env = {
      {"PRICING_URL", service.Url()},
      {"PSP_URL", service.Url("")},
      {"PYTHONPATH", SourcePath("consumer/handlers/exec/python")},
      {"PYTHONDONTWRITEBYTECODE", "1"}};
  std::map<std::string, DevRun> runs;
  for (const auto& entry : std::filesystem::directory_iterator(SourcePath("config/examples"))) {
    if (entry.path().extension() != ".yaml") continue;
    const std::string kind = entry.path().stem();
    ASSERT_TRUE(ByExample().contains(kind)) << kind << ": give records of it here";
    DevRun& run =
        runs.try_emplace(kind, std::vector<std::string>{kind + ".yaml", "--produce", "r.jsonl"},
                         env)
            .first->second;
    ASSERT_EQ(RunFencepost({"create", kind, run.folder()}).exit_code, 0);
    run.Write("r.jsonl", ByExample().at(kind).records);
    run.Start();
  }
  for (auto& [kind, run] : runs) {
    const Expected& expected = ByExample().at(kind);
    EXPECT_EQ(run.Wait(), expected.exit_code) << kind << run.Everything();
    for (const std::string& line : expected.shown) {
      EXPECT_THAT(run.Output(), HasSubstr(line)) << kind << run.Errors();
    }
    EXPECT_EQ(PartOf(run.Output(), "(waits: [^\n]*\n)\\1"), "") << run.Output();
    EXPECT_THAT(run.Left(), IsEmpty());
  }
}

TEST(Dev, ChargesEachPaymentOnceByTheTestThatCreateWrites) {
  const TempDir folder;
  ASSERT_EQ(RunFencepost({"create", "payments", folder.path()}).exit_code, 0);
  const Finished test = RunToEnd({.argv = {"/usr/bin/python3", "test_payments.py"},
                                  .env = {{"FENCEPOST", FencepostBinary()}},
                                  .directory = folder.path()});
  EXPECT_EQ(test.exit_code, 0) << test.output << test.error_output;
}

// An effect once an id, as files; its process dies amid a batch, each time at another record.
constexpr const char* kDiesAmidBatches = R"(import os, signal
import fencepost

def first(name):
    try:
        os.close(os.open(name, os.O_CREAT | os.O_EXCL))
        return True
    except FileExistsError:
        return False

@fencepost.batch_handler
def charge(records):
    with open("calls", "a", buffering=1) as calls:
        for at, record in enumerate(records):
            once = first("effect-" + record.id)
            calls.write(f"{record.id} {record.token} {at} {once:d}\n")
            if record.value["n"] % 50 == 7 and once:
                os.kill(os.getpid(), signal.SIGKILL)
    return [record.value for record in records]

if __name__ == "__main__":
    fencepost.run(charge)
)";
constexpr const char* kInBatches = R"(version: 1
name: batches
guarantee: exactly-once
kafka: {brokers: ["${BROKERS}"], topics: [orders]}
record_id: json:/id
lock: {redis: {nodes: ["${NODE}"]}}
processing: {order: none}
handler:
  exec:
    command: [python3, charge.py]
    processes: 2
    idempotent: true
    batch: {max_records: 10, linger: 20ms}
retry: {backoff: {initial: 10ms}}
output: {postgres: {dsn: "${DSN}", table: effects, columns: {id: record_id, n: json:/n}}}
)";

TEST(Dev, CallsPythonInBatchesThroughKills) {
  constexpr int kRecords = 300;
  DevRun run({"p.yaml", "--produce", "r.jsonl"},
             {{"PYTHONPATH", SourcePath("consumer/handlers/exec/python")}});
  run.Write("p.yaml", kInBatches);
  run.Write("charge.py", kDiesAmidBatches);
  std::string records;
  for (int i = 0; i < kRecords; ++i)
    records += fmt::format(R"({{"id":"o-{0}","n":{0}}})", i) + "\n";
  run.Write("r.jsonl", records);
  run.Start();
  EXPECT_EQ(run.Wait(), 0) << run.Everything();
  EXPECT_THAT(run.Output(), HasSubstr("300 records: 300 took effect"));

  std::map<std::string, int> effects;
  std::map<std::string, std::int64_t> token;
  int killed = 0, beside = 0;
  std::istringstream calls(ReadFile(run.folder() + "/calls"));
  for (std::string id; calls >> id;) {
    std::int64_t number = 0;
    int at = 0, once = 0;
    calls >> number >> at >> once;
    effects[id] += once;
    EXPECT_GE(number, token[id]) << id;
    token[id] = number;
    beside += at > 0 ? 1 : 0;
    killed += once == 1 && std::stoi(id.substr(2)) % 50 == 7 ? 1 : 0;
  }
  EXPECT_EQ(effects.size(), kRecords);
  for (const auto& [id, times] : effects) EXPECT_EQ(times, 1) << id;
  EXPECT_EQ(killed, 6);
  EXPECT_GT(beside, kRecords / 2) << "records that were not the first of their batch";
}

constexpr const char* kOrders = R"(version: 1
name: orders
guarantee: exactly-once
kafka:
  brokers: ["${BROKERS}"]
  topics: [orders]
  sasl: {mechanism: PLAIN, username: u, password: "${SECRET}"}
record_id: json:/order_id
on_bad_record: stop
lock: {redis: {nodes: ["${NODE}"], password: "${file:/nowhere/secret}"}}
output:
  postgres:
    dsn: ${DSN}
    table: shop.effects
    columns: {order_id: record_id, note: "=${NOTE:-no}"}
)";

TEST(Dev, TakesRecordsOfAnyClientAndEndsWithoutATrace) {
  for (const int signal : {SIGINT, SIGTERM}) {
    DevRun run({"orders.yaml"});
    run.Write("orders.yaml", kOrders);
    run.Start();
    ASSERT_TRUE(run.Says("ready after"));
    const std::string broker = PartOf(run.Output(), "kafka   ([0-9.:]+)");
    TestProducer producer(broker);
    producer.Send("orders", 0, std::nullopt, R"({"order_id":"o-1"})");
    producer.Flush();
    EXPECT_TRUE(run.Says(R"(o-1 -> shop.effects {"order_id": "o-1", "note": "no"})"));
    const std::string page = PartOf(run.Output(), "page    http://[^:]+:([0-9]+)");
    EXPECT_EQ(HttpGet("127.0.0.1", std::stoi(page), "/ready").status, 200);
    run.process().Kill(signal);
    EXPECT_EQ(run.Wait(), 0) << run.Everything();
    EXPECT_THAT(run.Left(), IsEmpty());
  }
}

TEST(Dev, ShowsIdConflictsAndItsLogTellsThemAllWhileNothingElseComes) {
  DevRun run({"orders.yaml"});
  run.Write("orders.yaml", std::string(kOrders) + "on_id_conflict: skip\n");
  run.Start();
  ASSERT_TRUE(run.Says("ready after"));
  TestProducer producer(PartOf(run.Output(), "kafka   ([0-9.:]+)"));
  for (const char amount : {'1', '2', '2', '2'}) {
    producer.Send("orders", 0, std::nullopt,
                  fmt::format(R"({{"order_id":"o-1","amount":{}}})", amount));
  }
  producer.Flush();
  EXPECT_TRUE(run.Says("orders/0/3 o-1 -> skipped: id_conflict: "));
  EXPECT_TRUE(WaitUntil(kLimit, "the repeats", [&] {
    return run.Errors().find("(and 1 more like it before)") != std::string::npos;
  })) << run.Everything();
  run.process().Kill(SIGTERM);
  EXPECT_EQ(run.Wait(), 0) << run.Everything();
  EXPECT_THAT(run.Output(), HasSubstr("4 records: 1 took effect, 3 are id conflicts"));
}

TEST(Dev, HasALockNodeOfItsOwnWhereThereIsNoRedisServer) {
  DevRun run({"orders.yaml", "--produce", "r.jsonl"}, {{"PATH", "/nonexistent"}});
  run.Write("orders.yaml", kOrders);
  run.Write("r.jsonl", "{\"order_id\": \"o-1\"}\n{\"order_id\": \"o-1\"}\n");
  run.Start();
  EXPECT_EQ(run.Wait(), 0) << run.Everything();
  EXPECT_THAT(run.Output(), AllOf(HasSubstr("locks   one node in this process"),
                                  HasSubstr("2 records: 1 took effect, 1 was done before")));
  EXPECT_THAT(run.Left(), IsEmpty());
}

TEST(Dev, EndsWithItsInputAndSaysWhatWasNotProcessed) {
  DevRun run({"orders.yaml"}, {},
             "{\"order_id\": \"o-1\"}\n\n{\"order_id\": \nno JSON\n{\"order_id\": \"o-2\"}");
  run.Write("orders.yaml", kOrders);
  run.Start();
  EXPECT_EQ(run.Wait(), 1) << run.Everything();
  EXPECT_THAT(run.Output(), AllOf(HasSubstr("orders/0/0 o-1 -> "), HasSubstr("orders/0/1 o-2 -> "),
                                  HasSubstr("2 records: 2 took effect")));
  EXPECT_THAT(run.Errors(), AllOf(HasSubstr("standard input:3: not sent: it is no JSON document"),
                                  HasSubstr("standard input:4: not sent: ")));
  EXPECT_THAT(run.Left(), IsEmpty());
}

TEST(Dev, FailsWhereThePipelineStopsAndLeavesNothing) {
  DevRun run({"orders.yaml", "--produce", "-"}, {}, "{\"id\": 1}\n");
  run.Write("orders.yaml", kOrders);
  run.Start();
  EXPECT_EQ(run.Wait(), 1) << run.Everything();
  EXPECT_THAT(run.Output(), HasSubstr("orders/0/0 -> failed: the pipeline stops here"));
  EXPECT_THAT(run.Errors(), HasSubstr("bad_record"));
  EXPECT_THAT(run.Left(), IsEmpty());
}

TEST(Dev, RefusesWhatItCannotRunBeforeAnythingStarts) {
  std::string handler(kOrders);
  handler += "handler: {http: {url: \"${PRICING_URL}\", idempotent: true}}\n";
  const struct {
    std::vector<std::string> words;
    std::string text, error;
  } kCases[] = {
      {{"p.yaml"},
       handler,
       "p.yaml:16:23: error: handler.http.url: the variable PRICING_URL is not"},
      {{"p.yaml", "--keep-output"}, kOrders, "output.postgres.dsn: the variable DSN is not set"},
      {{"p.yaml", "--produce", "none.jsonl"}, kOrders, "none.jsonl"},
      {{"p.yaml", "--http", "nowhere"}, kOrders, "nowhere"},
      {{"q.yaml"}, kOrders, "q.yaml:1:1: error: cannot be read"},
  };
  for (const auto& [words, text, error] : kCases) {
    DevRun run(words);
    run.Write("p.yaml", text);
    run.Start();
    EXPECT_EQ(run.Wait(), 2) << run.Everything();
    EXPECT_THAT(run.Errors(), HasSubstr(error));
    EXPECT_THAT(run.Left(), IsEmpty());
  }
}

}  // namespace
}  // namespace fencepost::testing
