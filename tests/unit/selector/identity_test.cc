#include "consumer/record/identity.h"

#include <set>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>

#include "consumer/record/done_mark.h"

namespace fencepost::consumer {
namespace {

const TopicPartition kWhere{"orders", 7};

Identity Of(const IdentityRule& rule, const Record& record) {
  Identifier identifier(rule, "cluster-1");
  Identity identity;
  const auto done = identifier.Identify(record, kWhere, identity);
  EXPECT_TRUE(done) << done.error();
  return identity;
}

Identity Of(std::string_view selector, const Record& record) {
  return Of(IdentityRule{.record_id = {Selector::Parse(selector).value()}}, record);
}

std::vector<Selector> Selectors(const std::vector<std::string>& texts) {
  std::vector<Selector> selectors;
  for (const std::string& text : texts) selectors.push_back(Selector::Parse(text).value());
  return selectors;
}

std::string WhyNot(std::string_view selector, const Record& record) {
  Identifier identifier({.record_id = {Selector::Parse(selector).value()}}, "cluster-1");
  Identity identity;
  const auto done = identifier.Identify(record, kWhere, identity);
  return done ? "it has one: " + identity.id : done.error();
}

TEST(Identity, OfAPositionNamesClusterTopicPartitionAndOffset) {
  Record record;
  record.offset = 42;
  EXPECT_EQ(Of("position", record).id, "cluster-1/orders/7/42");
  EXPECT_EQ(SourceText(kWhere, 42), "orders/7/42");
}

TEST(Identity, OfAnAcceptedReplaySaysWhereAndWhenTheOriginalWas) {
  IdentityRule rule{.record_id = Selectors({"json:/id"}), .accept_replay_ids = true};
  Record record;
  record.offset = 42;
  record.timestamp = std::chrono::milliseconds(9000);
  record.value = R"({"id":"o-1"})";
  record.headers = {{"fencepost-record-id", "o-1"},
                    {"fencepost-topic", "orders"},
                    {"fencepost-partition", "3"},
                    {"fencepost-offset", "17"},
                    {"fencepost-timestamp", "5000"}};
  const Identity replay = Of(rule, record);
  ASSERT_TRUE(replay.origin);
  EXPECT_EQ(replay.origin->partition, 3);
  EXPECT_EQ(replay.origin->offset, 17);
  EXPECT_EQ(replay.origin->timestamp, std::chrono::milliseconds(5000));
  Evaluator evaluator;
  evaluator.Begin({.record = &record, .where = &kWhere, .origin = &*replay.origin});
  std::string text;
  for (const char* selector : {"partition", "offset", "timestamp"}) {
    ASSERT_TRUE(evaluator.Append(Selector::Parse(selector).value(), text));
    text += ' ';
  }
  EXPECT_EQ(text, "3 17 5000 ");

  rule.accept_replay_ids = false;
  EXPECT_FALSE(Of(rule, record).origin) << "headers that are not accepted say nothing";
  rule.accept_replay_ids = true;
  record.headers[1].value = "another";
  EXPECT_FALSE(Of(rule, record).origin) << "an offset of another topic is no offset of this one";
  record.headers.resize(1);
  EXPECT_FALSE(Of(rule, record).origin);
}

// A topic may refuse the original's time: then the replay has another one, and is the same record.
TEST(Identity, OfAnAcceptedReplayHasTheContentOfTheOriginalWhateverItsOwnTime) {
  Record original;
  original.offset = 3;
  original.timestamp = std::chrono::milliseconds(5000);
  original.value = R"({"id":"o-1"})";
  Record replay = original;
  replay.offset = 42;
  replay.timestamp = std::chrono::milliseconds(9000);
  replay.headers = {{"fencepost-record-id", "cluster-1/orders/7/3"},
                    {"fencepost-topic", "orders"},
                    {"fencepost-partition", "7"},
                    {"fencepost-offset", "3"},
                    {"fencepost-timestamp", "5000"}};
  for (const bool by_position : {true, false}) {
    IdentityRule rule{.accept_replay_ids = true};
    if (!by_position) {
      rule.record_id = Selectors({"json:/id"});
      rule.content = {.kind = ContentRule::Kind::kSelectors,
                      .selectors = Selectors({"offset", "timestamp"})};
    }
    EXPECT_EQ(Of(rule, replay).crc, Of(rule, original).crc) << by_position;
    rule.accept_replay_ids = false;
    EXPECT_NE(Of(rule, replay).crc, Of(rule, original).crc) << by_position;
  }
}

TEST(Identity, OfAReplayedDeadLetterByPositionIsThePositionInItsHeader) {
  const IdentityRule rule{.accept_replay_ids = true};
  Record record;
  record.offset = 42;
  record.headers = {{"fencepost-record-id", "cluster-1/orders/7/3"}};
  EXPECT_EQ(Of(rule, record).id, "cluster-1/orders/7/3");
  record.headers.insert(record.headers.begin(), {"fencepost-record-id", "cluster-1/orders/7/9"});
  EXPECT_EQ(Of(rule, record).id, "cluster-1/orders/7/3") << "the last one is the replay's own";
  record.headers = {{"fencepost-record-id", "o-17"}};
  Identifier identifier(rule, "cluster-1");
  Identity identity;
  const auto done = identifier.Identify(record, kWhere, identity);
  ASSERT_FALSE(done) << identity.id;
  EXPECT_EQ(done.error(),
            "no record id: the header fencepost-record-id is no position "
            "(CLUSTERID/topic/partition/offset)");
}

TEST(Identity, ComesFromKeyHeaderAndJson) {
  Record record;
  record.key = "k-1";
  record.value = R"({"order_id": 9007199254740993})";
  record.headers = {{"id", "h-1"}};
  EXPECT_EQ(Of("key", record).id, "k-1");
  EXPECT_EQ(Of("header:id", record).id, "h-1");
  EXPECT_EQ(Of("json:/order_id", record).id, "9007199254740993");
}

TEST(Identity, AValueOfASchemaRegistryThatNobodyDecodesIsNamed) {
  Record record;
  record.key = record.value = std::string_view("\0\0\0\0\7abc", 8);
  EXPECT_EQ(WhyNot("json:/x", record),
            "no record id: the value begins with the magic byte of a schema registry (schema id "
            "7): set kafka.decode.value");
  EXPECT_EQ(WhyNot("key:/x", record),
            "no record id: the key begins with the magic byte of a schema registry (schema id 7): "
            "set kafka.decode.key");
  record.value = std::string_view("\0abc", 4);
  EXPECT_THAT(WhyNot("json:/x", record), ::testing::HasSubstr("the value is not valid JSON"));
}

TEST(Identity, WhatCouldNotBeDecodedHasNoneEvenByPosition) {
  Record record;
  record.problem = "the value is cut off";
  EXPECT_EQ(WhyNot("position", record), "the value is cut off");
}

TEST(Identity, ByPositionComparesTheBytesThatKafkaHas) {
  Record record;
  record.value = R"({"a":1})";
  const auto raw = Of("position", record).crc;
  record.encoded = std::make_shared<Encoded>(Encoded{.value = record.value});
  record.value = R"({"a":2})";
  EXPECT_EQ(Of("position", record).crc, raw);
}

TEST(Identity, MissingNullOrEmptyIsNoIdentity) {
  Record record;
  record.value = R"({"id":null,"empty":""})";
  EXPECT_EQ(WhyNot("key", record), "no record id: key finds nothing in the record");
  EXPECT_EQ(WhyNot("json:/x", record), "no record id: json:/x finds nothing in the value");
  EXPECT_EQ(WhyNot("json:/id", record), "no record id: json:/id is null");
  EXPECT_EQ(WhyNot("json:/empty", record), "no record id: json:/empty is empty");
}

TEST(StoredId, KeepsCleanIdsAndHashesTheOthers) {
  const std::string longest(512, 'x');
  EXPECT_EQ(StoredId("o-17"), "o-17");
  EXPECT_EQ(StoredId("gr\xc3\xb6\xc3\x9f"
                     "e {}/:"),
            "gr\xc3\xb6\xc3\x9f"
            "e {}/:");
  EXPECT_EQ(StoredId(longest), longest);
  // The digest is sha256sum's.
  EXPECT_EQ(StoredId("a\nb"),
            "sha256:"
            "7e18f737311b2dc3b2f269dd78396b0351f14fb66efa879f768cb23181883c78");
  for (const std::string& id : {longest + "x", std::string("\x7f"), std::string("a\0b", 3),
                                std::string("\xff"), std::string("\xc0\x80")}) {
    const std::string stored = StoredId(id);
    EXPECT_EQ(stored.size(), 7 + 64u);
    EXPECT_EQ(stored.substr(0, 7), "sha256:");
    EXPECT_EQ(StoredId(stored), stored) << "a stored id can be given back by a person";
  }
}

TEST(Identity, KeepsTheIdItselfWhereItIsStoredAsItsDigest) {
  const std::string tab = "a\tb";
  const std::string stored = StoredId(tab);
  struct Row {
    const char* value;
    std::string replay, id, whole;
  };
  const Row rows[] = {
      {R"({"id":"o-1"})", "", "o-1", ""},        {R"({"id":"a\tb"})", "", stored, tab},
      {R"({"id":"a\tb"})", stored, stored, tab}, {R"({"id":"another"})", stored, stored, ""},
      {R"({"id":"a\nb"})", stored, stored, ""},  {R"({})", stored, stored, ""},
      {R"({"id":"o-1"})", "o-2", "o-2", ""},
  };
  for (const Row& row : rows) {
    Record record;
    record.value = row.value;
    if (!row.replay.empty()) record.headers = {{"fencepost-record-id", row.replay}};
    const Identity found =
        Of({.record_id = Selectors({"json:/id"}), .accept_replay_ids = true}, record);
    EXPECT_EQ(found.id, row.id) << row.value;
    EXPECT_EQ(found.whole, row.whole) << row.value << " " << row.replay;
  }
}

TEST(LockName, PutsThePipelineIntoBraces) {
  EXPECT_EQ(LockName("orders", "o-17"), "fencepost:{orders}:o-17");
}

TEST(Identity, OfSeveralPartsIsUnambiguous) {
  const IdentityRule rule{.record_id = Selectors({"json:/tenant", "json:/id"})};
  const auto id = [&](std::string_view value) {
    Record record;
    record.value = value;
    return Of(rule, record).id;
  };
  EXPECT_EQ(id(R"({"tenant":"acme","id":42})"), "acme/42");
  EXPECT_EQ(id(R"({"tenant":"a/b","id":"c~d"})"), "a~1b/c~0d");
  EXPECT_NE(id(R"({"tenant":"a/b","id":"c"})"), id(R"({"tenant":"a","id":"b/c"})"));
  EXPECT_NE(id(R"({"tenant":"a~1b","id":"c"})"), id(R"({"tenant":"a/b","id":"c"})"));
}

TEST(Identity, IsReadFromTheKeyAsJson) {
  Record record;
  record.key = R"({"id": 5})";
  EXPECT_EQ(Of("key:/id", record).id, "5");
  EXPECT_EQ(WhyNot("key:/x", record), "no record id: key:/x finds nothing in the key");
  record.key = "{";
  EXPECT_THAT(WhyNot("key:/id", record), ::testing::HasSubstr("the key is not valid JSON"));
  record.key.reset();
  EXPECT_EQ(WhyNot("key:/id", record),
            "no record id: key:/id finds nothing: the record has no key");
}

locking::ContentCrc ContentOf(std::optional<std::string_view> value, const ContentRule& rule = {}) {
  Record record;
  record.value = value;
  record.key = "k";
  return Of({.record_id = Selectors({"key"}), .content = rule}, record).crc;
}

TEST(Content, IsTheSameForAllWaysToWriteTheSameJson) {
  const auto one =
      ContentOf(R"({"id":"o-1","lines":[{"sku":"é","n":1.50}],"paid":false,"x":null})");
  for (const char* other :
       {R"( {"x":null,"paid":false, "lines": [ {"n":1.5,"sku":"\u00e9"} ],"id":"o-1"}
)",
        R"({"lines":[{"sku":"é","n":15e-1}],"id":"o\u002d1","paid":false,"x":null})",
        R"({"lines":[{"sku":"é","n":0.0150E+2}],"id":"o-1","paid":false,"x":null})"}) {
    EXPECT_EQ(ContentOf(other), one) << other;
  }
}

TEST(Content, DiffersWhereTheValueDiffers) {
  const std::vector<std::optional<std::string_view>> values{std::nullopt,
                                                            "",
                                                            "null",
                                                            "0",
                                                            "1",
                                                            "10",
                                                            "-1",
                                                            "\"1\"",
                                                            "1e400",
                                                            "9007199254740993",
                                                            "9007199254740992",
                                                            "[]",
                                                            "{}",
                                                            "[1,2]",
                                                            "[2,1]",
                                                            "[[1],2]",
                                                            "[1,[2]]",
                                                            "[null]",
                                                            "true",
                                                            R"({"a":1,"b":2})",
                                                            R"({"a":2,"b":1})",
                                                            R"({"a":1})",
                                                            R"({"a":1,"a":1})",
                                                            R"({"a":"1"})",
                                                            R"({"a":{"b":1}})",
                                                            R"({"a":{},"b":1})",
                                                            "not JSON",
                                                            "not json",
                                                            R"({"a":1} x)",
                                                            "[1,2"};
  std::set<locking::ContentCrc> seen;
  for (const auto& value : values) seen.insert(ContentOf(value));
  EXPECT_EQ(seen.size(), values.size());
}

TEST(Content, OfAValueIsNeitherKeyNorHeadersNorTimeNorPlace) {
  Record one;
  one.value = R"({"id":1})";
  one.key = "a";
  one.headers = {{"traceparent", "00-aaaa"}};
  Record again = one;
  again.key = "b";
  again.headers = {{"traceparent", "00-bbbb"}};
  again.offset = 2;
  again.timestamp = std::chrono::milliseconds(5);
  EXPECT_EQ(Of("json:/id", one).crc, Of("json:/id", again).crc);
}

TEST(Content, OfAPositionIsTheWholeRecord) {
  Record base;
  base.key = "ab";
  base.value = "cd";
  base.headers = {{"h", "1"}};
  std::vector<Record> records(10, base);
  records[1].key = "a";
  records[1].value = "bcd";
  records[2].key.reset();
  records[3].key = "";
  records[4].value.reset();
  records[5].headers = {};
  records[6].headers = {{"h", std::nullopt}};
  records[7].headers = {{"h", ""}};
  records[8].headers = {{"h1", ""}};
  records[9].timestamp = std::chrono::milliseconds(5);
  std::set<locking::ContentCrc> sums;
  for (const Record& record : records) sums.insert(Of("position", record).crc);
  EXPECT_EQ(sums.size(), records.size());
}

TEST(Content, OfSelectorsIsThoseParts) {
  const ContentRule rule{.kind = ContentRule::Kind::kSelectors,
                         .selectors = Selectors({"json:/amount", "json:/currency?"})};
  const auto one = ContentOf(R"({"amount":12.50,"currency":"EUR","sent_at":1})", rule);
  EXPECT_EQ(ContentOf(R"({"sent_at":2,"amount":12.5,"currency":"EUR"})", rule), one);
  EXPECT_NE(ContentOf(R"({"amount":12.51,"currency":"EUR"})", rule), one);
  EXPECT_NE(ContentOf(R"({"amount":12.50})", rule), one);
  Record record;
  record.key = "k";
  record.value = R"({"currency":"EUR"})";
  Identifier identifier({.record_id = Selectors({"key"}), .content = rule}, "cluster-1");
  Identity identity;
  const auto done = identifier.Identify(record, kWhere, identity);
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error(),
            "no content to compare (id_content): json:/amount finds nothing in the value");
}

TEST(Content, OfNothingIsAlwaysTheSame) {
  const ContentRule none{.kind = ContentRule::Kind::kNone, .selectors = {}};
  EXPECT_EQ(ContentOf("1", none), ContentOf("2", none));
}

TEST(Content, IsOnlyComparedByTheSameRule) {
  const ContentRule amount{.kind = ContentRule::Kind::kSelectors,
                           .selectors = Selectors({"json:/amount"})};
  const ContentRule none{.kind = ContentRule::Kind::kNone, .selectors = {}};
  const char* value = R"({"amount":1})";
  const char* other = R"({"amount":2})";
  EXPECT_TRUE(locking::IsOtherContent(ContentOf(value), ContentOf(other)));
  EXPECT_FALSE(locking::IsOtherContent(ContentOf(value), ContentOf(value)));
  EXPECT_TRUE(locking::IsOtherContent(ContentOf(value, amount), ContentOf(other, amount)));
  EXPECT_FALSE(locking::IsOtherContent(ContentOf(value), ContentOf(other, amount)));
  EXPECT_FALSE(locking::IsOtherContent(ContentOf(value, none), ContentOf(other)));
}

TEST(Content, OfAMarkNamesItsClusterToo) {
  const ContentRule none{.kind = ContentRule::Kind::kNone, .selectors = {}};
  const ClusterTag here = TagOf("cluster-1");
  const auto content = ContentOf("1");
  const auto mark = MarkOf(content, here);
  EXPECT_FALSE(IsOfAnotherCluster(mark, here));
  EXPECT_TRUE(IsOfAnotherCluster(mark, TagOf("cluster-2")));
  EXPECT_FALSE(MarkIsOfOtherContent(mark, content));
  EXPECT_TRUE(MarkIsOfOtherContent(mark, ContentOf("2")));
  EXPECT_FALSE(MarkIsOfOtherContent(mark, ContentOf("2", none))) << "by another rule";
  for (const locking::ContentCrc without : {locking::ContentCrc{0}, content}) {
    EXPECT_FALSE(IsOfAnotherCluster(without, here)) << "it names none";
  }
  EXPECT_TRUE(MarkIsOfOtherContent(content, ContentOf("2")));
}

// What is stored for years must not change by accident.
TEST(Content, HasTheDigestsThatAreStored) {
  EXPECT_EQ(fmt::format("{:016x}", ContentOf(R"({"id":"o-1","n":[1.50,true,null]})")),
            "35fe63dd9eee9c8f");
  EXPECT_EQ(fmt::format("{:016x}", ContentOf("not JSON")), "35fe63dd269ee7dd");
  EXPECT_LT(ContentOf("x"), locking::ContentCrc{1} << 63) << "it fits a bigint";
}

}  // namespace
}  // namespace fencepost::consumer
