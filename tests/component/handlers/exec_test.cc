// The exec handler with real processes.
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include <cerrno>
#include <csignal>
#include <cstddef>
#include <filesystem>
#include <iterator>
#include <thread>

#include <fmt/format.h>

#include "consumer/handlers/exec/exec_process.h"
#include "tests/component/handlers/runner_fixture.h"
#include "tests/support/paths.h"

namespace fencepost::consumer {
namespace {

using fencepost::testing::ReadFile;
using fencepost::testing::TempDir;
using fencepost::testing::WaitUntil;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using ::testing::StartsWith;

// What the value asks for, done in Python. `reply` writes a line; `value` is the request's.
constexpr const char* kPrelude = R"(#!/usr/bin/env python3
import json, os, signal, subprocess, sys
def reply(text):
    sys.stdout.write(text + "\n")
    sys.stdout.flush()
)";

class ExecHandler : public RunnerFixture {
 protected:
  std::string Script(const std::string& text, const std::string& name = "handler") {
    const std::string path = dir_.Write(name, text);
    std::filesystem::permissions(path, std::filesystem::perms::owner_all);
    return path;
  }
  // `body` runs for each line, as `line` and `request`.
  void StartPython(const std::string& body, int processes = 1, ExecValue value = ExecValue::kJson) {
    std::string text = std::string(kPrelude) +
                       "for line in sys.stdin:\n    request = json.loads(line)\n"
                       "    value = request.get('value')\n";
    std::istringstream lines(body);
    for (std::string line; std::getline(lines, line);) text += "    " + line + "\n";
    Start({.kind = ExecHandlerOptions{
               .command = {Script(text)}, .value = value, .processes = processes}});
  }
  bool Exists(const std::string& name) { return std::filesystem::exists(dir_.File(name)); }
  bool Noted(std::size_t count, std::string_view event) {
    return WaitUntil(20s, [&] { return recorder_.notes(event).size() >= count; });
  }

  TempDir dir_;
};

constexpr const char* kEcho = "reply(json.dumps({'value_text': line.rstrip('\\n')}))";

TEST_F(ExecHandler, AsksWithTheWholeRecordInOneLine) {
  StartPython(kEcho);
  EXPECT_EQ(ValueOf({.value = "{\"n\": 12345678901234567890.10,\r\n \"s\": \"a\\nb\"}\n",
                     .key = "k\"1",
                     .headers = {{"a", "1"}, {"b", std::nullopt}, {"a", "2"}, {"c", "\xff"}}}),
            R"({"record_id":"o-1","token":9007199254740993,"source":"orders/3/42",)"
            R"("topic":"orders","partition":3,"offset":42,"timestamp":1700000000123,"attempt":2,)"
            R"("key":"k\"1","value":{"n": 12345678901234567890.10,   "s": "a\nb"},)"
            R"("headers":{"b":null,"a":"2"},"headers_base64":{"c":"/w=="}})");
}

TEST_F(ExecHandler, AsksNothingOfAValueThatIsNotJson) {
  StartPython(kEcho);
  const HandlerFailure failure = FailureOf(R"({"score":NaN})");
  EXPECT_EQ(failure.error_class, "bad_record");
  EXPECT_FALSE(failure.asked);
  EXPECT_EQ(failure.text,
            "the value is not valid JSON: NaN is not JSON (values of another form: "
            "`handler.exec.value: text`)");
  EXPECT_FALSE(failure.retry);
  EXPECT_EQ(FailureOf("").error_class, "bad_record");
  EXPECT_THAT(*ValueOf(CallSpec{}), HasSubstr(R"("value":null,"headers":{})"));
}

TEST_F(ExecHandler, PassesOnAnyValueAsTextOrBase64WhereThatIsItsForm) {
  StartPython(kEcho, 1, ExecValue::kText);
  EXPECT_THAT(*ValueOf({.value = "{\"cut", .key = "\xfe"}),
              HasSubstr(R"("key":null,"key_base64":"/g==","value_text":"{\"cut","headers")"));
  EXPECT_THAT(*ValueOf({.value = "\xff\xfe\n"}),
              HasSubstr(R"("key":null,"value_base64":"//4K","headers":{})"));
  EXPECT_THAT(*ValueOf({.value = ""}), HasSubstr(R"("value_text":"","headers")"));
  EXPECT_THAT(*ValueOf({.value = R"({"a":1})"}), HasSubstr(R"("value_text":"{\"a\":1}",)"));
  EXPECT_THAT(*ValueOf(CallSpec{}), HasSubstr(R"("value_text":null,"headers":{})"));
}

// From now on close_range does not exist for the calling thread and those that it starts: so it is
// before Linux 5.9, and under many seccomp profiles.
bool WithoutCloseRange() {
  sock_filter code[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_close_range, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const sock_fprog filter{static_cast<unsigned short>(std::size(code)), code};
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) == 0;
}

TEST_F(ExecHandler, StartsAndInheritsNothingWhereTheKernelHasNoCloseRange) {
  const Fd open_here(open("/dev/null", O_RDONLY));  // not closed on exec by itself
  ASSERT_TRUE(open_here.open());
  bool filtered = false;
  std::thread([&] {
    filtered = WithoutCloseRange();
    StartPython("reply(json.dumps({'value': os.listdir('/proc/self/fd')}))");
  }).join();
  ASSERT_TRUE(filtered);
  EXPECT_EQ(ValueOf("1"), R"(["0", "1", "2", "3"])") << "3 is that of the listing";
}

TEST_F(ExecHandler, TakesEveryFormOfReply) {
  StartPython("reply(value)");
  const auto value = [this](const std::string& reply) {
    std::string json = "\"";
    for (const char c : reply)
      json += c == '"' || c == '\\' ? std::string("\\") + c : std::string(1, c);
    return *ResultOf(json + "\"");
  };
  EXPECT_THAT(value(R"({"value": {"n": 12345678901234567890.10, "t": true}})"),
              ElementsAre(R"({"n": 12345678901234567890.10, "t": true})"));
  EXPECT_THAT(value(R"({"value": 9007199254740993 })"), ElementsAre("9007199254740993"));
  EXPECT_THAT(value(R"({"value": "a b"})"), ElementsAre(R"("a b")"));
  EXPECT_THAT(value(R"({"value": null, "more": 1})"), ElementsAre(std::nullopt));
  EXPECT_THAT(value(R"({"values": [1.50, null, [2], "x"]})"),
              ElementsAre("1.50", std::nullopt, "[2]", "\"x\""));
  EXPECT_THAT(value(R"({"values": []})"), IsEmpty());
  EXPECT_THAT(value(R"({"value_text": "\u00fc\t"})"), ElementsAre("\xc3\xbc\t"));
  EXPECT_THAT(value(R"({"value_base64": "/wA="})"), ElementsAre(std::string("\xff\0", 2)));
}

TEST_F(ExecHandler, TakesAnErrorForAFailure) {
  StartPython("reply(json.dumps(value))");
  EXPECT_EQ(Told(R"({"error": "no\nstock"})"), "exec_error, again: no stock");
  EXPECT_THAT(Told(R"({"error": "x", "class": "sold_out", "retry": false})"),
              StartsWith("sold_out, for good: "));
  EXPECT_EQ(FailureOf(R"({"error": "x", "class": "404"})").error_class, "404");
  EXPECT_THAT(recorder_.notes(), IsEmpty());
  EXPECT_EQ(FailureOf(R"({"error": "x", "class": "No card 4111"})").error_class, "exec_protocol");
}

TEST_F(ExecHandler, StartsAProcessAnewAfterWhatIsNoReply) {
  StartPython("reply(value if value else json.dumps({'value': os.getpid()}))");
  std::set<std::string> pids{*ValueOf("0")};
  for (const char* bad : {"\"hello\"", "\"{\\\"value\\\": 1\"", "\"[1]\"", "\"{}\"",
                          "\"{\\\"value\\\": 1, \\\"values\\\": []}\"", "\"{\\\"error\\\": 1}\"",
                          "\"{\\\"value_base64\\\": \\\"?\\\"}\""}) {
    const HandlerFailure failure = FailureOf(bad);
    EXPECT_EQ(failure.error_class, "exec_protocol") << bad;
    EXPECT_THAT(failure.text, StartsWith("the reply cannot be read: "));
    EXPECT_THAT(failure.shown, HasSubstr("goes to stderr"));
    EXPECT_TRUE(failure.retry);
    EXPECT_TRUE(pids.insert(*ValueOf("0")).second) << "the same process after " << bad;
  }
}

TEST_F(ExecHandler, EndsAProcessThatSpeaksUnasked) {
  StartPython("reply(json.dumps({'value': os.getpid()}) + '\\nhello')");
  const auto first = ValueOf("1");
  ASSERT_TRUE(Noted(1, "handler_exited"));
  EXPECT_THAT(
      recorder_.notes()[0],
      HasSubstr("was killed: it wrote a line of 5 bytes that nobody had asked for (print to "
                "stderr); started again in 100 ms"));
  EXPECT_NE(ValueOf("1"), first);
}

class ExecHandlerLate : public ExecHandler, public ::testing::WithParamInterface<const char*> {};

TEST_P(ExecHandlerLate, TextIsNotTakenForTheReplyToTheNextRecord) {
  // It says more when its reply has been read, and before it has the next record.
  const std::string gate = dir_.File("answered");  // opening it to read blocks until it is written
  ASSERT_EQ(mkfifo(gate.c_str(), 0600), 0);
  on_answer_ = [this, gate](const HandlerAnswer& answer) {
    if (answer.id != 1) return;
    const Fd open_gate(open(gate.c_str(), O_RDWR | O_CLOEXEC));
    EXPECT_TRUE(WaitUntil(10s, [&] { return Exists("said"); }));
    runner_->Call(MakeCall(2, {.value = "2"}));
  };
  StartPython(fmt::format(R"(reply(json.dumps({{'value': value}}))
if value == 1:
    open('{}').close()
    sys.stdout.write({})
    sys.stdout.flush()
    open('{}', 'w'))",
                          gate, GetParam(), dir_.File("said")));
  EXPECT_EQ(ValueOf("1"), "1");
  const HandlerResult result = AnswerTo(2).result;
  ASSERT_TRUE(result.has_value()) << result.error().text;
  EXPECT_EQ(result->front(), "2");
  EXPECT_THAT(recorder_.notes("handler_exited"),
              ElementsAre(HasSubstr("that nobody had asked for")));
}

INSTANTIATE_TEST_SUITE_P(WholeAndPart, ExecHandlerLate,
                         ::testing::Values(R"('{"value": 7}\n')", R"('{"value": 7')"));

TEST_F(ExecHandler, RefusesAReplyToAnotherRecord) {
  StartPython("reply(json.dumps({'record_id': value, 'value': os.getpid()}))");
  const auto first = ValueOf("\"o-1\"");
  EXPECT_EQ(ValueOf("\"o-1\""), first);
  for (const char* other : {"\"o-2\"", "\"\"", "7", "null"}) {
    const HandlerFailure failure = FailureOf(other);
    EXPECT_EQ(failure.error_class, "exec_protocol") << other;
    EXPECT_THAT(failure.text, HasSubstr("record_id"));
  }
  EXPECT_NE(ValueOf("\"o-1\""), first);
}

TEST_F(ExecHandler, FailsTheRecordOfAProcessThatDies) {
  StartPython(
      "if value == 1: raise KeyError('amount')\nif value: sys.exit(value)\n"
      "reply('{\"value\": 1}')");
  EXPECT_EQ(Told("3"), "exec, again: the process ended with exit code 3 before it replied");
  EXPECT_THAT(recorder_.notes("handler_exited"),
              ElementsAre(HasSubstr("ended with exit code 3; started again in 100 ms")));
  EXPECT_EQ(ValueOf("0"), "1");
  const HandlerFailure failure = FailureOf("1");
  EXPECT_EQ(failure.text,
            "the process ended with exit code 1 before it replied; on stderr it said: "
            "KeyError: 'amount'");
  EXPECT_EQ(failure.shown, "the process ended with exit code 1 before it replied");
}

TEST_F(ExecHandler, CountsAReplyThatWasGivenBeforeTheEnd) {
  StartPython("reply('{\"value\": 1}')\nos.kill(os.getpid(), 9)");
  EXPECT_EQ(ValueOf("1"), "1");
  EXPECT_EQ(ValueOf("1"), "1");
  EXPECT_THAT(recorder_.notes("handler_exited")[0], HasSubstr("by signal 9 (Killed)"));
}

TEST_F(ExecHandler, GivesARecordThatNoProcessHasReadToAnother) {
  // Each process ends while the record after its own is in its pipe.
  Start({.kind = ExecHandlerOptions{
             .command = {Script(std::string(kPrelude) + "import select\n"
                                                        "line = b''\n"
                                                        "while not line.endswith(b'\\n'):\n"
                                                        "    line += os.read(0, 1)\n"
                                                        "reply('{\"value\": %d}' % os.getpid())\n"
                                                        "select.select([0], [], [])\n"
                                                        "os.kill(os.getpid(), 9)\n")},
             .processes = 1}});
  const auto first = ValueOf("1");
  EXPECT_NE(ValueOf("1"), first);
}

TEST_F(ExecHandler, WaitsLongerEachTimeAProcessDies) {
  Start({.kind = ExecHandlerOptions{.command = {"sh", "-c", "exit 1"}, .processes = 1}});
  ASSERT_TRUE(Noted(4, "handler_exited"));
  const auto notes = recorder_.notes("handler_exited");
  EXPECT_THAT(notes[0], HasSubstr("in 100 ms"));
  EXPECT_THAT(notes[1], HasSubstr("in 200 ms"));
  EXPECT_THAT(notes[2], HasSubstr("in 400 ms"));
  EXPECT_THAT(notes[3], HasSubstr("in 800 ms"));
}

TEST_F(ExecHandler, TellsACallThatWaitsWhyNoProcessTakesIt) {
  // Whether the process has the record when it ends is for the kernel to say.
  Start({.kind = ExecHandlerOptions{.command = {"sh", "-c", "exit 3"}, .processes = 1}});
  for (int i = 1; i <= 3; ++i) {
    ASSERT_TRUE(Noted(i, "handler_exited"));
    const HandlerFailure failure = FailureOf("1");
    EXPECT_THAT(failure.shown, StartsWith("the process ended with exit code 3 before it "));
    EXPECT_TRUE(failure.retry);
  }
}

TEST_F(ExecHandler, TellsACallThatWaitsThatItsProgramIsGone) {
  const std::string program = Script(std::string(kPrelude) + "sys.exit(3)\n");
  Start({.kind = ExecHandlerOptions{.command = {program}, .processes = 1}});
  ASSERT_EQ(unlink(program.c_str()), 0);
  ASSERT_TRUE(Noted(2, "handler_exited"));
  const HandlerFailure failure = FailureOf("1");
  EXPECT_THAT(failure.shown, AllOf(HasSubstr("cannot run "), HasSubstr("No such file")));
  EXPECT_FALSE(failure.reached) << "its record is not to blame";
}

TEST_F(ExecHandler, LeavesNoChildOfAProcessThatOverrunsTheTimeoutOrEnds) {
  StartPython(
      fmt::format("if value:\n"
                  "    child = subprocess.Popen(['sleep', '1000'])\n"
                  "    with open('{0}.new', 'w') as file: file.write(str(child.pid))\n"
                  "    os.rename('{0}.new', '{0}')\n"
                  "    os._exit(3) if value == 3 else signal.pause()\n"
                  "reply('{{\"value\": 1}}')",
                  dir_.File("child")));
  const std::map<std::string, std::string> ways = {
      {"1", "timeout, again: no answer within 2000 ms"}, {"3", "exec, again: the process ended"}};
  for (const auto& [value, failure] : ways) {
    EXPECT_EQ(ValueOf("0"), "1");  // it is up
    EXPECT_THAT(Told({.value = value, .timeout = 2s}), StartsWith(failure));
    const int child = std::stoi(ReadFile(dir_.File("child")));
    EXPECT_TRUE(WaitUntil(10s, [&] {
      return ReadFile(fmt::format("/proc/{}/cmdline", child)).find("sleep") == std::string::npos;
    })) << value;
  }
  EXPECT_EQ(ValueOf("0"), "1");
  EXPECT_EQ(recorder_.handled(), 5);
}

TEST_F(ExecHandler, IsToldOfNoRecordWhoseLeaseHasEnded) {
  StartPython("reply(json.dumps({'value': value}))");
  EXPECT_EQ(ClassOf(Call({.value = "1", .valid_until = Instant()})), "cancelled");
  EXPECT_EQ(recorder_.handled(), 0);
  EXPECT_EQ(ValueOf("2"), "2");
}

TEST_F(ExecHandler, KillsTheProcessOfACallThatIsCancelled) {
  StartPython(
      fmt::format("if value:\n    open('{}', 'w')\n    signal.pause()\n"
                  "reply(json.dumps({{'value': os.getpid()}}))",
                  dir_.File("has it")));
  const auto before = ValueOf("0");
  const auto running = Call("1");
  const auto waiting = Call("1");
  ASSERT_TRUE(WaitUntil(10s, [&] { return Exists("has it"); }));
  Cancel(waiting);
  EXPECT_EQ(ClassOf(waiting), "cancelled");
  Cancel(running);
  EXPECT_EQ(ClassOf(running), "cancelled");
  EXPECT_NE(ValueOf("0"), before);
  EXPECT_EQ(recorder_.handled(), 3);
}

TEST_F(ExecHandler, WritesStderrIntoTheLog) {
  StartPython(
      "sys.stderr.write('one\\n\\ntwo\\x1b[0m' + 'x' * 100000 + '\\nlast')\n"
      "sys.stderr.flush()\nsys.exit(0)");
  EXPECT_EQ(FailureOf("1").error_class, "exec");
  const auto notes = recorder_.notes("handler_stderr");
  ASSERT_GE(notes.size(), 3u);
  EXPECT_EQ(notes.front(), "handler_stderr: one");
  EXPECT_THAT(notes[1], StartsWith("handler_stderr: two [0mxxx"));
  EXPECT_EQ(notes.back(), "handler_stderr: last");
}

TEST_F(ExecHandler, HasOneRecordInEachProcessAtATime) {
  // Opening it to read blocks until somebody opens it to write.
  const std::string gate = dir_.File("go");
  ASSERT_EQ(mkfifo(gate.c_str(), 0600), 0);
  StartPython(fmt::format("open('{0}/at-%s' % value, 'w')\n"
                          "open('{0}/go').close()\n"
                          "reply(json.dumps({{'value': os.getpid()}}))",
                          dir_.path().string()),
              3);
  std::vector<std::uint64_t> ids;
  for (int i = 0; i < 5; ++i) ids.push_back(Call(std::to_string(i)));
  ASSERT_TRUE(WaitUntil(10s, [&] { return Exists("at-0") && Exists("at-1") && Exists("at-2"); }));
  EXPECT_FALSE(Exists("at-3"));
  const Fd open_gate(open(gate.c_str(), O_RDWR | O_CLOEXEC));
  std::set<std::string> pids;
  for (const auto id : ids) pids.insert(*AnswerTo(id).result->front());
  EXPECT_THAT(pids, SizeIs(3));
}

TEST_F(ExecHandler, CarriesLinesOfManyMebibytes) {
  StartPython("reply(json.dumps({'value': value}))");
  const std::string large = '"' + std::string(15u << 20, 'x') + '"';
  EXPECT_EQ(ValueOf(large), large);
  EXPECT_THAT(Told('"' + std::string(16u << 20, 'x') + '"'), StartsWith("too_large, for good: "));
  EXPECT_EQ(ValueOf("1"), "1");
}

TEST_F(ExecHandler, RefusesAReplyOverSixteenMebibytes) {
  StartPython("reply(json.dumps({'value': 'x' * value}))");
  const HandlerFailure failure = FailureOf(std::to_string(17 << 20));
  EXPECT_EQ(failure.error_class, "too_large");
  EXPECT_EQ(failure.text, "the reply's line is larger than 16 MiB");
  EXPECT_EQ(ValueOf("1"), "\"x\"");
}

TEST_F(ExecHandler, ClosesStdinAtTheEndAndLetsTheProcessFinish) {
  const std::string text = std::string(kPrelude) +
                           "for line in sys.stdin: reply('{\"value\":1}')\n" +
                           fmt::format("open('{}', 'w')\n", dir_.File("finished"));
  Start({.kind = ExecHandlerOptions{.command = {Script(text)}, .processes = 1}});
  EXPECT_EQ(ValueOf("1"), "1");
  runner_->Stop();
  EXPECT_TRUE(Exists("finished"));
}

TEST_F(ExecHandler, KillsAtTheEndWhatDoesNotFinish) {
  Start({.kind = ExecHandlerOptions{.command = {"sh", "-c", "while :; do sleep 1000; done"}}});
  Call("1");
  const auto before = std::chrono::steady_clock::now();
  runner_->Stop();
  EXPECT_LT(std::chrono::steady_clock::now() - before, 10s);
  EXPECT_THAT(recorder_.answers(), IsEmpty());
}

TEST_F(ExecHandler, KnowsItsPipeline) {
  StartPython("reply(json.dumps({'value_text': os.environ['FENCEPOST_PIPELINE']}))");
  EXPECT_EQ(ValueOf("1"), "billing");
}

TEST_F(ExecHandler, RefusesToStartWithWhatCannotRun) {
  const auto error = [this](std::vector<std::string> command) {
    return StartError({.kind = ExecHandlerOptions{.command = std::move(command)}});
  };
  EXPECT_EQ(error({"no-such-program-anywhere"}),
            "handler.exec: no program no-such-program-anywhere in PATH; write its path, as in "
            "[./transform.py]");
  EXPECT_THAT(error({"/nowhere/at/all"}), HasSubstr("cannot run /nowhere/at/all: No such file"));
  EXPECT_THAT(error({dir_.Write("plain", "#!/bin/sh\n")}), HasSubstr("chmod +x"));
  EXPECT_THAT(error({Script("#!/no/such/interpreter\n")}),
              HasSubstr("the interpreter in its first line?"));
  EXPECT_THAT(error({}), HasSubstr("the command is empty"));
}

TEST_F(ExecHandler, RunsTheExampleOfTheReadme) {
  const std::string readme = ReadFile(testing::SourcePath("consumer/handlers/exec/README.md"));
  const std::string fence = "```python\n";
  const std::size_t from = readme.find(fence) + fence.size();
  ASSERT_GT(from, fence.size());
  const std::string program = readme.substr(from, readme.find("```\n", from) - from);
  const std::string module = testing::SourcePath("consumer/handlers/exec/python");
  const std::vector<std::string> command{"env", "PYTHONDONTWRITEBYTECODE=1", "PYTHONPATH=" + module,
                                         "python3", Script(program)};
  Start({.kind = ExecHandlerOptions{.command = command, .processes = 2}});
  EXPECT_EQ(ValueOf(R"({"amount": 12})"), R"({"order_id":"o-1","cents":1200})");
  EXPECT_EQ(Told(CallSpec{}), "bad_order, for good: a tombstone is no order");
  EXPECT_THAT(Told("no json"), StartsWith("bad_record, for good: the value is not valid JSON: "));
}

TEST(ExecProcess, DiesWithTheThreadThatStartedIt) {
  std::unique_ptr<ExecProcess> process;
  std::thread([&process] {
    const auto program = FindProgram("sleep");
    process = std::move(*ExecProcess::Start({.words = {*program, "1000"}, .environment = {}}));
  }).join();
  std::optional<std::string> ended;
  EXPECT_TRUE(WaitUntil(10s, [&] { return (ended = process->Ended()).has_value(); }));
  EXPECT_EQ(ended, "by signal 9 (Killed)");
}

// Without the signal of a pipe that nobody reads; the runner's thread blocks it.
class ExecInput : public ::testing::Test {
 protected:
  void SetUp() override { signal(SIGPIPE, SIG_IGN); }
  void TearDown() override { signal(SIGPIPE, SIG_DFL); }
};

// Runs `script` in a shell, sends it the lines, and waits for its end.
bool EndsUnread(const std::string& script, const std::vector<std::string>& lines) {
  const auto process = std::move(
      *ExecProcess::Start({.words = {*FindProgram("sh"), "-c", script}, .environment = {}}));
  for (const std::string& line : lines) process->Send(line);
  EXPECT_TRUE(WaitUntil(10s, [&] { return process->Ended().has_value(); }));
  return process->Unread();
}

TEST_F(ExecInput, KnowsWhetherAnyOfTheLastLineWasReadWhenItEnded) {
  EXPECT_FALSE(EndsUnread("read line", {"one\n"}));
  EXPECT_FALSE(EndsUnread("head -c 1 > /dev/null", {"one\n"}));
  EXPECT_TRUE(EndsUnread("read line", {"one\n", "two\n"}));
  EXPECT_TRUE(EndsUnread(":", {std::string(1'000'000, 'x') + "\n"}));  // more than a pipe holds
}

TEST_F(ExecInput, KnowsThatALineWasNotReadAfterItsInputWasClosed) {
  const auto process = std::move(*ExecProcess::Start(
      {.words = {*FindProgram("sh"), "-c", "exec 0<&-; echo closed; exec sleep 1000"},
       .environment = {"PATH=/usr/bin:/bin"}}));
  EXPECT_TRUE(
      WaitUntil(10s, [&] { return process->out().Read(), process->out().Next().has_value(); }));
  process->Send("one\n");
  process->Send("two\n");
  process->Kill();
  EXPECT_TRUE(WaitUntil(10s, [&] { return process->Ended().has_value(); }));
  EXPECT_TRUE(process->Unread());
}

}  // namespace
}  // namespace fencepost::consumer
