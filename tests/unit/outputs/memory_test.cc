// What one JSON record takes from its id to its row.
#include <fmt/format.h>

#include "consumer/outputs/rows/batch_rows.h"
#include "consumer/outputs/rows/cell_types.h"
#include "consumer/record/identity.h"
#include "tests/component/outputs/batch.h"
#include "tests/support/peak_memory.h"

namespace fencepost::consumer {
namespace {

using testing::ExpectBounded;
using testing::List;
using testing::Repeated;

std::vector<std::pair<std::string, std::string>> Lists() {
  std::string names = "{";
  for (int i = 0; i < 1'000'000; ++i) names += fmt::format("\"{:x}\":1,", i);
  std::string headed = Repeated("[", 190) + List("0", 2'000'000) + Repeated("]", 190);
  return {{"numbers", List("1", 4'000'000)},
          {"empty lists", List("[]", 3'000'000)},
          {"objects", List(R"({"a":{}})", 1'000'000)},
          {"many names", names + R"("z":1})"},
          {"in the depth", headed},
          {"a text", List('"' + std::string(10 << 20, 'x') + '"', 0)},
          {"escapes", List('"' + Repeated("\\u00e9", 2'000'000) + '"', 0)}};
}

TEST(Memory, OfAJsonRecordFromItsIdToItsRowIsAboutSixteenTimesItsSize) {
  for (const auto& [name, json] : Lists()) {
    const std::string value = fmt::format(R"({{"id":1,"v":{}}})", json);
    ExpectBounded(name, value.size(), "", [&] {
      const Batch batch{{.id = "1", .value = value}};
      Identifier identifier({.record_id = {*Selector::Parse("json:/id")},
                             .content = {.kind = ContentRule::Kind::kValue, .selectors = {}}},
                            "C");
      Identity identity;
      const auto found =
          identifier.Identify(*batch.items()[0].record, *batch.items()[0].where, identity);
      BatchRows rows(OneShape({.columns = Columns({{"id", "json:/id"}, {"v", "json:/v"}})}), "w");
      std::vector<WriteOutcome> outcomes(1);
      (void)rows.Fill(batch.items(), outcomes);
      return found ? outcomes[0].detail : "error: " + found.error();
    });
  }
}

TEST(Memory, OfAnArrayColumnToo) {
  for (const auto& [name, json] : Lists()) {
    if (!json.starts_with('[')) continue;
    const std::string& list = json;
    ExpectBounded(name, list.size(), "", [&] {
      std::string text = list;
      const Column from{.name = "", .selector = {.kind = Selector::Kind::kJson}};
      (void)MakeCellArray({.kind = CellKind::kJson}, from, ArrayForm::kPostgres, text, 0);
      return std::string();
    });
  }
}

}  // namespace
}  // namespace fencepost::consumer
