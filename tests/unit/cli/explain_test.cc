// Facts of a record → what happened, and what will happen next.
#include <functional>

#include <fmt/format.h>
#include <gmock/gmock.h>

#include "consumer/cli/explain/explain_words.h"
#include "consumer/cli/shared/moments.h"
#include "consumer/flow/ports/retry.h"
#include "tests/unit/cli/letters.h"

namespace fencepost::cli {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

constexpr WallTime kNow{Millis(1793700000000)};  // 2026-11-03T10:00:00Z
const locking::Token kToken = locking::Token::AtWall(kNow - Millis(1000));
const Error kAway{"kafka_unreachable", "no broker answers", "127.0.0.1:9092", ""};

NodeFacts Node(NodeState state, Millis rest = Millis(0)) {
  NodeFacts node;
  node.state = state;
  node.rest = rest;
  node.crc = 0xabc;
  node.address = "redis:6379";
  if (state != NodeState::kNothing && state != NodeState::kUnreachable) node.token = kToken;
  if (state == NodeState::kUnreachable) node.problem = "no connection";
  return node;
}

// orders/3/1042, id o-17, of a partition that holds 1000 to 1999; the group is at 1042; three
// nodes know nothing, nor does the ledger, and there is no dead letter.
Facts Plain() {
  Facts facts;
  consumer::PipelineOptions& options = facts.options;
  options.kafka.group = "billing";
  options.identity.record_id.front().kind = consumer::Selector::Kind::kJson;
  options.output = consumer::PostgresOptions();
  options.on_id_conflict = options.on_bad_record = consumer::OnBad::kDeadLetter;
  options.dead_letter.emplace().topic = "orders.dead";
  facts.now = kNow;
  facts.position = Position{{"orders", 3}, 1042};
  facts.range = consumer::PartitionRange{{"orders", 3}, 1000, 2000};
  facts.committed = std::optional<consumer::Offset>(1042);
  consumer::TopicRecord record{{"orders", 3}, {}};
  record.record.timestamp = (kNow - Millis(7'200'000)).time_since_epoch();
  record.record.key = "customer-17";
  record.record.value = R"({"order_id":"o-17"})";
  facts.record = std::optional<consumer::TopicRecord>(record);
  facts.id = "o-17";
  facts.crc = 0xabc;
  facts.lock = "fencepost:{orders}:o-17";
  for (int i = 0; i < 3; ++i) facts.nodes.push_back(Node(NodeState::kNothing));
  facts.row = std::optional<consumer::LedgerEntry>();
  facts.letters = std::vector<StoredLetter>();
  return facts;
}

Facts WithNodes(const std::vector<NodeFacts>& nodes, consumer::Offset committed = 1042) {
  Facts facts = Plain();
  facts.nodes = nodes;
  facts.committed = std::optional<consumer::Offset>(committed);
  return facts;
}

Facts WithRow(const std::string& source, locking::ContentCrc crc, consumer::Offset committed) {
  Facts facts = Plain();
  facts.committed = std::optional<consumer::Offset>(committed);
  facts.row = std::optional<consumer::LedgerEntry>(
      consumer::LedgerEntry{.token = kToken,
                            .crc = crc,
                            .worker = "worker-2",
                            .source = source,
                            .completed_at = "2026-11-03T09:00:00.000Z"});
  return facts;
}

Facts WithLetter(consumer::Offset committed) {
  Facts facts = Plain();
  facts.committed = std::optional<consumer::Offset>(committed);
  facts.letters = std::vector<StoredLetter>{PlantedLetter().Read()};
  return facts;
}

void Expect(const Facts& facts, const std::string& code, const std::string& happened,
            const std::string& next) {
  const Verdict verdict = Judge(facts);
  EXPECT_EQ(verdict.code, code);
  EXPECT_THAT(verdict.happened, HasSubstr(happened));
  EXPECT_THAT(verdict.next, HasSubstr(next));
}

Facts Changed(Facts facts, const std::function<void(Facts&)>& change) {
  change(facts);
  return facts;
}
// At this offset there is no record.
Facts Without(consumer::Offset offset, consumer::Offset committed = 1042) {
  return Changed(WithNodes(Plain().nodes, committed), [&](Facts& facts) {
    facts.position->offset = offset;
    facts.record = std::optional<consumer::TopicRecord>();
    facts.id.clear();
  });
}
// Without a ledger.
Facts Marked(const std::vector<NodeFacts>& nodes, const consumer::OutputOptions& output) {
  return Changed(WithNodes(nodes, 1043), [&](Facts& facts) {
    facts.row.reset();
    facts.options.output = output;
  });
}

TEST(Explain, JudgesWhatHappenedToARecordAndWhatWillHappenNext) {
  using consumer::OnBad;
  const auto held = [](Millis rest = Millis(2500)) { return Node(NodeState::kHeld, rest); };
  const NodeFacts nothing = Node(NodeState::kNothing);
  const NodeFacts done = Node(NodeState::kDone, Millis(252'000));
  NodeFacts other = held();
  other.token = locking::Token(kToken.value() + 1);
  const auto younger = [](Facts& f) {
    auto record = **f.record;
    record->record.timestamp = kNow.time_since_epoch();
    f.record = std::move(record);
  };
  const auto unwritten = [](Facts& f) {
    auto row = **f.row;
    row->token = {};
    f.row = std::move(row);
  };
  const auto by_position = [](Facts& f) {
    f.options.identity.record_id.front().kind = consumer::Selector::Kind::kPosition;
  };
  const auto handled = [](Facts& f) { f.options.handler.kind = consumer::JqHandlerOptions{"."}; };
  const auto left_out = [](Facts& f) { f.filtered = "json:/a = b does not hold"; };
  const auto filtered = [&](Facts& f) {
    handled(f);
    (*f.row)->value().token = locking::Token();
  };
  const auto stops = [](Facts& f) {
    f.options.on_id_conflict = f.options.on_bad_record = OnBad::kStop;
  };
  const auto no_id = [](Facts& f) {
    f.id.clear();
    f.no_id = "no record id: json:/order_id is null";
  };
  const auto no_row = [](Facts& f) { f.no_row = "column amount from json:/amount: finds nothing"; };
  const auto failing = [](Facts facts) {
    facts.failing = {.offset = facts.position->offset,
                     .attempts = 7,
                     .alone = Millis(60'000),
                     .last = facts.now.time_since_epoch() - Millis(30'000),
                     .why = "500"};
    return facts;
  };
  const auto unavailable = [](Facts& f) { f.unavailable = true; };
  const auto refused = [](Facts& f) { f.failing->why = consumer::kRefusedForOthers; };
  const auto makes = [](bool rows) {
    return [rows](Facts& f) {
      f.options.handler.kind = consumer::JqHandlerOptions{"."};
      f.makes_rows = rows;
    };
  };
  const auto null_skipped = [&](Facts& f) {
    makes(false)(f);
    f.null_value = true;
  };
  const auto answers = [&](const char* status) {
    return [status](Facts& f) {
      f.options.handler.kind = consumer::HttpHandlerOptions();
      f.failing->why = status;
    };
  };
  const auto first_fails = [](Facts& f) {
    f.first_fails = {.offset = 1040,
                     .attempts = 2,
                     .last = f.now.time_since_epoch() - Millis(30'000),
                     .why = "500"};
  };
  const auto by_order = [](consumer::Order order) {
    return [order](Facts& f) { f.options.processing.order = order; };
  };
  const auto rowless = [](Facts& f) {
    f.row = tl::unexpected(Error{"output_unavailable", "connection refused", "db:5432", ""});
  };
  const auto buried = [](Facts& f) { f.letters = WithLetter(1043).letters; };
  const auto takes_replay_ids = [](Facts& f) { f.options.identity.accept_replay_ids = true; };
  const auto calls = [](Facts& f) { f.options.handler.kind = consumer::HttpHandlerOptions(); };
  const auto of_other = [](Facts& f) { f.crc = 0xdef; };
  const Facts passed = WithNodes(Plain().nodes, 1500);
  struct Row {
    Facts facts;
    const char *code, *happened, *next;
  };
  const Row rows[] = {
      {Plain(), "waiting", "Nothing yet", "It is the next one of its partition"},
      {Plain(), "waiting", "", "a worker takes it up at once, or once one runs"},
      {WithNodes(Plain().nodes, 1040), "waiting", "Nothing yet",
       "the group's committed offset is 2 before it"},
      {Changed(Plain(), [](Facts& f) { f.committed = std::optional<consumer::Offset>(); }),
       "waiting", "the group has committed nothing", "start_from: earliest"},
      {Changed(Plain(),
               [](Facts& f) {
                 f.committed = std::optional<consumer::Offset>();
                 f.options.kafka.start_from = consumer::StartFrom::kLatest;
               }),
       "waiting", "the group has committed nothing", "this record is not read"},
      // 6.4 s after the seventh failure; 14 of 15 minutes are left.
      {failing(Plain()), "waiting",
       "Its handler has failed 7 times, last at 2026-11-03T09:59:30.000Z (500).",
       "The next attempt is due by 2026-11-03T09:59:36.400Z. If only this record fails, it is "
       "given up after 5 attempts and 15 min of that, at 2026-11-03T10:13:30.000Z at the soonest: "
       "then it becomes a dead letter."},
      {Changed(failing(Plain()), [](Facts& f) { f.options.dead_letter.reset(); }), "waiting", "",
       "then it ends the worker with exit code 1 (no dead_letter section)"},
      {Changed(failing(Plain()), unavailable), "waiting", "Its handler has failed 7 times",
       "The handler's service counted as unavailable: the worker makes one call at a time until "
       "one succeeds, and gives no record up meanwhile; its /ready says why."},
      {Changed(failing(Plain()),
               [](Facts& f) {
                 f.unavailable = true;
                 f.failing->attempts = 0;
                 f.failing->why = "connection";
               }),
       "waiting", "Its handler was not reached, last at 2026-11-03T09:59:30.000Z (connection)",
       "unavailable"},
      // Answers about the caller are about the record only while others succeed.
      {Changed(failing(Plain()), answers("403")), "waiting", "(403)",
       "The next attempt is due by 2026-11-03T09:59:36.400Z. While the service takes others, it is "
       "given up after 5 attempts and 15 min of that, at 2026-11-03T10:13:30.000Z at the soonest: "
       "then it becomes a dead letter."},
      {Changed(failing(Plain()), answers("302")), "waiting", "", "While the service takes others"},
      {Changed(Changed(failing(Plain()), answers("403")),
               [](Facts& f) { f.options.retry.never = {"403"}; }),
       "waiting", "", "retry.never names 403: by the same answer it becomes a dead letter."},
      {Changed(failing(Plain()), answers("500")), "waiting", "", "it is given up after 5 attempts"},
      {Changed(failing(Plain()), refused), "waiting",
       "Its row was refused by the output, last at 2026-11-03T09:59:30.000Z: it breaks a unique or "
       "foreign key. Its worker's /status, and its log at the event row_refused, name the table "
       "and the constraint.",
       "It is written again for about a minute, since another record may mend that: then it "
       "becomes a dead letter."},
      {Changed(Changed(WithNodes({held(), held(), held()}, 1040), first_fails),
               [](Facts& f) { f.first_fails->why = consumer::kRefusedForOthers; }),
       "in_progress",
       "The row of the partition's first unfinished record, orders/3/1040, was refused by the "
       "output, last at 2026-11-03T09:59:30.000Z",
       ""},
      {Changed(failing(Plain()), [](Facts& f) { f.failing->attempts = 0; }), "waiting",
       "was not reached", "It is tried again until the handler is reached."},
      {failing(WithNodes({held(), held(), held()})), "in_progress",
       "Its handler has failed 7 times", "takes over within 2 s. The next attempt is due by"},
      {Changed(WithNodes(Plain().nodes, 1040), [](Facts& f) { f.others_fail = 3; }), "waiting", "",
       "is 2 before it. The handler fails for 3 of the partition's records."},
      {Changed(WithNodes({held(), held(), held()}, 1040), first_fails), "in_progress",
       "is being processed, or waits in its order behind an earlier record of its key. The "
       "handler of the partition's first unfinished record, orders/3/1040, has failed 2 times, "
       "last at 2026-11-03T09:59:30.000Z (500).",
       ""},
      {Changed(WithNodes({held(), held(), held()}, 1040), by_order(consumer::Order::kPartition)),
       "in_progress", "behind an earlier record of its partition.", ""},
      {Changed(WithNodes({held(), held(), held()}, 1040), by_order(consumer::Order::kNone)),
       "in_progress", "with its id, is being processed.", ""},
      {Changed(WithNodes({held(), held(), held()}), rowless), "in_progress", "",
       "nothing is written until the workers can reach it"},
      {Changed(Plain(), rowless), "unknown", "The ledger could not be asked",
       "The ledger's database could not be asked: nothing is written until the workers can reach "
       "it. Ask again"},
      {WithNodes({held(), held(Millis(2400)), Node(NodeState::kUnreachable)}), "in_progress",
       "A worker holds its lock on 2 of 3 lock nodes, under the token drawn "
       "2026-11-03T09:59:59.000Z",
       "another one takes over within 2 s"},
      {WithNodes({held(), nothing, nothing}), "locking", "no majority (2 are needed)",
       "until a majority grants it"},
      {WithNodes({held(), other, nothing}), "locking", "1 of 3 lock nodes hold",
       "until a majority grants it"},
      {WithNodes({held(Millis(0)), held(Millis(0)), held(Millis(0))}), "takeover",
       "past its deadline (token drawn 2026-11-03T09:59:59.000Z)", "takes the lock over"},
      {WithRow("orders/3/1042", 0xabc, 1043), "done",
       "committed at 2026-11-03T09:00:00.000Z by worker worker-2",
       "kept for ever (no ledger.keep)"},
      {WithRow("orders/3/1042", 0xabc, 1042), "done", "committed at",
       "The group's offset passes it once"},
      {Changed(WithRow("orders/3/1042", 0xabc, 1043), by_position), "done", "committed at",
       "its partition's ledger row is there, which does not"},
      {Changed(Changed(WithRow("orders/3/1042", 0xabc, 1043), by_position), younger), "done",
       "But the record is younger than that: if the topic was made again since, it is not done",
       ""},
      {Changed(WithRow("orders/1/5", 0xabc, 1043), by_position), "replayed",
       "It is the replay of orders/1/5, which is done: by this replay, by another one, or by "
       "itself.",
       "Nothing."},
      {Changed(Changed(WithRow("orders/1/5", 0xabc, 1043), by_position), unwritten),
       "dead_lettered", "It is the replay of orders/1/5, which is still a dead letter",
       "fencepost explain FILE orders 1 5 says where its letter is"},
      {WithRow("orders/1/5", 0xabc, 1043), "duplicate",
       "Another record with the same id and the same content took effect: orders/1/5",
       "it was skipped"},
      {WithRow("orders/1/5", 0xabc, 1042), "duplicate", "orders/1/5", "skips it"},
      {WithRow("orders/1/5", 0xdef, 1042), "id_conflict", "other content (from orders/1/5",
       "on_id_conflict: dead_letter"},
      {WithRow("orders/1/5", 0xdef, 1043), "id_conflict", "This record has no effect",
       "the offset is past it (on_id_conflict: dead_letter)"},
      {Changed(WithRow("orders/1/5", 0xdef, 1042), stops), "id_conflict", "",
       "stops, with this explanation"},
      {Changed(WithRow("orders/1/5", 0xdef, 1043), buried), "id_conflict", "",
       "--as-new-id --execute sends it back all the same only with kafka.accept_replay_ids: true; "
       "without "
       "it, as now, the replay has the same id and conflicts again."},
      {Changed(Changed(WithRow("orders/1/5", 0xdef, 1043), buried), takes_replay_ids),
       "id_conflict", "", "sends it back all the same, under a new id."},
      {Changed(WithRow("orders/3/1042", 0xdef, 1042), by_position), "id_conflict",
       "Was the topic recreated?", "stops"},
      // What `when` leaves out now.
      {Changed(Plain(), left_out), "filtered",
       "Filtered: json:/a = b does not hold (when). It has no effect.", "passes it once"},
      {Changed(WithRow("orders/1/5", 0xabc, 1043), left_out), "filtered",
       "has no effect, unless `when` was another one when a worker read it.", "Nothing."},
      {Changed(Changed(WithRow("orders/3/1042", 0xabc, 1043), by_position), left_out), "filtered",
       "unless `when` was another one", "Nothing."},
      {Changed(WithRow("orders/3/1042", 0xabc, 1043), left_out), "done", "Done: its effect", ""},
      {Changed(Changed(Plain(), left_out), buried), "dead_lettered", "", ""},
      // Where nothing was written.
      {Changed(WithRow("orders/3/1042", 0xabc, 1043), filtered), "no_output",
       "Done: the handler returned no row, so nothing was written for it", "one of other content"},
      {Changed(WithRow("orders/1/5", 0xabc, 1043), filtered), "no_output", "returned no row", ""},
      {Changed(WithRow("orders/1/5", 0xdef, 1043), filtered), "no_output",
       "the ledger's row of its id is of another record (orders/1/5)", ""},
      {Changed(WithRow("orders/1/5", 0xdef, 1042), filtered), "waiting", "Nothing yet", ""},
      {Changed(WithRow("orders/3/2001", 0xdef, 1043), handled), "no_output",
       "the ledger's row of its id is of another record (orders/3/2001)", ""},
      {Changed(WithRow("orders/3/2001", 0xdef, 1042), handled), "id_conflict", "", ""},
      // A handler without effects says it, whatever became of the record.
      {Changed(WithRow("orders/3/2001", 0xdef, 1043), null_skipped), "no_output",
       "Done: no row is made of it, since its value is null (on_null_value: skip). It leaves its "
       "id to others",
       "Nothing."},
      // It passed without a dead letter: what has its content was done before, without a row.
      {Changed(WithRow("orders/3/2001", 0xdef, 1043), makes(true)), "no_output",
       "Done: skipped, since a record with its id and content was most likely done before", ""},
      {Changed(Changed(WithRow("orders/3/2001", 0xdef, 1043), makes(true)), buried), "id_conflict",
       "an id conflict. This record has no effect", ""},
      {Changed(Changed(WithRow("orders/3/2001", 0xdef, 1043), makes(true)),
               [](Facts& f) { f.options.on_id_conflict = OnBad::kSkip; }),
       "id_conflict", "unless this record, or one of its content before, made no row", ""},
      {Changed(Changed(WithRow("orders/3/2001", 0xdef, 1043), makes(true)),
               [](Facts& f) { f.letters_partly = true; }),
       "id_conflict", "unless", ""},
      {Changed(WithRow("orders/3/2001", 0xdef, 1042), makes(true)), "id_conflict",
       "an id conflict. This", ""},
      {Changed(WithRow("orders/3/2001", 0xdef, 1043), makes(false)), "no_output", "", ""},
      {Changed(WithRow("orders/3/2001", 0xdef, 1042), makes(false)), "waiting", "Nothing yet", ""},
      {Changed(Changed(WithRow("orders/3/1042", 0xabc, 1043), filtered), by_position),
       "dead_lettered", "It became a dead letter at 2026-11-03T09:00:00.000Z", "forget"},
      {Changed(Changed(WithLetter(1042),
                       [](Facts& f) {
                         f.row = WithRow("orders/3/1042", 0xabc, 1042).row;
                         (*f.row)->value().token = locking::Token();
                       }),
               by_position),
       "dead_lettered", "It failed (404", "dlq replay"},
      // A mark is not believed where there is a ledger.
      {WithNodes({done, done, done}), "waiting", "Nothing yet", ""},
      {WithNodes({done, done, done}, 1043), "passed_without_trace", "there is no trace of it", ""},
      {WithLetter(1043), "dead_lettered",
       "It failed (404: HTTP 404 from the service) and was published to orders.dead/0/7",
       "fencepost dlq replay FILE --topic orders --partition 3 --offset 1042"},
      {Changed(WithLetter(1043), [](Facts& f) { f.file = "a.yaml --with b.yaml"; }),
       "dead_lettered", "It failed", "fencepost dlq replay a.yaml --with b.yaml --topic orders"},
      {WithLetter(1042), "dead_lettered", "404",
       "unless the worker ended between the publish and the commit. A worker that reads it again "
       "before that processes it again, so there may be a dead letter and an effect"},
      {WithLetter(1040), "dead_lettered", "404",
       "passes it once everything before it in the partition is finished. A worker"},
      {Changed(WithLetter(1043),
               [](Facts& f) { f.row = WithRow("orders/3/2001", 0xabc, 1043).row; }),
       "duplicate", "It was a dead letter before", "Nothing"},
      {passed, "passed_without_trace", "there is no trace of it: the group began after it",
       "move the group's offset back"},
      {passed, "passed_without_trace", "lost with the database (failed over, restored)", ""},
      {Changed(passed, [](Facts& f) { f.options.ledger_keep = std::chrono::hours(24 * 30); }),
       "passed_without_trace", "its row was pruned (ledger.keep: 30 d)", ""},
      {Without(2000), "beyond_end", "the partition's next offset is 2000", "when it is written"},
      {Without(999), "gone", "the oldest offset that Kafka keeps is 1000", "nobody can read it"},
      {Without(999, 900), "gone", "", "out of range"},
      {Without(1042), "hole", "a transaction's marker", "the offset passes it"},
      {Changed(Plain(), no_id), "bad_record", "json:/order_id is null",
       "sends it to the dead letter topic"},
      {Changed(Changed(Plain(), no_id), stops), "bad_record", "json:/order_id is null",
       "ends with exit code 1, and so does each that is started after it (on_bad_record: stop): "
       "fix the producer, the columns or the table, give dead_letter, or move the group's offset "
       "past it"},
      {Changed(Plain(), no_row), "bad_record", "It is refused by column amount from json:/amount",
       "sends it to the dead letter topic"},
      {Changed(Changed(Plain(), no_row), stops), "bad_record", "finds nothing",
       "ends with exit code 1"},
      {Changed(Changed(Plain(), no_row), [](Facts& f) { f.handler_refuses = true; }), "bad_record",
       "", "sends it to the dead letter topic."},
      {Changed(Plain(), stops), "waiting", "Nothing yet", "If workers end at it with exit code 1"},
      {Marked({done, done, nothing}, consumer::FileOptions()), "done",
       "marked DONE on 2 of 3 lock nodes", "skipped for another 4 min 12 s"},
      {Changed(Marked({done, done, nothing}, consumer::FileOptions()),
               [](Facts& f) { f.crc = 0xdef; }),
       "id_conflict", "other content is DONE", "the offset is past it"},
      {Changed(Marked({done, done, nothing}, consumer::FileOptions()),
               [](Facts& f) {
                 f.cluster = consumer::TagOf("here");
                 f.nodes[0].crc = f.nodes[1].crc =
                     consumer::MarkOf(0xabc, consumer::TagOf("there"));
                 f.committed = std::optional<consumer::Offset>(1042);
               }),
       "done", "in another Kafka cluster, is marked DONE", "The group's offset passes it once"},
      {Changed(Changed(Marked({done, done, done}, consumer::KafkaOutputOptions()), of_other),
               makes(false)),
       "no_output", "Done: the handler returned no row.", "Nothing."},
      {Changed(Changed(Marked({done, done, done}, consumer::KafkaOutputOptions()), of_other),
               makes(true)),
       "id_conflict", "other content is DONE", ""},
      {Changed(Changed(Marked({done, done, done}, consumer::KafkaOutputOptions()), of_other),
               calls),
       "no_output", "Done: the handler returned no row.", ""},
      {Changed(Marked(Plain().nodes, consumer::KafkaOutputOptions()), makes(false)), "no_output",
       "Done: the handler returned no row.", ""},
      {Marked(Plain().nodes, consumer::FileOptions()), "done", "moves only after the write",
       "move the group's offset back"},
      {Marked(Plain().nodes, consumer::KafkaOutputOptions()), "done",
       "in the Kafka transaction that holds the output", ""},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(fmt::format("row {}", &row - rows));
    Expect(row.facts, row.code, row.happened, row.next);
  }
}

TEST(Explain, SaysWhatCannotBeKnownWithoutTheLedger) {
  Facts facts = WithNodes(Plain().nodes, 1043);
  facts.row = tl::unexpected(Error{"output_unavailable", "connection refused", "db:5432", ""});
  Expect(facts, "unknown", "most likely done, skipped or dead-lettered. The ledger could not be",
         "Ask again");
  EXPECT_THAT(FactLines(facts), Contains(HasSubstr("not known: db:5432: connection refused")));
}

TEST(Explain, SaysWhatCannotBeKnownWithoutKafka) {
  Facts facts = Plain();
  facts.range = tl::unexpected(kAway);
  facts.committed = tl::unexpected(kAway);
  facts.record = tl::unexpected(kAway);
  Expect(facts, "unknown", "Kafka could not be asked how far the group is", "Ask again");
  facts.id.clear();
  facts.crc.reset();
  facts.nodes.clear();
  facts.row.reset();
  Expect(facts, "unknown", "The record could not be read, so its id is not known", "Ask again");
  EXPECT_THAT(FactLines(facts), Contains(HasSubstr("127.0.0.1:9092: no broker answers")));
}

TEST(Explain, SaysWhatCannotBeKnownWithoutLockNodes) {
  Facts facts = WithNodes(std::vector<NodeFacts>(3, Node(NodeState::kUnreachable)));
  Expect(facts, "unknown", "No lock node could be asked", "Ask again");
  EXPECT_THAT(FactLines(facts), Contains(HasSubstr("redis:6379  not reachable: no connection")));
}

TEST(Explain, AnIdAloneIsFollowedAsFarAsItIsKnown) {
  Facts facts = Plain();
  facts.position.reset();
  facts.range.reset();
  facts.committed.reset();
  facts.record.reset();
  facts.crc.reset();
  Expect(facts, "waiting", "No part knows this id", "give TOPIC PARTITION OFFSET");
  Facts found = WithRow("orders/3/1042", 0xabc, 1043);
  found.position_from = PositionFrom::kLedgerRow;
  Expect(found, "done", "worker-2", "Nothing");
  EXPECT_THAT(FactLines(found), Contains(HasSubstr("orders/3/1042 (as its ledger row says)")));
}

TEST(Explain, TellsEachPartInALine) {
  Facts facts = WithRow("orders/3/1042", 0xabc, 1043);
  facts.nodes = {Node(NodeState::kHeld, Millis(2000)), Node(NodeState::kDone, Millis(252'000)),
                 Node(NodeState::kFree)};
  facts.nodes[1].letter = 'b';
  facts.nodes[2].letter = 'c';
  facts.nodes[2].quarantined = true;
  const std::string token = std::to_string(kToken.value());
  const std::string drawn = token + " (drawn 2026-11-03T09:59:59.000Z)";
  EXPECT_THAT(
      FactLines(facts),
      ::testing::ElementsAre(
          "  position    orders/3/1042",
          "  record      of 2026-11-03T08:00:00.000Z (2 h ago), key \"customer-17\", a value of 19 "
          "bytes, 0 headers",
          "  partition   holds offsets 1000 to 1999",
          "  group       billing has committed offset 1043: it is past this record",
          "  identity    id o-17, checksum 0000000000000abc",
          "  lock        fencepost:{orders}:o-17",
          "              a  redis:6379  held under token " + drawn +
              ", for another 2 s, by a lease that was left behind: the ledger has its row",
          "              b  redis:6379  DONE under token " + drawn +
              ", checksum 0000000000000abc, remembered for another 4 min 12 s",
          "              c  redis:6379  free; it was held before, under token " + drawn +
              " at the latest (in quarantine)",
          "  ledger      row of 2026-11-03T09:00:00.000Z by worker-2, from orders/3/1042, under "
          "token " +
              token + ", checksum 0000000000000abc",
          "  dead letter none in orders.dead"));
}

TEST(Explain, TellsOfNoLeaseThatWasLeftBehindWithoutARow) {
  EXPECT_THAT(FactLines(WithNodes({Node(NodeState::kHeld, Millis(2000))})),
              Not(Contains(HasSubstr("left behind"))));
}

TEST(Explain, IsJsonToo) {
  const nlohmann::json json = FactsJson(WithRow("orders/3/1042", 0xabc, 1043));
  EXPECT_EQ(json["position"], "orders/3/1042");
  EXPECT_EQ(json["kafka"]["committed"], 1043);
  EXPECT_EQ(json["kafka"]["record"]["key"], "customer-17");
  EXPECT_EQ(json["ledger"]["row"]["worker"], "worker-2");
  EXPECT_EQ(json["lock"][2]["state"], "nothing");
  EXPECT_THAT(json["dead_letters"], IsEmpty());
  Facts facts = Plain();
  facts.row = tl::unexpected(kAway);
  EXPECT_EQ(FactsJson(facts)["ledger"]["error"], "127.0.0.1:9092: no broker answers");
}

TEST(Position, IsReadFromASourceOrAnIdByPosition) {
  EXPECT_EQ(ParsePosition("orders/3/1042"), (Position{{"orders", 3}, 1042}));
  EXPECT_EQ(ParsePosition("cluster-1/orders/3/1042"), (Position{{"orders", 3}, 1042}));
  for (const char* text : {"", "o-17", "3/4", "/3/4", "orders/x/4", "orders/3/", "orders/3/-4"}) {
    EXPECT_EQ(ParsePosition(text), std::nullopt) << text;
  }
}

}  // namespace
}  // namespace fencepost::cli
