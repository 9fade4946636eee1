#include "consumer/record/identity.h"

#include <zlib.h>

#include <set>

#include <gtest/gtest.h>

namespace fencepost::consumer {
namespace {

const TopicPartition kWhere{"orders", 7};

Identity Of(std::string_view selector, const Record& record) {
  Identifier identifier(Selector::Parse(selector).value(), "cluster-1");
  Identity identity;
  const auto done = identifier.Identify(record, kWhere, identity);
  EXPECT_TRUE(done) << done.error();
  return identity;
}

std::string WhyNot(std::string_view selector, const Record& record) {
  Identifier identifier(Selector::Parse(selector).value(), "cluster-1");
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

TEST(Identity, ComesFromKeyHeaderAndJson) {
  Record record;
  record.key = "k-1";
  record.value = R"({"order_id": 9007199254740993})";
  record.headers = {{"id", "h-1"}};
  EXPECT_EQ(Of("key", record).id, "k-1");
  EXPECT_EQ(Of("header:id", record).id, "h-1");
  EXPECT_EQ(Of("json:/order_id", record).id, "9007199254740993");
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

TEST(LockName, PutsThePipelineIntoBraces) {
  EXPECT_EQ(LockName("orders", "o-17"), "fencepost:{orders}:o-17");
}

TEST(ContentCrc, TellsApartWhatDiffers) {
  Record base;
  base.key = "ab";
  base.value = "cd";
  base.headers = {{"h", "1"}};
  std::vector<Record> records(9, base);
  records[1].key = "a";
  records[1].value = "bcd";
  records[2].key.reset();
  records[3].key = "";
  records[4].value.reset();
  records[5].headers = {};
  records[6].headers = {{"h", std::nullopt}};
  records[7].headers = {{"h", ""}};
  records[8].headers = {{"h1", ""}};
  std::set<locking::ContentCrc> sums;
  for (const Record& record : records) sums.insert(Of("=id", record).crc);
  EXPECT_EQ(sums.size(), records.size());
}

TEST(ContentCrc, IsTheSameWhereverTheRecordStands) {
  Record one;
  one.value = "v";
  one.key = "k";
  one.offset = 1;
  Record other = one;
  other.offset = 2;
  other.partition = 5;
  other.timestamp = std::chrono::milliseconds(5);
  EXPECT_EQ(Of("key", one).crc, Of("key", other).crc);
  EXPECT_NE(Of("position", one).crc, Of("position", other).crc) << "position counts the timestamp";
}

// What is stored for years must not change by accident.
TEST(ContentCrc, IsTheCrc32OfTheDocumentedEncoding) {
  Record record;
  record.key = "k";
  record.value = "vw";
  record.headers = {{"h", std::nullopt}};
  using namespace std::string_literals;
  const std::string encoded =
      "\1\1\0\0\0\0\0\0\0k"s
      "\1\2\0\0\0\0\0\0\0vw"s
      "\1\0\0\0\0\0\0\0"s
      "\1\1\0\0\0\0\0\0\0h"s
      "\0"s;
  const auto expected =
      crc32(0, reinterpret_cast<const Bytef*>(encoded.data()), static_cast<uInt>(encoded.size()));
  EXPECT_EQ(Of("key", record).crc, expected);
}

}  // namespace
}  // namespace fencepost::consumer
