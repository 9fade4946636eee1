// What parallel-consumer has left with a group's offset. The texts are those of its own encoders,
// io.confluent.parallelconsumer:parallel-consumer-core 0.5.3.3 from Maven Central: for the offset
// FIRST and the finished ones up to LAST, of
//   var e = new OffsetSimultaneousEncoder(FIRST, LAST, new TreeSet<>(unfinished)).invoke();
// the base64 of e.packSmallest(), which is what it commits; and of each entry of
// e.getEncodingMap(), behind getKey().getMagicByte(), with compressionForced for the compressed.
#include "consumer/kafka/log_identity/foreign_metadata.h"

#include <gmock/gmock.h>

namespace fencepost::consumer {
namespace {

TEST(ParallelConsumer, TellsHowManyRecordsItHasFinishedBehindItsOffset) {
  struct Case {
    const char* metadata;
    std::int64_t finished;
  };
  for (const Case& one : {
           Case{"bgAA", 0},
           Case{"bAAAAA==", 0},
           Case{"bwAAAAAA", 0},
           Case{"ZQAAAAA=", 0},
           Case{"bAAEDgA=", 3},
           Case{"bgABAAM=", 3},
           Case{"bwAAAAQOAA==", 3},
           Case{"ZQAAAAEAAAAD", 3},
           Case{"bAAT3P8HAA==", 16},
           Case{"bgACAAMAAQAN", 16},
           Case{"bwAAABPc/wcA", 16},
           Case{"ZQAAAAIAAAADAAAAAQAAAA0=", 16},
           Case{"bAfR/FiwJ6w0edh7vcs1+F7UTx/BM3AzUYN45llzqOA1I5Ai6x4AI2FvjOOZ+EcDrsTVWj3r9Xaa80ce"
                "GN7ITyL7x471mcEhUk8muCalTuOoDnkO5Y/w3Thn1VWlUfxIANUkEDDLAgu8f38gqMB3Zlc7DqLpnsHe"
                "t4tOt3ZFUBoTiCd2QiHRn+/95sQ+8Gun/4h6pZk0CY8XchoA78zHfc9XtlzgDy0LoWRzTS0d6xIWmGFg"
                "cxQgs516H6Iq5TMXxYzG5AV1c5t0KD6yDZawdIDqHp/6nAJrSNOh+C+P+TR5lhxXZbqj0iGvI8cnOfY8"
                "w/wKgZzRIdY0iUAstgEA",
                1000},
       }) {
    const auto read = ParseParallelConsumer(one.metadata);
    ASSERT_TRUE(read) << one.metadata;
    EXPECT_EQ(read->records, one.finished) << one.metadata;
  }
}

TEST(ParallelConsumer, IsRecognisedWhereItHasCompressedWhichRecordsTheseAre) {
  for (const char* metadata : {"YSi1L/0AWCEAAAAEDgA=", "Sii1L/0AWCEAAAABAAM=",
                               "cyi1L/0AWDEAAAAAAAQOAA==", "cCi1L/0AWEEAAAAAAAEAAAAD"}) {
    const auto read = ParseParallelConsumer(metadata);
    ASSERT_TRUE(read) << metadata;
    EXPECT_EQ(read->records, std::nullopt) << metadata;
  }
}

TEST(ForeignMetadata, IsNoneWhereThereIsNoneOrItIsOurs) {
  EXPECT_FALSE(IsForeignMetadata(""));
  EXPECT_FALSE(IsForeignMetadata("fencepost1 42 41 1700000000123 00abcdef"));
  EXPECT_TRUE(IsForeignMetadata("bAAEDgA="));
}

TEST(ParallelConsumer, HasNotWrittenWhatIsAnothersOrCutOff) {
  for (const char* metadata :
       {"", "fencepost1 42 41 1700000000123 00abcdef", "AQAAAYsyZ8x7",  // Kafka Streams
        "orders at noon", "bAAE", "bAAEAA==", "bv//AAA=", "bgAB/w==", "bv//", "YQ==", "ZQAAAAE",
        "TAEBAQ=="}) {
    EXPECT_FALSE(ParseParallelConsumer(metadata)) << metadata;
  }
}

}  // namespace
}  // namespace fencepost::consumer
