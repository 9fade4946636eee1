// What deploy/SIZING.md says that a row of the ledger takes.
#include <gmock/gmock.h>

#include "tests/component/outputs/postgres_fixture.h"
#include "tests/support/document.h"

namespace fencepost::consumer {
namespace {

using SizesTest = PostgresTest;

TEST_F(SizesTest, ALedgerRowTakesAsManyBytesAsTheDocumentSays) {
  constexpr int kRows = 50'000;
  constexpr int kBatch = 500;
  const auto output = Open();
  ASSERT_TRUE(output->Prepare());
  for (int done = 0; done < kRows; done += kBatch) {
    Batch batch;
    for (int i = done; i < done + kBatch; ++i) {
      // 21 characters, in no order, as the document has it
      batch.Add({.id = fmt::format("order-{:015}", 999'999'937LL * i % 1'000'000'007),
                 .offset = i,
                 .token = 100'000'000'000ULL + static_cast<unsigned>(i)});
    }
    const auto written = output->Write({.items = batch.items()});
    ASSERT_TRUE(written);
  }
  ASSERT_EQ(Value("SELECT count(*) FROM fencepost_ledger"), std::to_string(kRows));
  const double bytes =
      std::stod(Value("SELECT pg_total_relation_size('fencepost_ledger')")) / kRows;
  const double stated = testing::Stated("deploy/SIZING.md", R"(the ledger \| (\d+) bytes a row)");
  EXPECT_NEAR(bytes, stated, stated / 4);
}

}  // namespace
}  // namespace fencepost::consumer
