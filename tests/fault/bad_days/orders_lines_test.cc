// 10,000 orders of one to five lines, each a row in `orders`, its lines in `order_lines`, and where
// it is dear one in `audit`, while a worker is killed, one is frozen and the database is restarted.
#include <optional>

#include <nlohmann/json.hpp>

#include "tests/support/mysql_server.h"
#include "tests/support/pipeline_test.h"
#include "tests/support/sqlite_file.h"

namespace fencepost::testing {
namespace {

using nlohmann::json;
using std::chrono::seconds;

constexpr int kOrders = 10'000;
constexpr int kPartitions = 6;

struct Variant {
  const char* database;
  const char* record_id;
};

class OrdersWithLines : public PipelineTest, public ::testing::WithParamInterface<Variant> {
 protected:
  OrdersWithLines() {
    if (!Is("postgres")) table_ = std::make_unique<EffectsTable>(Database(), name_);
    table_->Exec("CREATE TABLE orders (id integer PRIMARY KEY, total integer)");
    table_->Exec(
        "CREATE TABLE order_lines (order_id integer REFERENCES orders (id), no integer, "
        "price integer)");
    table_->Exec("CREATE TABLE audit (id integer)");
  }
  static bool Is(std::string_view database) { return GetParam().database == database; }
  SqlServer& Database() {
    static MysqlServer mysql;
    if (Is("mysql")) return mysql;
    return Is("sqlite") ? static_cast<SqlServer&>(files_) : Postgres();
  }
  [[nodiscard]] static bool ByPosition() {
    return std::string_view(GetParam().record_id) == "position";
  }

  static int LinesOf(int order) { return order % 5 + 1; }
  static int TotalOf(int order) {
    int total = 0;
    for (int no = 0; no < LinesOf(order); ++no) total += PriceOf(order, no);
    return total;
  }
  static int PriceOf(int order, int no) { return order % 97 + no; }
  static bool IsDear(int order) { return TotalOf(order) > 300; }

  // By id some come twice.
  void Produce(int orders) {
    TestProducer producer(Kafka().bootstrap());
    for (const int end = sent_ + orders; sent_ < end; ++sent_) {
      json lines = json::array();
      for (int no = 0; no < LinesOf(sent_); ++no) lines.push_back({{"price", PriceOf(sent_, no)}});
      const json order = {{"id", sent_}, {"total", TotalOf(sent_)}, {"lines", lines}};
      for (int times = !ByPosition() && sent_ % 20 == 0 ? 2 : 1; times > 0; --times) {
        producer.Send(name_, sent_ % kPartitions, fmt::format("c-{}", sent_ % 499), order.dump());
      }
    }
    producer.Flush();
  }
  [[nodiscard]] std::string File() {
    PipelineText text = Text(kPartitions);
    text.record_id = GetParam().record_id;
    const std::string head = Is("postgres") ? "  postgres:\n    dsn: " + text.dsn + "\n"
                             : Is("mysql")  ? "  mysql:\n" + text.mysql
                                            : "  sqlite:\n    path: " + text.sqlite_path + "\n";
    text.output = "output:\n" + head + R"(    effects:
      - {table: orders, on_conflict: update, key: [id], columns: {id: json:/id, total: json:/total}}
      - table: order_lines
        each: json:/lines
        columns: {order_id: record./id, no: index, price: json:/price}
      - {table: audit, when: ".total > 300", columns: {id: json:/id}}
)";
    return text.Yaml();
  }
  [[nodiscard]] int Rows() const {
    try {
      return std::stoi(table_->Value("SELECT count(*) FROM orders"));
    } catch (const std::runtime_error&) {
      return -1;  // the database is not back yet
    }
  }
  void AwaitRows(int rows) {
    EXPECT_TRUE(WaitUntil(seconds(120), "rows", [&] { return Rows() >= rows; }))
        << Rows() << " of " << rows << "\n"
        << team_->Tails();
  }
  [[nodiscard]] int Number(const std::string& sql) const { return std::stoi(table_->Value(sql)); }

  SqliteFiles files_{folder_.path().string()};
  int sent_ = 0;
  std::optional<WorkerTeam> team_;
};

TEST_P(OrdersWithLines, AreWholeInAllTablesThroughKillsFreezesAndARestart) {
  team_.emplace(WorkerOptions{.files = {folder_.Write("orders.yaml", File())}});
  Produce(kOrders / 4);
  team_->Start(3);
  AwaitRows(kOrders / 8);
  (*team_)[0].Kill();
  (*team_)[1].Pause();
  team_->Add();
  Produce(kOrders / 4);
  AwaitRows(kOrders / 4);
  (*team_)[1].Resume();
  if (!Is("sqlite")) Database().Restart();
  Produce(kOrders / 4);
  AwaitRows(kOrders / 2);
  team_->Running().back()->Kill();
  team_->Add();
  Produce(kOrders / 4);
  AwaitRows(kOrders);
  EXPECT_TRUE(AllCommitted()) << team_->Tails();
  EXPECT_EQ(team_->StopAll(), "");

  int lines = 0, total = 0, dear = 0;
  for (int order = 0; order < kOrders; ++order) {
    lines += LinesOf(order);
    total += TotalOf(order);
    dear += IsDear(order) ? 1 : 0;
  }
  ASSERT_GT(dear, 0);
  EXPECT_EQ(Number("SELECT count(*) FROM orders"), kOrders);
  EXPECT_EQ(Number("SELECT sum(total) FROM orders"), total);
  EXPECT_EQ(Number("SELECT count(*) FROM order_lines"), lines);
  EXPECT_EQ(Number("SELECT sum(price) FROM order_lines"), total);
  EXPECT_EQ(Number("SELECT count(*) FROM (SELECT DISTINCT order_id, no FROM order_lines) x"),
            lines);
  EXPECT_EQ(Number("SELECT count(*) FROM (SELECT o.id FROM orders o LEFT JOIN order_lines l ON "
                   "l.order_id = o.id GROUP BY o.id, o.total HAVING count(l.no) <> o.id % 5 + 1 OR "
                   "sum(l.price) <> o.total) x"),
            0)
      << "orders that are half there";
  EXPECT_EQ(Number("SELECT count(*) FROM audit"), dear);
  EXPECT_EQ(Number("SELECT count(DISTINCT a.id) FROM audit a JOIN orders o ON o.id = a.id AND "
                   "o.total > 300"),
            dear);
  EXPECT_EQ(Number(ByPosition() ? "SELECT sum(upper(r) - lower(r)) FROM fencepost_positions, "
                                  "unnest(done) AS r"
                                : "SELECT count(*) FROM fencepost_ledger"),
            kOrders);
  team_->Look();
  EXPECT_EQ(team_->Sum("fencepost_invariant_violations_total"), 0);
}

INSTANTIATE_TEST_SUITE_P(
    Databases, OrdersWithLines,
    ::testing::Values(Variant{"postgres", "position"}, Variant{"postgres", "json:/id"},
                      Variant{"mysql", "json:/id"}, Variant{"sqlite", "json:/id"}),
    [](const auto& each) {
      return fmt::format("{}By{}", each.param.database,
                         std::string_view(each.param.record_id) == "position" ? "Position" : "Id");
    });

}  // namespace
}  // namespace fencepost::testing
