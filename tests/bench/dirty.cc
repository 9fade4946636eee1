// Records that are refused: what they leave of the rate of a clean topic.
#include <algorithm>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "tests/bench/benches.h"
#include "tests/bench/shared/run.h"
#include "tests/bench/shared/turns.h"
#include "tests/support/mysql_server.h"
#include "tests/support/sqlite_file.h"
#include "tests/support/stub_server.h"

namespace fencepost::bench {
namespace {

constexpr const char* kDeadLetters = "orders.dead";
constexpr const char* kSchema =
    R"({"schema":"{\"type\":\"record\",\"name\":\"O\",\"fields\":[{\"name\":\"order_id\",)"
    R"(\"type\":\"string\"},{\"name\":\"amount\",\"type\":\"long\"}]}"})";

// What is wrong with record n.
struct Dirt {
  std::string name;
  std::function<std::string(std::int64_t n, std::string value)> spoil;
};

// A pipeline, and what its records can suffer from.
struct Kind {
  std::string into;  // postgres, mysql, sqlite
  std::string by;
  std::vector<std::string> set{};
  std::function<std::string(std::int64_t n, std::string value)> write{};  // all records
  std::vector<Dirt> dirt;
};

std::string Order(std::int64_t id, const std::string& amount) {
  return fmt::format(R"({{"order_id":"o-{:010}","amount":{}}})", id, amount);
}

void AppendZigZag(std::int64_t number, std::string& bytes) {
  auto left = static_cast<std::uint64_t>(number) << 1;
  for (; left >= 0x80; left >>= 7) bytes += static_cast<char>((left & 0x7f) | 0x80);
  bytes += static_cast<char>(left);
}

std::string Avro(std::int64_t n, std::uint32_t schema) {
  std::string bytes(1, '\0');
  for (const unsigned shift : {24U, 16U, 8U, 0U}) bytes += static_cast<char>(schema >> shift);
  const std::string id = fmt::format("o-{:010}", n);
  AppendZigZag(static_cast<std::int64_t>(id.size()), bytes);
  bytes += id;
  AppendZigZag(n % 1000, bytes);
  return bytes;
}

class DirtyBench {
 public:
  explicit DirtyBench(const Options& options)
      : options_(options), servers_(options.fsync), records_(options.records.value_or(100'000)) {
    servers_.kafka.CreateTopic(kDeadLetters, 12);
    mysql_.Exec("CREATE DATABASE bench");
  }
  void Measure(const Kind& kind);
  [[nodiscard]] std::vector<Kind> Kinds();

 private:
  Figures Turn(const Kind& kind, const Dirt* dirt, int per_mille);
  void Reset(const Kind& kind);

  const Options& options_;
  Servers servers_;
  const std::int64_t records_;
  testing::MysqlServer mysql_;
  testing::TempDir folder_;
  testing::SqliteFiles files_{folder_.path().string()};
  testing::StubServer registry_{[](const testing::StubServer::Request& request) {
    if (request.line.starts_with("GET /schemas/ids/1 ")) {
      return testing::StubServer::Answer{.body = kSchema};
    }
    return testing::StubServer::Answer{.status = 404, .body = R"({"error_code":40403})"};
  }};
};

std::vector<Kind> DirtyBench::Kinds() {
  const Dirt type{"of another type", [](std::int64_t n, const std::string&) {
                    return Order(n, fmt::format("\"x{}\"", n));
                  }};
  const Dirt constraint{"against a constraint",
                        [](std::int64_t n, const std::string&) { return Order(n, "-13"); }};
  const Dirt no_id{"without an id",
                   [](std::int64_t, const std::string&) { return R"({"amount":1})"; }};
  const Dirt conflict{"an id with other content", [](std::int64_t n, const std::string&) {
                        return Order(n < 12 ? n + 12 : n - 12, "7777");
                      }};
  const auto avro = [](std::int64_t n, const std::string&) { return Avro(n, 1); };
  const Dirt unknown{"of an unknown schema", [](std::int64_t n, const std::string&) {
                       return Avro(n, static_cast<std::uint32_t>(1000 + n * 7919 % 2'000'000'000));
                     }};
  const Dirt broken{"cut off",
                    [](std::int64_t n, const std::string&) { return Avro(n, 1).substr(0, 9); }};
  const std::string columns = R"("columns":{"order_id":"json:/order_id","amount":"json:/amount"})";
  const std::string mysql = fmt::format(
      R"(output={{"mysql":{{"host":"127.0.0.1","port":{},"user":"app","database":"bench",)"
      R"("table":"effects",{}}}}})",
      mysql_.port(), columns);
  const std::string sqlite = fmt::format(
      R"(output={{"sqlite":{{"path":"{}","table":"effects",{}}}}})", files_.path("bench"), columns);
  const std::string decode = fmt::format(
      R"(kafka.decode={{"value":"avro","registry":{{"url":"{}"}}}})", registry_.Url(""));
  const std::string refuse = R"(handler={"jq":"if .amount == -13 then error(\"no\") else . end"})";
  return {{"postgres", "position", {}, {}, {type, constraint}},
          {"postgres", "id", {}, {}, {constraint, no_id, conflict}},
          {"mysql", "position", {mysql}, {}, {type, constraint}},
          {"sqlite", "position", {sqlite}, {}, {constraint}},
          {"postgres", "position", {decode}, avro, {unknown, broken}},
          {"postgres", "position", {refuse}, {}, {{"refused by the handler", constraint.spoil}}}};
}

void DirtyBench::Reset(const Kind& kind) {
  servers_.Reset();
  constexpr const char* kTable =
      "CREATE TABLE effects (order_id varchar(20), amount bigint CHECK (amount <> -13))";
  if (kind.into == "postgres") {
    servers_.postgres.Exec("ALTER TABLE effects ADD CHECK (amount <> -13)");
  } else {
    auto& server = kind.into == "mysql" ? static_cast<testing::SqlServer&>(mysql_) : files_;
    for (const char* table : {"effects", "fencepost_ledger", "fencepost_positions"}) {
      server.Exec(fmt::format("DROP TABLE IF EXISTS {}", table), "bench");
    }
    server.Exec(kTable, "bench");
  }
}

Figures DirtyBench::Turn(const Kind& kind, const Dirt* dirt, int per_mille) {
  Reset(kind);
  const std::int64_t every = dirt == nullptr ? records_ + 1 : 1000 / per_mille;
  Run run{.by = kind.by, .stream = {.records = records_}, .set = options_.set};
  run.stream.value = [&](std::int64_t n, std::string value) {
    if (n % every == every - 1) return dirt->spoil(n, std::move(value));
    return kind.write ? kind.write(n, std::move(value)) : value;
  };
  run.set.insert(run.set.end(), kind.set.begin(), kind.set.end());
  run.set.push_back(
      fmt::format(R"(dead_letter={{"topic":"{}","max_consecutive":0}})", kDeadLetters));
  run.effects = kind.into == "postgres" ? records_ - records_ / every : 0;
  return {{"records_per_s", RunWorkers(servers_, run).processed_per_s}};
}

void DirtyBench::Measure(const Kind& kind) {
  std::vector<Side> sides{
      {.name = "clean", .reference = true, .turn = [&] { return Turn(kind, nullptr, 0); }}};
  for (const Dirt& dirt : kind.dirt) {
    for (const int per_mille : {1, 10, 100}) {
      sides.push_back(
          {.name = fmt::format("{} % {}", per_mille / 10.0, dirt.name),
           .turn = [this, &kind, &dirt, per_mille] { return Turn(kind, &dirt, per_mille); }});
    }
  }
  TakeTurns({.bench = "dirty",
             .of = Of(options_, {{"into", kind.into},
                                 {"by", kind.by},
                                 {"records", records_},
                                 {"of", kind.dirt.front().name}}),
             .words = "dead letters of a share of the records, beside a clean topic",
             .rounds = options_.rounds.value_or(3),
             .references_only = options_.floor_only},
            std::move(sides));
}

}  // namespace

void RunDirtyBench(const Options& options) {
  DirtyBench bench(options);
  const std::vector<Kind> kinds = bench.Kinds();
  for (std::size_t i = 0; i < kinds.size(); ++i) {
    const bool chosen =
        options.curves.empty() ||
        std::ranges::find(options.curves, std::to_string(i)) != options.curves.end();
    if (chosen) bench.Measure(kinds[i]);
  }
}

}  // namespace fencepost::bench
