// What is asked of PostgreSQL for a transaction of records: statements, and round trips. Counts, at
// libpq's own functions: they do not depend on the machine, nor on what the server writes. And what
// a client leaves locked that freezes there.
#include <dlfcn.h>
#include <libpq-fe.h>

#include <functional>
#include <utility>

#include <gtest/gtest.h>

#include "tests/component/outputs/positions.h"

namespace {

// Of a thread: other tests of this program write in several.
thread_local int statements = 0;
thread_local int round_trips = 0;  // a look for answers, after something was sent
thread_local bool sent = false;
thread_local std::function<void()> frozen;  // once, when most of a large statement has left
constexpr std::size_t kLarge = 2 * 8192;

template <typename Function>
Function* Next(const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
}

void CountStatement() {
  ++statements;
  sent = true;
}

}  // namespace

// In place of libpq's, for the whole program.
extern "C" {

int PQsendQuery(PGconn* connection, const char* sql) {
  CountStatement();
  return Next<decltype(PQsendQuery)>("PQsendQuery")(connection, sql);
}

int PQsendQueryParams(PGconn* connection, const char* sql, int count, const Oid* types,
                      const char* const* values, const int* lengths, const int* formats,
                      int result) {
  CountStatement();
  return Next<decltype(PQsendQueryParams)>("PQsendQueryParams")(connection, sql, count, types,
                                                                values, lengths, formats, result);
}

int PQsendQueryPrepared(PGconn* connection, const char* name, int count, const char* const* values,
                        const int* lengths, const int* formats, int result) {
  CountStatement();
  const int done = Next<decltype(PQsendQueryPrepared)>("PQsendQueryPrepared")(
      connection, name, count, values, lengths, formats, result);
  std::size_t size = 0;
  for (int i = 0; i < count; ++i) size += static_cast<std::size_t>(lengths[i]);
  if (frozen && size > kLarge) std::exchange(frozen, nullptr)();
  return done;
}

PGresult* PQgetResult(PGconn* connection) {
  round_trips += std::exchange(sent, false) ? 1 : 0;
  return Next<decltype(PQgetResult)>("PQgetResult")(connection);
}

}  // extern "C"

namespace fencepost::consumer {
namespace {

class AskedOfPostgres : public PositionsTest {
 protected:
  // "STATEMENTS in ROUND TRIPS" of one transaction, after others of this connection.
  std::string Asked(bool by_position, int records) {
    const auto output = store_->Open(ByKey(), {}, {.by_position = by_position});
    if (const auto prepared = output->Prepare(); !prepared) return prepared.error().error.Line();
    for (int batch = 0; batch < 3; ++batch) {
      const Orders orders(next_, next_ + records);
      next_ += records;
      statements = round_trips = 0;
      for (const WriteResult result : ResultsOfRetries(*output, orders)) {
        EXPECT_EQ(result, WriteResult::kCommitted);
      }
    }
    return fmt::format("{} in {}", statements, round_trips);
  }

 private:
  Offset next_ = 100;  // the table takes no 13
};

INSTANTIATE_TEST_SUITE_P(Postgres, AskedOfPostgres, ::testing::Values("postgres"), StoreName);

// BEGIN, the write and COMMIT, while all ids are new.
TEST_P(AskedOfPostgres, ForATransactionByIdAreThreeStatementsInOneRoundTripHoweverManyItsRecords) {
  EXPECT_EQ(Asked(false, 10), "3 in 1");
  EXPECT_EQ(Asked(false, 500), "3 in 1");
}

// BEGIN, the locks of its partitions' rows, the write and COMMIT.
TEST_P(AskedOfPostgres, ForATransactionByPositionAreFourStatementsInOneRoundTrip) {
  EXPECT_EQ(Asked(true, 10), "4 in 1");
  EXPECT_EQ(Asked(true, 500), "4 in 1");
}

// Of five hundred one, in every second batch: those behind it are written in parts at once.
TEST_P(AskedOfPostgres, ForABatchWithARefusedRecordAreAFewPartsInFourRoundTrips) {
  const auto output = Open("worker-1");
  ASSERT_TRUE(output->Prepare());
  WriteRetry retry(output->max_records());
  std::vector<std::string> asked;
  std::uint64_t number = 0;
  for (Offset first = 1000; first < 4000; first += 500) {
    Batch batch;
    for (Offset offset = first; offset < first + 500; ++offset) {
      Batch::Entry order = Order(offset);
      if (offset % 1000 == 300) order.value = R"({"amount":13})";
      batch.Add(std::move(order));
    }
    statements = round_trips = 0;
    ++number;
    ASSERT_TRUE(
        WriteAtOnce(*output, retry, {.items = batch.items(), .offsets = {}}, number, number - 1));
    asked.push_back(fmt::format("{} in {}", statements, round_trips));
  }
  EXPECT_EQ(asked[4], "35 in 4") << "four parts, then the three of one";
  EXPECT_EQ(asked[5], "23 in 3") << "none was refused";
}

// The lock of a partition's row is taken before the records have been sent. A client that freezes
// in between is ended by the next one that waits for the row, after half a minute.
TEST_P(AskedOfPostgres, ByPositionKeepsNoRowLockedWhereAClientFreezesWhileItSends) {
  using std::chrono::seconds;
  const auto output = Open("frozen");
  const auto other = Open("other");
  ASSERT_TRUE(output->Prepare() && other->Prepare());
  ResultsOfRetries(*output, Orders(100, 102));
  const Orders many(200, 4000);
  const Orders few(102, 104);
  const auto write = [](Output& to, const Orders& orders) {
    return testing::WaitUntil(seconds(90), [&] {
      return to.Write({.items = orders.items(), .offsets = {}}).has_value();
    });
  };
  frozen = [&] {
    EXPECT_TRUE(testing::WaitUntil(seconds(60), [&] {
      return Exec(
                 "SELECT count(*) FROM pg_stat_activity WHERE state = 'active' AND wait_event ="
                 " 'ClientRead' AND application_name = 'fencepost/orders/frozen'") == "1";
    })) << "it has its row, and waits for the rest";
    EXPECT_TRUE(write(*other, few)) << "its row is locked by one that is frozen";
  };
  EXPECT_TRUE(write(*output, many));
  EXPECT_FALSE(frozen) << "it was to freeze";
  EXPECT_EQ(Done(), "{[100,104),[200,4000)}");
}

}  // namespace
}  // namespace fencepost::consumer
