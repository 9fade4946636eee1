#include "tests/bench/floors/floors.h"

#include <arpa/inet.h>
#include <libpq-fe.h>
#include <simdjson.h>
#include <zlib.h>

#include <array>
#include <cstring>
#include <iterator>
#include <map>
#include <memory>
#include <stdexcept>
#include <utility>

#include <fmt/format.h>

#include "tests/bench/floors/group_consumer.h"

namespace fencepost::bench {
namespace {

using consumer::rdkafka::Message;

constexpr std::size_t kBatch = 500;
constexpr auto kCommitEvery = std::chrono::seconds(1);
constexpr Oid kText = 25;
constexpr Oid kBigint = 20;

constexpr const char* kInserts[] = {
    "WITH u AS MATERIALIZED ("
    " SELECT * FROM unnest($1::text[], $2::bigint[], $3::text[], $4::bigint[], $5::bigint[])"
    " AS u(id, token, source, crc, amount)), l AS ("
    " INSERT INTO fencepost_ledger (pipeline, record_id, token, worker, source, content_crc)"
    " SELECT 'bench', id, token, 'floor', source, crc FROM u"
    " ON CONFLICT DO NOTHING RETURNING record_id)"
    " INSERT INTO effects (order_id, amount) SELECT id, amount FROM u JOIN l ON record_id = id",
    "WITH u AS MATERIALIZED ("
    " SELECT * FROM unnest($1::text[], $2::bigint[], $3::text[], $4::bigint[], $5::bigint[])"
    " AS u(id, token, source, crc, amount)), l AS ("
    " INSERT INTO fencepost_ledger (pipeline, record_id, token, worker, source, content_crc)"
    " SELECT 'bench', id, token, 'floor', source, crc FROM u"
    " ON CONFLICT DO NOTHING RETURNING record_id), e AS ("
    " INSERT INTO effects (order_id, amount) SELECT id, amount FROM u JOIN l ON record_id = id)"
    " INSERT INTO more_effects (order_id, amount) SELECT id, amount FROM u JOIN l ON record_id = "
    "id"};

// One dimension, no nulls, in PostgreSQL's binary format.
class ArrayText {
 public:
  explicit ArrayText(Oid type) : type_(type) { Clear(); }

  void Clear() {
    bytes_.clear();
    count_ = 0;
    for (const std::uint32_t word : {1U, 0U, static_cast<std::uint32_t>(type_), 0U, 1U}) Word(word);
  }
  void Add(std::string_view text) {
    Word(static_cast<std::uint32_t>(text.size()));
    bytes_.append(text);
    ++count_;
  }
  void Add(std::int64_t number) {
    Word(sizeof number);
    Word(static_cast<std::uint32_t>(static_cast<std::uint64_t>(number) >> 32U));
    Word(static_cast<std::uint32_t>(number));
    ++count_;
  }
  const std::string& Finish() {
    const std::uint32_t count = htonl(count_);
    std::memcpy(bytes_.data() + 12, &count, sizeof count);
    return bytes_;
  }

 private:
  void Word(std::uint32_t word) {
    const std::uint32_t big_endian = htonl(word);
    bytes_.append(reinterpret_cast<const char*>(&big_endian), sizeof big_endian);
  }

  Oid type_;
  std::uint32_t count_ = 0;
  std::string bytes_;
};

struct Batch {
  ArrayText ids{kText}, tokens{kBigint}, sources{kText}, crcs{kBigint}, amounts{kBigint};
  std::size_t size = 0;
  std::map<std::int32_t, std::int64_t> next_offsets;

  void Clear() {
    for (ArrayText* array : {&ids, &tokens, &sources, &crcs, &amounts}) array->Clear();
    size = 0;
    next_offsets.clear();
  }
};

class Database {
 public:
  Database(const std::string& dsn, int tables) : connection_(PQconnectdb(dsn.c_str()), &PQfinish) {
    Check(PQprepare(connection_.get(), "insert", kInserts[tables - 1], 0, nullptr));
  }

  void Send(Batch& batch) {
    std::array<const char*, 5> values{};
    std::array<int, 5> sizes{};
    std::size_t at = 0;
    for (ArrayText* array :
         {&batch.ids, &batch.tokens, &batch.sources, &batch.crcs, &batch.amounts}) {
      const std::string& bytes = array->Finish();
      values.at(at) = bytes.data();
      sizes.at(at++) = static_cast<int>(bytes.size());
    }
    static constexpr std::array<int, 5> kBinary{1, 1, 1, 1, 1};
    if (PQsendQueryPrepared(connection_.get(), "insert", 5, values.data(), sizes.data(),
                            kBinary.data(), 1) == 0) {
      throw std::runtime_error(PQerrorMessage(connection_.get()));
    }
  }
  void Wait() {
    while (PGresult* result = PQgetResult(connection_.get())) Check(result);
  }

 private:
  void Check(PGresult* result) const {
    const std::unique_ptr<PGresult, decltype(&PQclear)> holder(result, &PQclear);
    if (PQresultStatus(result) != PGRES_COMMAND_OK) {
      throw std::runtime_error(PQerrorMessage(connection_.get()));
    }
  }

  std::unique_ptr<PGconn, decltype(&PQfinish)> connection_;
};

class Loop {
 public:
  explicit Loop(const PipelineFloor& floor)
      : floor_(floor),
        database_(floor.dsn, floor.tables),
        consumer_(floor.bootstrap, floor.topic, floor.group) {
    consumer_.WaitForPartitions(floor.partitions);
  }

  void Run() {
    auto committed = Clock::now();
    bool writing = false;
    for (std::int64_t written = 0; written < floor_.records;) {
      // While PostgreSQL is at work, or a batch is begun, only what is there already.
      while (filling_.size < kBatch && Poll(writing || filling_.size > 0 ? 0 : 100)) {
      }
      if (writing) {
        database_.Wait();
        written += static_cast<std::int64_t>(writing_.size);
        for (const auto& [partition, offset] : writing_.next_offsets) offsets_[partition] = offset;
        writing = false;
      }
      if (filling_.size > 0) {
        std::swap(filling_, writing_);
        filling_.Clear();
        database_.Send(writing_);
        writing = true;
      }
      if (Clock::now() - committed >= kCommitEvery) {
        committed = Clock::now();
        Commit(true);
      }
    }
    Commit(false);
  }

 private:
  bool Poll(int timeout_ms) {
    const Message message = consumer_.Poll(timeout_ms);
    if (message) Take(*message);
    return message != nullptr;
  }

  void Take(const rd_kafka_message_t& message) {
    const std::string_view value(static_cast<const char*>(message.payload), message.len);
    if (json_.size() < value.size() + simdjson::SIMDJSON_PADDING) {
      json_.resize(value.size() + simdjson::SIMDJSON_PADDING);
    }
    std::memcpy(json_.data(), value.data(), value.size());
    auto document = parser_.iterate(json_.data(), value.size(), json_.size());
    const std::string_view id = document["order_id"].get_string();
    filling_.ids.Add(id);
    filling_.amounts.Add(document["amount"].get_int64());
    filling_.tokens.Add(++token_);
    filling_.crcs.Add(static_cast<std::int64_t>(
        crc32(0, static_cast<const Bytef*>(message.payload), static_cast<uInt>(message.len))));
    source_.clear();
    fmt::format_to(std::back_inserter(source_), "{}/{}/{}", floor_.topic, message.partition,
                   message.offset);
    filling_.sources.Add(std::string_view(source_.data(), source_.size()));
    filling_.next_offsets[message.partition] = message.offset + 1;
    ++filling_.size;
  }

  void Commit(bool async) {
    const auto list = consumer_.Offsets(offsets_);
    if (list->cnt > 0) rd_kafka_commit(consumer_.handle(), list.get(), async ? 1 : 0);
  }

  const PipelineFloor& floor_;
  Database database_;
  GroupConsumer consumer_;
  simdjson::ondemand::parser parser_;
  std::string json_;
  fmt::memory_buffer source_;
  Batch filling_, writing_;
  std::map<std::int32_t, std::int64_t> offsets_;
  std::int64_t token_ = 0;
};

}  // namespace

void RunPipelineFloor(const PipelineFloor& floor, const std::function<void()>& open) {
  Loop loop(floor);
  open();
  loop.Run();
}

}  // namespace fencepost::bench
