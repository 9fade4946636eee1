// fencepost create and schema: what they print, and what can be done with it.
#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "tests/support/paths.h"
#include "tests/support/process.h"
#include "tests/support/worker_process.h"

namespace fencepost::testing {
namespace {

Finished Fencepost(std::vector<std::string> words) { return RunFencepost(std::move(words)); }

TEST(Create, PrintsTheSmallestPipelineByDefault) {
  const Finished created = Fencepost({"create"});
  EXPECT_EQ(created.exit_code, 0);
  EXPECT_EQ(created.output, ReadFile(testing::SourcePath("config/examples/orders.yaml")));
}

TEST(Create, PrintsPipelinesThatLintHasNothingAgainst) {
  const TempDir folder;
  for (const char* kind :
       {"orders", "orders-full", "payments", "enrich", "exec-python", "cdc", "cdc-upsert"}) {
    const Finished created = Fencepost({"create", kind});
    EXPECT_EQ(created.exit_code, 0) << kind;
    const Finished lint = Fencepost({"lint", folder.Write("pipeline.yaml", created.output)});
    EXPECT_EQ(lint.exit_code, 0) << kind;
    // The script of exec-python is there where this runs in the repository's folder.
    EXPECT_THAT(lint.output + lint.error_output,
                ::testing::AnyOf(::testing::Not(::testing::HasSubstr("warning:")),
                                 ::testing::HasSubstr("no transform.py in")))
        << kind;
  }
}

TEST(Create, PrintsAProgramAndThePipelineThatFindsItBesideIt) {
  const TempDir folder;
  for (const char* kind : {"exec-python", "transform.py"}) {
    folder.Write(kind, Fencepost({"create", kind}).output);
  }
  const Finished run = RunToEnd(
      {.argv = {testing::FencepostBinary(), "test", "exec-python"}, .directory = folder.path()});
  EXPECT_EQ(run.exit_code, 0) << run.output << run.error_output;
}

TEST(Create, SaysWhatEachKindIsFor) {
  const Finished help = Fencepost({"create", "--help"});
  EXPECT_THAT(help.output,
              ::testing::AllOf(
                  ::testing::HasSubstr("\n  cdc              Change data capture with Debezium"),
                  ::testing::HasSubstr("\n  transform.py     A handler for `handler.exec`"),
                  ::testing::HasSubstr("\n  orders           The smallest one")));
  EXPECT_THAT(help.output, ::testing::ContainsRegex(
                               "\n  orders-full      Orders with [^\n]+ to take pieces from.\n"));
}

TEST(Create, NamesTheKindsWhereItDoesNotKnowOne) {
  const Finished created = Fencepost({"create", "order"});
  EXPECT_EQ(created.exit_code, 2);
  EXPECT_EQ(created.output, "");
  EXPECT_EQ(created.error_output,
            "fencepost: create: there is no \"order\"; there are cdc-upsert, cdc, enrich, "
            "exec-python, "
            "orders-full, orders, payments, transform.py\n");
}

TEST(Schema, IsAJsonSchemaOfThePipelineFile) {
  const Finished schema = Fencepost({"schema"});
  EXPECT_EQ(schema.exit_code, 0);
  const auto json = nlohmann::json::parse(schema.output);
  EXPECT_EQ(json["$schema"], "https://json-schema.org/draft/2020-12/schema");
  EXPECT_TRUE(json["properties"].contains("kafka"));
}

}  // namespace
}  // namespace fencepost::testing
