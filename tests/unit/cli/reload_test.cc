// Which changes of a file a running worker takes up, and what is said of the others.
#include "consumer/cli/run/reload.h"

#include <gtest/gtest.h>

#include "config/loader.h"

namespace fencepost::cli {
namespace {

using namespace std::string_literals;

using consumer::PipelineOptions;

constexpr const char* kHttp = "handler: {http: {url: http://service}}\n";
constexpr const char* kExec = "handler: {exec: {command: [./a]}}\n";

PipelineOptions Loaded(const std::string& more) {
  const auto loaded = config::LoadText(
      "version: 1\nname: a\nguarantee: at-least-once\nkafka: {brokers: [\"k:1\"], topics: [t], "
      "start_from: latest}\nrecord_id: position\nlock: {redis: {nodes: [\"r:1\"]}}\noutput: "
      "{stdout: {columns: {v: value}}}\n" +
          more,
      "a.yaml", config::Environment::Process());
  EXPECT_TRUE(loaded.options) << more;
  return loaded.options.value_or(PipelineOptions());
}

struct Change {
  std::string before, after;
  const char* text;
  // Of the worker then.
  int concurrency = 64;
  double calls_per_second = 0;
  int attempts = 5;
  const char* level = "info";
};

TEST(Reload, AppliesWhatItSaysAndNothingElse) {
  const std::string http = kHttp;
  const std::string exec = kExec;
  const std::string rate = "handler: {http: {url: http://service, rate_limit: 5}}\n";
  const std::string calls = "processing: {concurrency: 8}\n";
  const std::string retry = "retry: {attempts: 6}\n";
  const Change changes[] = {
      {http, http, "nothing has changed"},
      {http, http + retry, "retry.attempts is applied", 64, 0, 6},
      {http + retry, http, "retry.attempts is applied"},
      {http, http + calls, "processing.concurrency is applied", 8},
      {http, rate, "handler.http.rate_limit is applied", 64, 5},
      {rate, http, "handler.http.rate_limit is applied"},
      {http, http + "observe: {log: {level: debug}}\n", "observe.log.level is applied", 64, 0, 5,
       "debug"},
      {http, rate + calls + retry,
       "processing.concurrency, handler.http.rate_limit, retry.attempts are applied", 8, 5, 6},
      {exec, exec + calls, "processing.concurrency needs a restart"},
      {exec, exec + calls + retry,
       "retry.attempts is applied; processing.concurrency needs a restart", 64, 0, 6},
      {http + retry, http + calls + "shutdown_timeout: 30s\n",
       "processing.concurrency, retry.attempts are applied; shutdown_timeout needs a restart", 8},
      // A rate and a number of calls that are meant for another handler.
      {rate, exec + calls + retry,
       "retry.attempts is applied; processing.concurrency, handler.http, handler.exec need a "
       "restart",
       64, 5, 6},
      {exec, rate + calls + retry,
       "retry.attempts is applied; processing.concurrency, handler.http, handler.exec need a "
       "restart",
       64, 0, 6},
      {http, "", "handler.http needs a restart"},
      {http, "handler: {http: {url: http://service, result: keep}}\n",
       "handler.http.result needs a restart"},
      {http, "handler: {http: {url: http://service, result: {merge_into: /a}}}\n",
       "handler.http.result.merge_into needs a restart"},
      {"handler: {jq: .}\n", "", "handler.jq needs a restart"},
      {http, "handler: {http: {url: http://service, retry_on: []}}\n",
       "handler.http.retry_on needs a restart"},
      {http, http + "dead_letter: {topic: dead}\n", "dead_letter needs a restart"},
      // Secrets: by their values, which are not told.
      {"handler: {http: {url: http://service, headers: {A: old}}}\n",
       "handler: {http: {url: http://service, headers: {A: new}}}\n",
       "handler.http.headers needs a restart"},
      {"observe: {control: token, control_token: old}\n",
       "observe: {control: token, control_token: new}\n", "observe.control_token needs a restart"},
      {"observe: {traces: {endpoint: http://a, headers: {A: old}}}\n",
       "observe: {traces: {endpoint: http://b, headers: {A: new}}}\n",
       "observe.traces.endpoint, observe.traces.headers need a restart"},
  };
  for (const Change& change : changes) {
    SCOPED_TRACE(change.before + change.after);
    PipelineOptions running = Loaded(change.before);
    const PipelineOptions fresh = Loaded(change.after);
    const Changes found = ChangesOf(running, fresh, true);
    EXPECT_EQ(found.Text(), change.text);
    TakeOver(found, fresh, running);
    const consumer::Tuning tuning = TuningOf(running);
    EXPECT_EQ(tuning.concurrency, change.concurrency);
    EXPECT_EQ(tuning.calls_per_second, change.calls_per_second);
    EXPECT_EQ(tuning.retry.attempts, change.attempts);
    EXPECT_EQ(running.observe.log_level, change.level);
    const Changes left = ChangesOf(running, fresh, true);
    EXPECT_TRUE(left.applied.empty()) << left.Text();
    EXPECT_EQ(left.refused, found.refused) << "what needs a restart still does";
    EXPECT_EQ(left.Event(), left.Whole() ? "reloaded"s : "reload_refused"s);
    EXPECT_TRUE(found.applied.empty() || found.Event() == "reloaded"s);
  }
}

// What the process has once, it has from its first file.
TEST(Reload, OfAnotherFileThanTheFirstLeavesWhatIsOfTheProcess) {
  const PipelineOptions before = Loaded(kHttp);
  const PipelineOptions after = Loaded(
      std::string(kHttp) + "observe: {log: {level: debug, format: text}}\nretry: {attempts: 6}\n");
  EXPECT_EQ(ChangesOf(before, after, false).Text(),
            "retry.attempts is applied; observe.log.level, observe.log.format count in the first "
            "file only");
  EXPECT_EQ(ChangesOf(before, after, true).Text(),
            "retry.attempts, observe.log.level are applied; observe.log.format needs a restart");
}

}  // namespace
}  // namespace fencepost::cli
