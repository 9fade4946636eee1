// The exec handler with batches, and heartbeats: real processes.
#include <filesystem>

#include <fmt/format.h>

#include "tests/component/handlers/runner_fixture.h"
#include "tests/support/paths.h"

namespace fencepost::consumer {
namespace {

using fencepost::testing::TempDir;
using fencepost::testing::WaitUntil;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

constexpr const char* kPrelude = R"(#!/usr/bin/env python3
import json, os, signal, sys, threading
def pause(seconds):
    threading.Event().wait(seconds)
def reply(text):
    sys.stdout.write(text + "\n")
    sys.stdout.flush()
def beat():
    for _ in range(6):
        pause(0.5)
        reply('{"heartbeat": true}')
def replies(batch):
    reply(json.dumps({"batch": batch}))
)";

class ExecBatch : public RunnerFixture {
 protected:
  // `body` runs for each line, with `request`; `batch` is what it holds, `answers` a good reply to
  // each: its value and how many there are.
  void StartPython(const std::string& body, int max_records, Millis linger = 20'000ms) {
    std::string text = std::string(kPrelude) +
                       "for line in sys.stdin:\n"
                       "    request = json.loads(line)\n"
                       "    batch = request.get('batch', [])\n"
                       "    answers = [{'record_id': r['record_id'], 'value': [r['value'], "
                       "len(batch)]} for r in batch]\n";
    std::istringstream lines(body);
    for (std::string line; std::getline(lines, line);) text += "    " + line + "\n";
    const std::string path = dir_.Write("handler", text);
    std::filesystem::permissions(path, std::filesystem::perms::owner_all);
    ExecHandlerOptions options{.command = {path}, .processes = 1};
    if (max_records > 1) options.batch = {.max_records = max_records, .linger = linger};
    Start({.kind = options});
  }
  TempDir dir_;
};

TEST_F(ExecBatch, HasItsRecordsInOneLineAndTakesTheRepliesInAnyOrder) {
  StartPython("replies(answers[::-1])", 3);
  EXPECT_THAT(Outcomes({"1", "2", "3"}), ElementsAre("[1, 3]", "[2, 3]", "[3, 3]"));
  EXPECT_EQ(recorder_.handled(), 1) << "one call of the program";
}

TEST_F(ExecBatch, IsALineOfTheSameFormForOneRecord) {
  StartPython("replies(answers)", 3, 0ms);
  EXPECT_THAT(Outcomes({"1"}), ElementsAre("[1, 1]"));
}

TEST_F(ExecBatch, HasAVerdictOnEachOfItsRecords) {
  StartPython(
      "answers[1] = {'record_id': 'b', 'error': 'sold out', 'class': 'sold_out'}\n"
      "del answers[2]\nreplies(answers)",
      3);
  EXPECT_THAT(Outcomes({"1", "2", "3"}),
              ElementsAre("[1, 3]", "sold_out: sold out",
                          "exec_protocol: the reply to its batch says nothing of this record"));
  EXPECT_THAT(recorder_.notes("handler_exited"), SizeIs(0));
}

TEST_F(ExecBatch, FailsWholeWhereAReplyCannotBeOneOfIt) {
  struct Row {
    const char* body;
    const char* why;
  };
  for (const Row& row :
       {Row{"replies(answers + answers[:1])", "two replies of the batch have one record_id"},
        Row{"answers[0]['record_id'] = 'x'\nreplies(answers)",
            "its record_id is of no record of it"},
        Row{"del answers[0]['record_id']\nreplies(answers)", "no record_id"},
        Row{"answers[0]['values'] = []\nreplies(answers)", "it must have one of value, values"},
        Row{"replies([1])", "a reply of the batch: it is not a JSON object"},
        Row{"reply(json.dumps(answers[0]))", "it is not {\"batch\": [REPLY"},
        Row{"reply('{\"batch\": [NaN]}')", "it is not JSON"}}) {
    StartPython(row.body, 2);
    EXPECT_THAT(Outcomes({"1", "2"}),
                ::testing::Each(::testing::AllOf(::testing::StartsWith("exec_protocol shared: "),
                                                 HasSubstr(row.why))))
        << row.body;
    EXPECT_THAT(recorder_.notes("handler_exited"), SizeIs(::testing::Ge(1))) << "it is killed";
  }
}

TEST_F(ExecBatch, FailsForAllWhereItsProcessDiesAndForOneRecordAloneAsItsOwn) {
  StartPython("if any(r['value'] == 7 for r in batch): sys.exit(3)\nreplies(answers)", 2);
  EXPECT_THAT(Outcomes({"1", "7"}),
              ::testing::Each("exec shared: the process ended with exit code 3 before it replied"));
  HandlerCall call = MakeCall(100, {.value = "7"});
  call.alone = true;
  runner_->Call(std::move(call));
  const HandlerResult result = AnswerTo(100).result;
  ASSERT_FALSE(result.has_value());
  EXPECT_FALSE(result.error().shared);
}

TEST_F(ExecBatch, LeavesOutARecordThatCannotBeSent) {
  StartPython("replies(answers)", 3);
  EXPECT_THAT(
      Outcomes({"1", "NaN", "3"}),
      ElementsAre("[1, 2]", HasSubstr("bad_record: the value is not valid JSON"), "[3, 2]"));
}

TEST_F(ExecBatch, GoesOnForTheOthersWhereARecordIsCancelledAndIsKilledWhereAllAre) {
  StartPython(fmt::format("open('{0}', 'w')\n"
                          "while os.path.exists('{0}') and batch[0]['value'] < 9: pause(0.01)\n"
                          "if batch[0]['value'] == 9: signal.pause()\nreplies(answers)",
                          dir_.File("has it")),
              2);
  const auto both = CallAll({"1", "2"});
  ASSERT_TRUE(WaitUntil(10s, [&] { return std::filesystem::exists(dir_.File("has it")); }));
  Cancel(both[0]);
  std::filesystem::remove(dir_.File("has it"));
  EXPECT_EQ(ClassOf(both[0]), "cancelled");
  EXPECT_EQ(ClassOf(both[1]), "success");
  const auto again = CallAll({"9", "9"});
  ASSERT_TRUE(WaitUntil(10s, [&] { return std::filesystem::exists(dir_.File("has it")); }));
  for (const std::uint64_t id : again) Cancel(id);
  for (const std::uint64_t id : again) EXPECT_EQ(ClassOf(id), "cancelled");
}

// It works longer than the timeout, and says so in between. The first call waits until it is up.
TEST_F(ExecBatch, ThatSaysThatItGoesOnIsNotKilledInEitherForm) {
  const auto up_and_works = [this](int max_records, const std::string& reply_to_it) {
    timeout_ = 20s;
    StartPython(reply_to_it, max_records);
    Outcomes(std::vector<std::string>(static_cast<std::size_t>(max_records), "0"));
    timeout_ = 2s;
    return Outcomes(std::vector<std::string>(static_cast<std::size_t>(max_records), "7"));
  };
  const std::string busy = "if '\"value\":7' in line:\n" + std::string("    ");
  EXPECT_THAT(up_and_works(2, busy + "beat()\nreplies(answers)"), ElementsAre("[7, 2]", "[7, 2]"));
  EXPECT_THAT(up_and_works(1, busy + "beat()\nreply('{\"value\": 1}')"), ElementsAre("1"));
  EXPECT_THAT(up_and_works(2, busy + "(beat(), signal.pause())\nreplies(answers)"),
              ::testing::Each("timeout shared: no answer within 2000 ms"));
}

}  // namespace
}  // namespace fencepost::consumer
