// The examples, and the JSON Schema that is held against them.
#include "config/loader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "config/schema/json_schema.h"
#include "config/schema/schema.h"
#include "tests/support/paths.h"
#include "tests/support/process.h"
#include "tests/unit/config/pipeline_text.h"

namespace fencepost::config {
namespace {

using ::testing::Contains;
using ::testing::IsEmpty;
using ::testing::SizeIs;

std::string PathOf(const Example& example) {
  const bool whole = example.name.find('.') != std::string_view::npos;
  return testing::SourcePath("config/examples/" + std::string(example.name)) +
         (whole ? "" : ".yaml");
}

std::vector<Example> Pipelines() {
  std::vector<Example> pipelines;
  for (const Example& example : Examples()) {
    if (example.name.find('.') == std::string_view::npos) pipelines.push_back(example);
  }
  return pipelines;
}

TEST(Examples, AreTheFilesAsTheyStand) {
  std::vector<std::string_view> names;
  for (const Example& example : Examples()) {
    names.push_back(example.name);
    EXPECT_EQ(example.text, testing::ReadFile(PathOf(example))) << example.name;
  }
  for (const char* name :
       {"orders", "orders-full", "orders-lines", "payments", "enrich", "python", "cdc",
        "cdc-upsert", "route", "charge.py", "test_charge.py", "test_payments.py"}) {
    EXPECT_THAT(names, Contains(name));
  }
}

TEST(Examples, LoadWithoutAWordAndHoldTwoToFiveTests) {
  for (const Example& example : Pipelines()) {
    const LoadResult result = LoadText(example.text, PathOf(example), FakeEnvironment());
    EXPECT_THAT(Lines(result.findings), IsEmpty());
    EXPECT_TRUE(result.options) << example.name;
    if (example.name == "orders") continue;  // the smallest one
    EXPECT_GE(result.tests.size(), 2u) << example.name;
    EXPECT_LE(result.tests.size(), 5u) << example.name;
  }
}

TEST(Examples, HaveNamesOfTheirOwn) {
  std::vector<LoadResult> loaded;
  for (const Example& example : Pipelines()) {
    loaded.push_back(LoadText(example.text, PathOf(example), FakeEnvironment()));
  }
  EXPECT_THAT(Lines(CheckTogether(loaded)), IsEmpty());
}

// The section that a key is, that its list holds, or that it may be instead of a text.
nlohmann::json SectionIn(const nlohmann::json& at) {
  for (const auto& form : at.value("anyOf", nlohmann::json::array())) {
    if (form.contains("properties")) return form;
  }
  return at.contains("items") ? at["items"] : at;
}

// The schema of a key, by its path; null where it has none.
nlohmann::json SchemaOf(nlohmann::json at, std::string_view path) {
  while (!path.empty()) {
    const std::size_t dot = std::min(path.find('.'), path.size());
    at = SectionIn(at)
             .value("properties", nlohmann::json::object())
             .value(std::string(path.substr(0, dot)), nlohmann::json());
    path.remove_prefix(std::min(dot + 1, path.size()));
  }
  return at;
}

TEST(JsonSchema, HoldsEveryKeyWithItsMeaningAndNoOthers) {
  const auto schema = nlohmann::json::parse(JsonSchemaText());
  EXPECT_EQ(schema["$schema"], "https://json-schema.org/draft/2020-12/schema");
  EXPECT_EQ(schema["additionalProperties"], false);
  for (const Key& key : Schema()) {
    const nlohmann::json form = SchemaOf(schema, key.path);
    ASSERT_TRUE(form.is_object()) << key.path;
    EXPECT_THAT(form["description"].get<std::string>(), ::testing::HasSubstr(key.help)) << key.path;
    if (key.type == Type::kSection) {
      EXPECT_EQ(form["additionalProperties"], false) << key.path;
    }
    if (key.type == Type::kChoice) {
      EXPECT_EQ(form["anyOf"][0]["enum"], key.choices) << key.path;
    }
    if (!key.required) continue;
    const std::string_view parent = ParentOf(key.path);
    const auto* owner = parent.empty() ? nullptr : FindKey(parent);
    const auto section = SectionIn(owner == nullptr ? schema : SchemaOf(schema, parent));
    EXPECT_THAT(section["required"].get<std::vector<std::string>>(),
                Contains(std::string(NameOf(key.path))));
  }
}

// Runs the validator of tests/unit/config/validate.py: what it complains of, a line each.
std::string Validate(const testing::TempDir& folder, const std::vector<std::string>& files) {
  std::vector<std::string> argv = {"/usr/bin/python3",
                                   testing::SourcePath("tests/unit/config/validate.py"),
                                   folder.Write("schema.json", JsonSchemaText())};
  argv.insert(argv.end(), files.begin(), files.end());
  const auto done = testing::RunToEnd({.argv = argv});
  return done.output + (done.exit_code > 1 ? "exit " + std::to_string(done.exit_code) : "");
}

TEST(JsonSchema, TakesTheExamples) {
  const testing::TempDir folder;
  std::vector<std::string> files;
  for (const Example& example : Pipelines()) files.push_back(PathOf(example));
  EXPECT_THAT(files, SizeIs(::testing::Ge(6u)));
  EXPECT_EQ(Validate(folder, files), "");
}

TEST(JsonSchema, TakesVariablesAnywhereAndRefusesWhatLintRefuses) {
  const testing::TempDir folder;
  const std::string good = folder.Write(
      "good.yaml", std::string(kPipeline) +
                       "processing: {concurrency: \"${N}\", timeout: \"${T}\", order: \"${O}\"}\n"
                       "handler: {http: {url: \"http://a\", body: none, result: {jq: .}}}\n");
  EXPECT_EQ(Validate(folder, {good}), "");
  const std::string bad =
      folder.Write("bad.yaml", std::string(kPipeline) +
                                   "nam: x\nprocessing: {concurrency: 0, timeout: 5, order: keys}\n"
                                   "handler: {jq: ., exec: {command: [a]}, http: {url: a, "
                                   "body: {}, result: {jq: ., merge_into: /a}}}\n"
                                   "dead_letter: {}\ntests: [{name: a}]\n");
  EXPECT_EQ(Validate(folder, {bad}),
            ": additionalProperties\n"
            "dead_letter: required\n"
            "handler.http.body: anyOf\n"
            "handler.http.result: anyOf\n"
            "handler: maxProperties\n"
            "processing.concurrency: anyOf\n"
            "processing.order: anyOf\n"
            "processing.timeout: type\n"
            "tests.0: required\n"
            "tests.0: required\n");
}

}  // namespace
}  // namespace fencepost::config
