#include "metrics/status/status_page.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <vector>

#include "metrics/status/findings.h"
#include "metrics/status/html.h"

namespace fencepost::metrics {
namespace {

using namespace std::chrono_literals;
using consumer::Reason;
using consumer::ReasonCode;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

ShownPipeline Orders() {
  ShownPipeline shown;
  shown.status.pipeline = "orders";
  shown.status.ready = true;
  return shown;
}

ShownProcess Process() {
  ShownPipeline shown = Orders();
  shown.status.ready = false;
  shown.status.reasons = {{.code = ReasonCode::kNoQuorum},
                          {.code = consumer::ReasonCode::kKafkaJoining}};
  shown.status.uptime = 3'725'000ms;
  shown.status.partitions = {
      {"orders", 3, 1'234'567, 1'234'600, 33, 4, 1'234'567, true, "handling", 3400ms, 1, 5400ms}};
  shown.status.nodes = {
      {'a', "redis-a:6379", true, true, false, 0ms, 1500us, ""},
      {'b', "redis-b:6379", false, false, false, 0ms, std::nullopt, "connection refused"}};
  shown.status.last_errors = {{1'763'695'260'123ms, "redis_node_away", "<script>x</script> \xff"}};
  shown.counts["lock_rounds"] = 200;
  shown.counts["lock_contended"] = 5;
  shown.counts["lock_expired/waiting"] = 1;
  shown.counts["lock_expired/handling"] = 2;
  shown.counts["lock_expired/writing"] = 3;
  shown.counts["lock_expired/releasing"] = 4;
  shown.counts["invariant_violations"] = 1;
  shown.rate = 812.25;
  shown.per_second = {1, 5, 3};
  shown.settings = {{"lock.ttl", "10s"}, {"output.postgres.dsn", "(not shown)"}};
  return {.worker = "pod-1", .version = "1.2.3", .pipelines = {shown}};
}

TEST(StatusPage, SaysTheEssentialsWithoutAnyScript) {
  const std::string page = StatusPage(Process());
  for (const char* text : {"pod-1", "1.2.3", ">orders</span>/3", "1,234,567",
                           "1234567: handling, for 3 s; 1 finished record behind it", "812/s",
                           "lock: no quorum of lock nodes", "kafka: joining the group",
                           "redis-b:6379", "connection refused", "+1.5 ms", "2.5%", "not ready",
                           "1 h 2 min", "paused", "redis_node_away", "lock.ttl", "(not shown)"}) {
    EXPECT_THAT(page, HasSubstr(text));
  }
}

TEST(StatusPage, EscapesWhatCameFromElsewhere) {
  const std::string page = StatusPage(Process());
  EXPECT_THAT(page, HasSubstr("&lt;script&gt;x&lt;/script&gt; \xEF\xBF\xBD"));
  EXPECT_EQ(EscapeHtml("a&b\"c'd"), "a&amp;b&quot;c&#39;d");
}

TEST(StatusPage, LoadsNothingFromElsewhere) {
  const std::string page = StatusPage(Process());
  EXPECT_THAT(page, Not(HasSubstr("http://")));
  EXPECT_THAT(page, Not(HasSubstr("https://")));
  EXPECT_THAT(page, Not(HasSubstr("src=")));
}

// A script or a link looks for it.
TEST(StatusPage, HasEachIdOnce) {
  ShownProcess process = Process();
  process.pipelines.push_back(process.pipelines[0]);
  process.pipelines[1].status.pipeline = "mails";
  const std::string page = StatusPage(process);
  std::set<std::string> ids;
  for (std::size_t at = 0; (at = page.find(" id=\"", at)) != std::string::npos; ++at) {
    const std::string id = page.substr(at + 5, page.find('"', at + 5) - at - 5);
    EXPECT_TRUE(ids.insert(id).second) << id;
  }
  EXPECT_THAT(ids, ::testing::IsSupersetOf({"summary", "orders", "counts-orders", "mails"}));
}

TEST(StatusPage, PutsWhatIsWrongFirstWithWhatToDo) {
  const std::string page = StatusPage(Process());
  const auto summary = page.find("1 of 1 pipeline needs attention.");
  ASSERT_NE(summary, std::string::npos);
  EXPECT_LT(summary, page.find("<section"));
  EXPECT_LT(summary, page.find("Not ready: lock: no quorum of lock nodes"));
  EXPECT_LT(page.find("Runbook FencepostQuorumLost"), page.find("<section"));
}

TEST(StatusPage, SaysOnceWhatSeveralPipelinesHaveInCommon) {
  ShownPipeline shown = Orders();
  shown.status.nodes = {{'a', "r:1", false, false, false, 0ms, std::nullopt, ""}};
  ShownProcess process{.pipelines = {shown, shown}};
  process.pipelines[1].status.pipeline = "mails";
  const std::string page = StatusFragment(process);
  EXPECT_THAT(page, HasSubstr("<a href=\"#orders\">orders</a> <a href=\"#mails\">mails</a> "
                              "<b>Lock node a (r:1) is away.</b>"));
  EXPECT_EQ(page.find("is away."), page.rfind("is away."));
}

TEST(StatusPage, SaysThatNothingIsWrong) {
  ShownPipeline shown = Orders();
  EXPECT_THAT(StatusFragment({.pipelines = {shown}}),
              HasSubstr("1 pipeline is at work, nothing is wrong."));
}

TEST(StatusPage, ShowsOfVeryManyPartitionsThoseWithTheMostLag) {
  ShownPipeline shown = Orders();
  for (int i = 0; i < 1000; ++i) {
    consumer::PartitionStatus row;
    row.topic = "t";
    row.partition = i;
    row.lag = i;
    shown.status.partitions.push_back(row);
  }
  const std::string page = StatusFragment({.pipelines = {shown}});
  EXPECT_THAT(page, HasSubstr("The 24 with the most lag, of 1000"));
  EXPECT_THAT(page, HasSubstr(">t</span>/999<"));
  EXPECT_THAT(page, Not(HasSubstr("/975<")));
  EXPECT_LT(page.size(), 20'000U);
}

std::string WhatIsFound(const ShownPipeline& shown) {
  std::string text;
  for (const Finding& finding : FindingsOf(shown)) {
    text += std::to_string(static_cast<int>(finding.level)) + " " + finding.what + ": " +
            finding.todo + "\n";
  }
  return text;
}

TEST(Findings, SayWhatToDoAboutEachReasonNotToBeReady) {
  ShownPipeline shown;
  const std::initializer_list<std::pair<Reason, const char*>> cases = {
      {{.code = ReasonCode::kNoQuorum}, "FencepostQuorumLost"},
      {{.code = ReasonCode::kLockQuarantine, .span = 12s}, "the nodes count again"},
      {{.code = ReasonCode::kLockClock}, "clock of this host"},
      {{.code = ReasonCode::kLockTtl, .span = 3s, .limit = 2s},
       "The lock nodes are well: lower lock.ttl"},
      {{.code = ReasonCode::kLockStore, .detail = "lock node c: its sentinel is nonsense"},
       "Correct what the reason"},
      {{.code = ReasonCode::kLockNodes}, "Correct what the reason"},
      {{.code = ReasonCode::kKafka, .detail = "brokers are away"}, "brokers"},
      {{.code = ReasonCode::kOutput, .detail = "the database is away"}, "Restore the output"},
      {{.code = ReasonCode::kOutput, .detail = "no quorum: no such relation"},
       "Restore the output"},
      {{.code = ReasonCode::kStopping, .detail = "output: kafka: fenced"}, "start it again"},
      {{.code = ReasonCode::kDeadLetters, .detail = "orders.dead: no such topic"},
       "FencepostDeadLettersFailing"},
      {{.code = ReasonCode::kAllRefused, .detail = "every record is refused (10 in a row): …"},
       "FencepostPipelineStalled"},
      {{.code = ReasonCode::kDraining}, "It is stopping"},
      {{.code = ReasonCode::kStalled, .detail = "orders/0/17: handling for 312 s"},
       "FencepostRecordStuck"}};
  for (const auto& [reason, todo] : cases) {
    shown.status.reasons = {reason};
    EXPECT_THAT(WhatIsFound(shown), HasSubstr(todo)) << Sentence(reason);
  }
}

TEST(Findings, DoNotCallAPipelineNotReadyForARemark) {
  ShownPipeline shown;
  for (const ReasonCode code :
       {ReasonCode::kStalled, ReasonCode::kDeadLettersRemark, ReasonCode::kKafkaRemark}) {
    shown.status.reasons = {{.code = code, .detail = "the remark"}};
    EXPECT_THAT(WhatIsFound(shown), AllOf(HasSubstr(": the remark"), Not(HasSubstr("Not ready"))));
  }
}

TEST(Findings, KnowAPipelineThatStandsStillThoughRecordsWait) {
  ShownPipeline shown = Orders();
  shown.status.partitions = {
      {"orders", 3, 7, 40, 33, 4, 7, false, "waiting for the handler", 3400ms, 0, 3400ms}};
  shown.per_second.assign(40, 0.0);
  EXPECT_THAT(WhatIsFound(shown), HasSubstr("2 No record was finished in the last 30 s, though 33 "
                                            "wait: The oldest record is waiting for the handler: "
                                            "`fencepost explain FILE orders 3 7`"));
  shown.per_second.back() = 1;
  EXPECT_EQ(WhatIsFound(shown), "");
  shown.per_second.assign(10, 0.0);
  EXPECT_EQ(WhatIsFound(shown), "") << "too soon to say";
}

TEST(Findings, NameNodesThatAreAwayQuarantinedRefusedOrOfAnotherTime) {
  ShownPipeline shown = Orders();
  shown.lock_ttl = 10s;
  shown.status.nodes = {{'a', "r:1", true, true, false, 0ms, 999ms, ""},
                        {'b', "r:2", true, true, false, 0ms, -1001ms, ""},
                        {'c', "r:3", false, false, false, 0ms, std::nullopt, "refused"},
                        {'d', "r:4", true, true, true, 12s, 0ms, ""},
                        {'e', "r:5", true, false, false, 0ms, 0ms, "another store"}};
  const std::string found = WhatIsFound(shown);
  EXPECT_THAT(found, Not(HasSubstr("r:1")));
  EXPECT_THAT(found, HasSubstr("1 The clocks of Lock node b (r:2) and of this host are -1.0 s"));
  EXPECT_THAT(found, HasSubstr("1 Lock node c (r:3) is away: refused: Bring it back. Runbook"));
  EXPECT_THAT(found, HasSubstr("0 Lock node d (r:4) was restarted or wiped and counts again in "
                               "12 s"));
  EXPECT_THAT(found, HasSubstr("1 Lock node e (r:5) takes no part: another store"));
}

TEST(Findings, SayOfANodeThatIsAwayWhatIsLostAndWhatToDo) {
  ShownPipeline shown = Orders();
  shown.status.nodes = {{'a', "r:1", true, true, false, 0ms, std::nullopt, ""},
                        {'b', "r:2", true, true, false, 0ms, std::nullopt, ""},
                        {'c', "r:3", false, false, false, 0ms, std::nullopt, ""}};
  using locking::UnavailableReason;
  for (const auto& [away, todo] : std::initializer_list<std::pair<UnavailableReason, const char*>>{
           {UnavailableReason::kRefused, "Start its redis-server"},
           {UnavailableReason::kLogin, "Correct the login"},
           {UnavailableReason::kNoRight, "ACL user"},
           {UnavailableReason::kLoading, "Wait: it loads"},
           {UnavailableReason::kReplica, "independent primary"},
           {UnavailableReason::kTimeout, "answers PING"},
           {UnavailableReason::kNameTimeout, "the DNS does"},
           {UnavailableReason::kNameUnknown, "Correct the name"},
           {UnavailableReason::kTls, "certificate"},
           {UnavailableReason::kNotYet, "Bring it back"},
           {UnavailableReason::kOther, "Bring it back"}}) {
    shown.status.nodes[2].away = away;
    shown.status.nodes[2].problem = "the problem";
    const std::string found = WhatIsFound(shown);
    EXPECT_THAT(found, HasSubstr("is away: the problem: Nothing is lost: 2 of 3 nodes count, 2 "
                                 "are enough. "));
    EXPECT_THAT(found, HasSubstr(todo));
  }
}

TEST(Findings, WeighWhatHappenedSinceTheStart) {
  ShownPipeline shown = Orders();
  shown.counts["lock_acquired"] = 10'000;
  shown.counts["lock_expired/waiting"] = 0;
  shown.counts["lock_expired/handling"] = 9;
  shown.counts["lock_expired/writing"] = 0;
  shown.counts["lock_expired/releasing"] = 1;
  EXPECT_EQ(WhatIsFound(shown), "");
  shown.counts["lock_expired/waiting"] = 0;
  shown.counts["lock_expired/handling"] = 9;
  shown.counts["lock_expired/writing"] = 2;
  shown.counts["lock_expired/releasing"] = 0;
  shown.counts["dead_lettered"] = 1;
  shown.counts["invariant_violations"] = 2;
  const std::string found = WhatIsFound(shown);
  EXPECT_TRUE(found.starts_with("2 Invariants were violated 2 times")) << found;
  EXPECT_THAT(found, HasSubstr("0 11 of 10,000 leases ran out"));
  EXPECT_THAT(found, HasSubstr("0 1 record became dead letters since the start"));
}

TEST(Findings, WarnOfDeadLettersAndIdConflictsWhileNewOnesCome) {
  ShownPipeline shown = Orders();
  shown.counts["dead_lettered"] = 1'084;
  shown.new_dead_letters = 78;
  shown.counts["id_conflicts"] = 3;
  shown.new_conflicts = 1;
  EXPECT_THAT(
      WhatIsFound(shown),
      AllOf(HasSubstr("1 78 records became dead letters in the last minute, 1,084 since the "
                      "start: `fencepost dlq list FILE` says why. Runbook "
                      "FencepostDeadLettersNew."),
            HasSubstr("1 1 record had an earlier record's id and other content in the last "
                      "minute, 3 since the start: ")));
  EXPECT_THAT(StatusFragment({.pipelines = {shown}}),
              HasSubstr("1 of 1 pipeline needs attention."));
  shown.new_dead_letters = shown.new_conflicts = 0;
  EXPECT_THAT(WhatIsFound(shown),
              AllOf(HasSubstr("0 1,084 records became dead letters since the start"),
                    HasSubstr("0 3 records had an earlier record's id")));
  EXPECT_THAT(StatusFragment({.pipelines = {shown}}), HasSubstr("nothing is wrong"));
}

TEST(StatusPage, ShowsTheNewestEventsAndFoldsTheOthersAway) {
  ShownPipeline shown = Orders();
  EXPECT_THAT(StatusFragment({.pipelines = {shown}}), HasSubstr("None since the start."));
  for (int i = 0; i < 20; ++i) {
    shown.status.last_errors.push_back(
        {i * 1000ms, "e", "text " + std::to_string(i),
         i % 2 == 0 ? locking::Severity::kWarn : locking::Severity::kError,
         static_cast<std::uint64_t>(i), 0ms});
  }
  const std::string page = StatusFragment({.pipelines = {shown}});
  EXPECT_LT(page.find("text 19 <b>19 times</b> since 1970-01-01 00:00:00"), page.find("text 18"));
  EXPECT_LT(page.find("text 14"), page.find("older ones: 14"));
  EXPECT_LT(page.find("older ones: 14"), page.find("text 13"));
  EXPECT_THAT(page, HasSubstr("<span class=\"tag bad\">error</span>"));
  EXPECT_THAT(page, HasSubstr("<span class=\"tag warn\">warning</span>"));
}

TEST(StatusPage, SaysHowManyPartitionsArePaused) {
  ShownPipeline shown = Orders();
  shown.status.partitions.resize(3);
  EXPECT_THAT(StatusFragment({.pipelines = {shown}}), Not(HasSubstr("paused")));
  shown.status.partitions[1].paused = true;
  EXPECT_THAT(StatusFragment({.pipelines = {shown}}), HasSubstr("1 of 3 paused"));
}

// They post only by the script of the page, to paths of its own.
TEST(StatusPage, HasButtonsForThoseWhoMayPressThem) {
  using consumer::ControlAccess;
  EXPECT_THAT(StatusPage(Process()), Not(HasSubstr("<button")));
  const std::string loopback = StatusPage(Process(), {ControlAccess::kLoopback, "0123abcd"});
  for (const char* text :
       {"data-page=\"0123abcd\"", "<button data-path=\"pipelines/orders/pause\">Pause orders<",
        "<button data-path=\"pipelines/orders/resume\">Resume orders<",
        "data-path=\"pipelines/orders/explain\" data-body=\"_record\" data-once>Explain in orders<",
        "<button data-path=\"log/level\" data-body=\"_level\">Set log level<"}) {
    EXPECT_THAT(loopback, HasSubstr(text));
  }
  EXPECT_THAT(loopback, AllOf(Not(HasSubstr("<form")), Not(HasSubstr("type=\"password\""))));
  EXPECT_THAT(StatusPage(Process(), {ControlAccess::kToken, "0123abcd"}),
              HasSubstr("<input id=\"_token\" type=\"password\" autocomplete=\"off\">"));
}

TEST(StatusPage, SaysThatItStartsBeforeThereIsAPipeline) {
  EXPECT_THAT(StatusPage({}), HasSubstr("Starting."));
}

}  // namespace
}  // namespace fencepost::metrics
