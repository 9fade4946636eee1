// fencepost create and schema: what they print, and what can be done with it.
#include <filesystem>

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

TEST(Create, WritesPipelinesThatLintHasNothingAgainst) {
  const TempDir folder;
  for (const char* kind : {"orders", "orders-full", "orders-lines", "payments", "enrich", "python",
                           "cdc", "cdc-upsert", "route"}) {
    const std::string file = folder.File(std::string(kind) + ".yaml");
    const Finished created = Fencepost({"create", kind, folder.path()});
    EXPECT_EQ(created.exit_code, 0) << kind << created.error_output;
    EXPECT_THAT(created.output, ::testing::StartsWith(file + "\n"));
    const Finished lint = Fencepost({"lint", file});
    EXPECT_EQ(lint.exit_code, 0) << kind;
    EXPECT_THAT(lint.output + lint.error_output, ::testing::Not(::testing::HasSubstr("warning:")))
        << kind;
  }
}

constexpr const char* kPythonFiles[] = {"python.yaml", "charge.py", "test_charge.py"};

TEST(Create, PrintsAPipelineAndTheProgramsThatItRuns) {
  const std::string printed = Fencepost({"create", "python"}).output;
  for (const char* file : kPythonFiles) {
    EXPECT_THAT(printed, ::testing::HasSubstr(std::string("==> ") + file + " <==\n"));
  }
  const std::string program = ReadFile(testing::SourcePath("config/examples/charge.py"));
  EXPECT_EQ(Fencepost({"create", "charge.py"}).output, program);
  EXPECT_THAT(printed, ::testing::HasSubstr(program));
}

TEST(Create, WritesAPipelineAndTheProgramsThatItFindsBesideIt) {
  const TempDir folder;
  const std::string project = folder.File("a/project");
  EXPECT_EQ(Fencepost({"create", "python", project}).exit_code, 0);
  const Finished run =
      RunToEnd({.argv = {testing::FencepostBinary(), "test", "python.yaml"},
                .env = {{"PYTHONPATH", testing::SourcePath("consumer/handlers/exec/python")},
                        {"PYTHONDONTWRITEBYTECODE", "1"}},
                .directory = project});
  EXPECT_EQ(run.exit_code, 0) << run.output << run.error_output;
}

TEST(Create, WritesOverNothing) {
  const TempDir folder;
  const std::string mine = folder.Write("test_charge.py", "mine");
  const Finished created = Fencepost({"create", "python", folder.path()});
  EXPECT_EQ(created.exit_code, 2);
  EXPECT_EQ(created.error_output, "fencepost: create: " + mine + " exists: nothing was written\n");
  EXPECT_EQ(ReadFile(mine), "mine");
  EXPECT_FALSE(std::filesystem::exists(folder.File("python.yaml")));
  const Finished inside = Fencepost({"create", "python", mine});
  EXPECT_EQ(inside.exit_code, 1);
  EXPECT_EQ(inside.error_output,
            "fencepost: create: cannot write " + mine + "/python.yaml: Not a directory\n");
}

TEST(Create, SaysWhatEachKindIsFor) {
  const Finished help = Fencepost({"create", "--help"});
  EXPECT_THAT(help.output,
              ::testing::AllOf(
                  ::testing::HasSubstr("\n  cdc              Change data capture with Debezium"),
                  ::testing::HasSubstr("\n  charge.py        Charges payments at a service."),
                  ::testing::HasSubstr("\n  test_payments.py A test for payments.yaml"),
                  ::testing::HasSubstr("\n  orders           The smallest one")));
  EXPECT_THAT(help.output, ::testing::ContainsRegex(
                               "\n  orders-full      Orders with [^\n]+ to take pieces from.\n"));
}

TEST(Create, NamesTheKindsWhereItDoesNotKnowOne) {
  const Finished created = Fencepost({"create", "order"});
  EXPECT_EQ(created.exit_code, 2);
  EXPECT_EQ(created.output, "");
  EXPECT_EQ(
      created.error_output,
      "fencepost: create: there is no \"order\"; there are cdc-upsert, cdc, charge.py, enrich, "
      "orders-full, orders-lines, orders, payments, python, route, test_charge.py, "
      "test_payments.py\n");
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
