#include "tests/support/kafka_client.h"

#include <librdkafka/rdkafka.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <stdexcept>

#include <fmt/format.h>

#include "tests/support/process.h"

namespace fencepost::testing {
namespace {

constexpr int kCallMs = 30'000;
constexpr int kFlushMs = 120'000;  // a thousand new partitions join a transaction one by one

template <typename T, auto kDestroy>
struct Destroyer {
  void operator()(T* object) const { kDestroy(object); }
};
template <typename T, auto kDestroy>
using Holder = std::unique_ptr<T, Destroyer<T, kDestroy>>;

using Handle = Holder<rd_kafka_t, &rd_kafka_destroy>;
using Queue = Holder<rd_kafka_queue_t, &rd_kafka_queue_destroy>;
using Event = Holder<rd_kafka_event_t, &rd_kafka_event_destroy>;
using Partitions = Holder<rd_kafka_topic_partition_list_t, &rd_kafka_topic_partition_list_destroy>;
using Options = Holder<rd_kafka_AdminOptions_t, &rd_kafka_AdminOptions_destroy>;
using Metadata = Holder<const struct rd_kafka_metadata, &rd_kafka_metadata_destroy>;
using ErrorHolder = Holder<rd_kafka_error_t, &rd_kafka_error_destroy>;

[[noreturn]] void Fail(const std::string& doing, const std::string& why) {
  throw std::runtime_error(fmt::format("kafka: {}: {}", doing, why));
}

void Require(rd_kafka_resp_err_t error, const std::string& doing) {
  if (error != RD_KAFKA_RESP_ERR_NO_ERROR) Fail(doing, rd_kafka_err2str(error));
}

void Require(rd_kafka_error_t* error, const std::string& doing) {
  const ErrorHolder held(error);
  if (held) Fail(doing, rd_kafka_error_string(error));
}

using DeliveryReport = void (*)(rd_kafka_t*, const rd_kafka_message_t*, void*);

rd_kafka_t* NewHandle(rd_kafka_type_t type, const KafkaConfig& config, void* opaque = nullptr,
                      DeliveryReport report = nullptr) {
  char why[512];
  rd_kafka_conf_t* conf = rd_kafka_conf_new();
  for (const auto& [name, value] : config) {
    if (rd_kafka_conf_set(conf, name.c_str(), value.c_str(), why, sizeof(why)) !=
        RD_KAFKA_CONF_OK) {
      rd_kafka_conf_destroy(conf);
      Fail(name, why);
    }
  }
  rd_kafka_conf_set_opaque(conf, opaque);
  if (report != nullptr) rd_kafka_conf_set_dr_msg_cb(conf, report);
  rd_kafka_t* handle = rd_kafka_new(type, conf, why, sizeof(why));
  if (handle == nullptr) Fail("new client", why);
  return handle;
}

KafkaConfig Base(const std::string& bootstrap, const KafkaConfig& more) {
  KafkaConfig config{{"bootstrap.servers", bootstrap},
                     {"log_level", "0"},
                     {"allow.auto.create.topics", "false"},
                     {"reconnect.backoff.max.ms", "200"},
                     {"topic.metadata.refresh.interval.ms", "500"}};
  for (const auto& [name, value] : more) config[name] = value;
  return config;
}

// One administrative call: `send` sends it, the answer is an event of one result a topic.
Event Call(rd_kafka_t* handle, rd_kafka_admin_op_t kind, const std::string& doing,
           const std::function<void(rd_kafka_AdminOptions_t*, rd_kafka_queue_t*)>& send) {
  const Queue queue(rd_kafka_queue_new(handle));
  const Options options(rd_kafka_AdminOptions_new(handle, kind));
  char why[256];
  Require(rd_kafka_AdminOptions_set_request_timeout(options.get(), kCallMs, why, sizeof(why)),
          doing);
  send(options.get(), queue.get());
  Event event(rd_kafka_queue_poll(queue.get(), kCallMs + 5000));
  if (!event) Fail(doing, "no answer");
  if (rd_kafka_event_error(event.get()) != RD_KAFKA_RESP_ERR_NO_ERROR) {
    Fail(doing, rd_kafka_event_error_string(event.get()));
  }
  return event;
}

void RequireTopics(const rd_kafka_topic_result_t** results, std::size_t count,
                   const std::string& doing) {
  for (std::size_t i = 0; i < count; ++i) {
    if (rd_kafka_topic_result_error(results[i]) != RD_KAFKA_RESP_ERR_NO_ERROR) {
      Fail(doing, rd_kafka_topic_result_error_string(results[i]));
    }
  }
}

// Partitions that have a leader; 0 when the topic is unknown.
int PartitionsWithLeader(rd_kafka_t* handle, const std::string& topic) {
  const struct rd_kafka_metadata* raw = nullptr;
  const Holder<rd_kafka_topic_t, &rd_kafka_topic_destroy> only(
      rd_kafka_topic_new(handle, topic.c_str(), nullptr));
  if (rd_kafka_metadata(handle, 0, only.get(), &raw, 5000) != RD_KAFKA_RESP_ERR_NO_ERROR) return 0;
  const Metadata metadata(raw);
  if (metadata->topic_cnt != 1 || metadata->topics[0].err != RD_KAFKA_RESP_ERR_NO_ERROR) return 0;
  int count = 0;
  for (int p = 0; p < metadata->topics[0].partition_cnt; ++p) {
    if (metadata->topics[0].partitions[p].leader >= 0) ++count;
  }
  return count;
}

// The first offsets of the partitions, or their ends as far as the handle's isolation lets it see.
std::vector<std::int64_t> Watermarks(rd_kafka_t* handle, const std::string& topic, bool end) {
  std::vector<std::int64_t> offsets;
  const int count = PartitionsWithLeader(handle, topic);
  for (int p = 0; p < count; ++p) {
    std::int64_t low = 0;
    std::int64_t high = 0;
    Require(rd_kafka_query_watermark_offsets(handle, topic.c_str(), p, &low, &high, kCallMs),
            "watermarks of " + topic);
    offsets.push_back(end ? high : low);
  }
  return offsets;
}

std::optional<std::string> Bytes(const void* data, std::size_t size) {
  if (data == nullptr) return std::nullopt;
  return std::string(static_cast<const char*>(data), size);
}

TestRecord ToRecord(const rd_kafka_message_t* message) {
  TestRecord record;
  record.topic = rd_kafka_topic_name(message->rkt);
  record.partition = message->partition;
  record.offset = message->offset;
  record.key = Bytes(message->key, message->key_len);
  record.value = Bytes(message->payload, message->len);
  record.timestamp_ms = rd_kafka_message_timestamp(message, nullptr);
  rd_kafka_headers_t* headers = nullptr;
  if (rd_kafka_message_headers(message, &headers) == RD_KAFKA_RESP_ERR_NO_ERROR) {
    const char* name = nullptr;
    const void* value = nullptr;
    std::size_t size = 0;
    for (std::size_t i = 0;
         rd_kafka_header_get_all(headers, i, &name, &value, &size) == RD_KAFKA_RESP_ERR_NO_ERROR;
         ++i) {
      record.headers.emplace_back(name, Bytes(value, size));
    }
  }
  return record;
}

// What the group has committed of all partitions.
Partitions Committed(const std::string& bootstrap, const std::string& group,
                     const std::string& topic, int count) {
  Partitions list(rd_kafka_topic_partition_list_new(count));
  for (int p = 0; p < count; ++p) rd_kafka_topic_partition_list_add(list.get(), topic.c_str(), p);
  // A broker that was too busy for its controller is not the coordinator for a moment.
  rd_kafka_resp_err_t error = RD_KAFKA_RESP_ERR_NO_ERROR;
  (void)WaitUntil(std::chrono::milliseconds(kCallMs), [&] {
    const Handle member(NewHandle(RD_KAFKA_CONSUMER, Base(bootstrap, {{"group.id", group}})));
    error = rd_kafka_committed(member.get(), list.get(), kCallMs);
    return error != RD_KAFKA_RESP_ERR_NOT_COORDINATOR;
  });
  Require(error, "committed offsets of " + group);
  return list;
}

}  // namespace

std::optional<std::string> TestRecord::Header(const std::string& name) const {
  for (const auto& [key_name, header] : headers) {
    if (key_name == name) return header;
  }
  return std::nullopt;
}

// --- KafkaAdmin
// ------------------------------------------------------------------------------------

KafkaAdmin::KafkaAdmin(std::string bootstrap, const KafkaConfig& config)
    : bootstrap_(std::move(bootstrap)) {
  KafkaConfig all = Base(bootstrap_, config);
  all["isolation.level"] = "read_uncommitted";  // ends are high watermarks
  all["group.id"] = "none";
  handle_ = NewHandle(RD_KAFKA_CONSUMER, all);
}

KafkaAdmin::~KafkaAdmin() { rd_kafka_destroy(handle_); }

bool KafkaAdmin::Answers(Deadline limit) {
  const struct rd_kafka_metadata* raw = nullptr;
  const auto error = rd_kafka_metadata(handle_, 1, nullptr, &raw, static_cast<int>(limit.count()));
  if (error != RD_KAFKA_RESP_ERR_NO_ERROR) return false;
  const Metadata metadata(raw);
  return metadata->broker_cnt > 0;
}

bool KafkaAdmin::Exists(const std::string& topic) {
  return PartitionsWithLeader(handle_, topic) > 0;
}

std::string KafkaAdmin::ClusterId() {
  char* id = rd_kafka_clusterid(handle_, kCallMs);
  if (id == nullptr) Fail("cluster id", "no answer");
  std::string copy(id);
  rd_kafka_mem_free(handle_, id);
  return copy;
}

void KafkaAdmin::AddRule(int kind, const std::string& name, const std::string& user,
                         int operation) {
  const std::string doing = "rights of " + user;
  char why[256];
  const Holder<rd_kafka_AclBinding_t, &rd_kafka_AclBinding_destroy> rule(rd_kafka_AclBinding_new(
      static_cast<rd_kafka_ResourceType_t>(kind), name.c_str(), RD_KAFKA_RESOURCE_PATTERN_LITERAL,
      user.c_str(), "*", static_cast<rd_kafka_AclOperation_t>(operation),
      RD_KAFKA_ACL_PERMISSION_TYPE_ALLOW, why, sizeof(why)));
  if (!rule) Fail(doing, why);
  (void)Call(handle_, RD_KAFKA_ADMIN_OP_CREATEACLS, doing, [&](auto* options, auto* queue) {
    rd_kafka_AclBinding_t* rules[] = {rule.get()};
    rd_kafka_CreateAcls(handle_, rules, 1, options, queue);
  });
}

void KafkaAdmin::Allow(const std::string& user, Right right, const std::string& topic) {
  constexpr rd_kafka_AclOperation_t kOperations[] = {
      RD_KAFKA_ACL_OPERATION_READ, RD_KAFKA_ACL_OPERATION_WRITE, RD_KAFKA_ACL_OPERATION_DESCRIBE};
  AddRule(RD_KAFKA_RESOURCE_TOPIC, topic, user, kOperations[static_cast<int>(right)]);
}

void KafkaAdmin::AllowGroup(const std::string& user, const std::string& group) {
  AddRule(RD_KAFKA_RESOURCE_GROUP, group, user, RD_KAFKA_ACL_OPERATION_READ);
}

void KafkaAdmin::CreateTopic(const std::string& topic, int partitions, const KafkaConfig& config) {
  const std::string doing = "create topic " + topic;
  char why[256];
  Holder<rd_kafka_NewTopic_t, &rd_kafka_NewTopic_destroy> made(
      rd_kafka_NewTopic_new(topic.c_str(), partitions, 1, why, sizeof(why)));
  if (!made) Fail(doing, why);
  for (const auto& [name, value] : config) {
    Require(rd_kafka_NewTopic_set_config(made.get(), name.c_str(), value.c_str()), doing);
  }
  const Event event =
      Call(handle_, RD_KAFKA_ADMIN_OP_CREATETOPICS, doing, [&](auto* options, auto* queue) {
        rd_kafka_NewTopic_t* topics[] = {made.get()};
        rd_kafka_CreateTopics(handle_, topics, 1, options, queue);
      });
  std::size_t count = 0;
  const auto* result = rd_kafka_event_CreateTopics_result(event.get());
  RequireTopics(rd_kafka_CreateTopics_result_topics(result, &count), count, doing);
  RequireWithin(
      std::chrono::seconds(30), [&] { return PartitionsWithLeader(handle_, topic) == partitions; },
      doing);
}

void KafkaAdmin::DeleteTopic(const std::string& topic) {
  const std::string doing = "delete topic " + topic;
  Holder<rd_kafka_DeleteTopic_t, &rd_kafka_DeleteTopic_destroy> old(
      rd_kafka_DeleteTopic_new(topic.c_str()));
  const Event event =
      Call(handle_, RD_KAFKA_ADMIN_OP_DELETETOPICS, doing, [&](auto* options, auto* queue) {
        rd_kafka_DeleteTopic_t* topics[] = {old.get()};
        rd_kafka_DeleteTopics(handle_, topics, 1, options, queue);
      });
  std::size_t count = 0;
  const auto* result = rd_kafka_event_DeleteTopics_result(event.get());
  RequireTopics(rd_kafka_DeleteTopics_result_topics(result, &count), count, doing);
  RequireWithin(
      std::chrono::seconds(30), [&] { return PartitionsWithLeader(handle_, topic) == 0; }, doing);
}

void KafkaAdmin::SetTopicConfig(const std::string& topic, const std::string& name,
                                const std::string& value) {
  Holder<rd_kafka_ConfigResource_t, &rd_kafka_ConfigResource_destroy> resource(
      rd_kafka_ConfigResource_new(RD_KAFKA_RESOURCE_TOPIC, topic.c_str()));
  Require(rd_kafka_ConfigResource_set_config(resource.get(), name.c_str(), value.c_str()), name);
  const Event event =
      Call(handle_, RD_KAFKA_ADMIN_OP_ALTERCONFIGS, "set " + name, [&](auto* options, auto* queue) {
        rd_kafka_ConfigResource_t* all[] = {resource.get()};
        rd_kafka_AlterConfigs(handle_, all, 1, options, queue);
      });
  std::size_t count = 0;
  const auto* result = rd_kafka_event_AlterConfigs_result(event.get());
  const auto* const* answers = rd_kafka_AlterConfigs_result_resources(result, &count);
  for (std::size_t i = 0; i < count; ++i) {
    Require(rd_kafka_ConfigResource_error(answers[i]), "set " + name);
  }
}

void KafkaAdmin::AddPartitions(const std::string& topic, int total) {
  const std::string doing = "add partitions to " + topic;
  char why[256];
  Holder<rd_kafka_NewPartitions_t, &rd_kafka_NewPartitions_destroy> more(
      rd_kafka_NewPartitions_new(topic.c_str(), static_cast<std::size_t>(total), why, sizeof(why)));
  if (!more) Fail(doing, why);
  const Event event =
      Call(handle_, RD_KAFKA_ADMIN_OP_CREATEPARTITIONS, doing, [&](auto* options, auto* queue) {
        rd_kafka_NewPartitions_t* topics[] = {more.get()};
        rd_kafka_CreatePartitions(handle_, topics, 1, options, queue);
      });
  std::size_t count = 0;
  const auto* result = rd_kafka_event_CreatePartitions_result(event.get());
  RequireTopics(rd_kafka_CreatePartitions_result_topics(result, &count), count, doing);
  RequireWithin(
      std::chrono::seconds(30), [&] { return PartitionsWithLeader(handle_, topic) == total; },
      doing);
}

void KafkaAdmin::DeleteRecordsBefore(const std::string& topic, std::int32_t partition,
                                     std::int64_t offset) {
  const std::string doing = "delete records of " + topic;
  const Partitions before(rd_kafka_topic_partition_list_new(1));
  rd_kafka_topic_partition_list_add(before.get(), topic.c_str(), partition)->offset = offset;
  Holder<rd_kafka_DeleteRecords_t, &rd_kafka_DeleteRecords_destroy> request(
      rd_kafka_DeleteRecords_new(before.get()));
  const Event event =
      Call(handle_, RD_KAFKA_ADMIN_OP_DELETERECORDS, doing, [&](auto* options, auto* queue) {
        rd_kafka_DeleteRecords_t* requests[] = {request.get()};
        rd_kafka_DeleteRecords(handle_, requests, 1, options, queue);
      });
  const auto* offsets =
      rd_kafka_DeleteRecords_result_offsets(rd_kafka_event_DeleteRecords_result(event.get()));
  for (int i = 0; i < offsets->cnt; ++i) Require(offsets->elems[i].err, doing);
}

std::vector<std::int64_t> KafkaAdmin::EndOffsets(const std::string& topic) {
  return Watermarks(handle_, topic, true);
}

std::vector<std::int64_t> KafkaAdmin::StartOffsets(const std::string& topic) {
  return Watermarks(handle_, topic, false);
}

std::vector<std::int64_t> KafkaAdmin::CommittedOffsets(const std::string& group,
                                                       const std::string& topic) {
  const Partitions list = Committed(bootstrap_, group, topic, PartitionsWithLeader(handle_, topic));
  std::vector<std::int64_t> offsets;
  for (int i = 0; i < list->cnt; ++i) {
    offsets.push_back(std::max<std::int64_t>(list->elems[i].offset, -1));
  }
  return offsets;
}

std::vector<std::string> KafkaAdmin::CommittedMetadata(const std::string& group,
                                                       const std::string& topic) {
  const Partitions list = Committed(bootstrap_, group, topic, PartitionsWithLeader(handle_, topic));
  std::vector<std::string> all;
  for (int i = 0; i < list->cnt; ++i) {
    const auto& one = list->elems[i];
    all.emplace_back(static_cast<const char*>(one.metadata), one.metadata_size);
  }
  return all;
}

void KafkaAdmin::CommitOffsets(const std::string& group, const std::string& topic,
                               const std::vector<std::int64_t>& offsets,
                               const std::vector<std::string>& metadata) {
  const Handle member(NewHandle(RD_KAFKA_CONSUMER, Base(bootstrap_, {{"group.id", group}})));
  const Partitions list(rd_kafka_topic_partition_list_new(static_cast<int>(offsets.size())));
  for (std::size_t p = 0; p < offsets.size(); ++p) {
    auto* entry =
        rd_kafka_topic_partition_list_add(list.get(), topic.c_str(), static_cast<std::int32_t>(p));
    entry->offset = offsets[p];
    if (p >= metadata.size() || metadata[p].empty()) continue;
    entry->metadata = std::malloc(metadata[p].size());  // librdkafka frees it
    entry->metadata_size = metadata[p].copy(static_cast<char*>(entry->metadata), std::string::npos);
  }
  Require(rd_kafka_commit(member.get(), list.get(), 0), "commit offsets of " + group);
  for (int i = 0; i < list->cnt; ++i) Require(list->elems[i].err, "commit offsets of " + group);
}

// --- TestProducer
// ----------------------------------------------------------------------------------

TestProducer::TestProducer(const std::string& bootstrap, const std::string& transactional_id,
                           const KafkaConfig& config) {
  KafkaConfig all = Base(bootstrap, config);
  all.try_emplace("linger.ms", "2");
  all.try_emplace("enable.idempotence", "true");
  if (!transactional_id.empty()) all["transactional.id"] = transactional_id;
  const DeliveryReport report = [](rd_kafka_t*, const rd_kafka_message_t* message, void* opaque) {
    if (message->err == RD_KAFKA_RESP_ERR_NO_ERROR) return;
    auto* self = static_cast<TestProducer*>(opaque);
    if (self->failed_++ == 0) self->first_error_ = rd_kafka_err2str(message->err);
  };
  handle_ = NewHandle(RD_KAFKA_PRODUCER, all, this, report);
  if (transactional_id.empty()) return;
  try {
    Require(rd_kafka_init_transactions(handle_, kCallMs), "init_transactions");
  } catch (...) {
    rd_kafka_destroy(handle_);
    throw;
  }
}

TestProducer::~TestProducer() { rd_kafka_destroy(handle_); }

void TestProducer::Send(const TestRecord& record) {
  std::vector<rd_kafka_vu_t> parts;
  const auto add = [&parts](rd_kafka_vtype_t type) -> rd_kafka_vu_t& {
    rd_kafka_vu_t part{};
    part.vtype = type;
    return parts.emplace_back(part);
  };
  add(RD_KAFKA_VTYPE_TOPIC).u.cstr = record.topic.c_str();
  add(RD_KAFKA_VTYPE_PARTITION).u.i32 = record.partition;
  add(RD_KAFKA_VTYPE_MSGFLAGS).u.i = RD_KAFKA_MSG_F_COPY | RD_KAFKA_MSG_F_BLOCK;
  if (record.timestamp_ms != 0) add(RD_KAFKA_VTYPE_TIMESTAMP).u.i64 = record.timestamp_ms;
  const auto bytes = [](const std::optional<std::string>& text, rd_kafka_vu_t& part) {
    part.u.mem.ptr = text ? const_cast<char*>(text->data()) : nullptr;
    part.u.mem.size = text ? text->size() : 0;
  };
  bytes(record.key, add(RD_KAFKA_VTYPE_KEY));
  bytes(record.value, add(RD_KAFKA_VTYPE_VALUE));
  for (const auto& [name, value] : record.headers) {
    rd_kafka_vu_t& part = add(RD_KAFKA_VTYPE_HEADER);
    part.u.header.name = name.c_str();
    part.u.header.val = value ? value->data() : nullptr;
    part.u.header.size = value ? static_cast<ssize_t>(value->size()) : 0;
  }
  Require(rd_kafka_produceva(handle_, parts.data(), parts.size()), "produce to " + record.topic);
  rd_kafka_poll(handle_, 0);
}

void TestProducer::Send(const std::string& topic, std::int32_t partition,
                        std::optional<std::string> key, std::optional<std::string> value) {
  TestRecord record;
  record.topic = topic;
  record.partition = partition;
  record.key = std::move(key);
  record.value = std::move(value);
  Send(record);
}

void TestProducer::Flush() {
  Require(rd_kafka_flush(handle_, kFlushMs), "flush");
  if (failed_ > 0) Fail("produce", fmt::format("{} records refused: {}", failed_, first_error_));
}

void TestProducer::Begin() { Require(rd_kafka_begin_transaction(handle_), "begin_transaction"); }

void TestProducer::Commit() {
  Flush();
  Require(rd_kafka_commit_transaction(handle_, kCallMs), "commit_transaction");
}

void TestProducer::Abort() {
  Flush();  // an abort with records in flight can end in a fatal INVALID_TXN_STATE
  Require(rd_kafka_abort_transaction(handle_, kCallMs), "abort_transaction");
}

// --- ReadTopic
// -------------------------------------------------------------------------------------

// Brokers answer a commit before its markers are in every partition, and until then nobody sees its
// records. A transaction that stays open for longer than this one is the test's own.
void WaitForMarkers(rd_kafka_t* committed, const std::string& bootstrap, const std::string& topic) {
  const Handle all(NewHandle(
      RD_KAFKA_CONSUMER,
      Base(bootstrap, {{"group.id", "reader"}, {"isolation.level", "read_uncommitted"}})));
  WaitUntil(std::chrono::seconds(5), [&] {
    try {
      const auto ends = Watermarks(all.get(), topic, true);
      const auto seen = Watermarks(committed, topic, true);
      return !ends.empty() &&
             std::equal(ends.begin(), ends.end(), seen.begin(), seen.end(), std::less_equal<>());
    } catch (const std::runtime_error&) {
      return false;  // a broker that was away has not led its partitions again yet
    }
  });
}

std::vector<TestRecord> ReadTopic(const std::string& bootstrap, const std::string& topic,
                                  bool read_committed, Deadline limit) {
  const Handle reader(NewHandle(
      RD_KAFKA_CONSUMER,
      Base(bootstrap,
           {{"group.id", "reader"},
            {"enable.auto.commit", "false"},
            {"enable.partition.eof", "true"},
            {"fetch.wait.max.ms", "50"},
            {"isolation.level", read_committed ? "read_committed" : "read_uncommitted"}})));
  int count = 0;  // a broker that has just been started says so of any topic
  const auto known =
      WaitUntil(limit, [&] { return (count = PartitionsWithLeader(reader.get(), topic)) > 0; });
  if (!known) Fail("read " + topic, "no such topic");
  const Partitions all(rd_kafka_topic_partition_list_new(count));
  for (int p = 0; p < count; ++p) {
    rd_kafka_topic_partition_list_add(all.get(), topic.c_str(), p)->offset =
        RD_KAFKA_OFFSET_BEGINNING;
  }
  if (read_committed) WaitForMarkers(reader.get(), bootstrap, topic);
  Require(rd_kafka_assign(reader.get(), all.get()), "assign");

  std::vector<TestRecord> records;
  std::vector<bool> ended(static_cast<std::size_t>(count));
  auto end = std::chrono::steady_clock::now() + limit;
  while (std::find(ended.begin(), ended.end(), false) != ended.end()) {
    if (std::chrono::steady_clock::now() >= end) Fail("read " + topic, "did not reach the end");
    const Holder<rd_kafka_message_t, &rd_kafka_message_destroy> message(
        rd_kafka_consumer_poll(reader.get(), 100));
    if (!message) continue;
    if (message->err == RD_KAFKA_RESP_ERR__PARTITION_EOF) {
      ended[static_cast<std::size_t>(message->partition)] = true;
    } else if (message->err == RD_KAFKA_RESP_ERR_NO_ERROR) {
      records.push_back(ToRecord(message.get()));
      end = std::chrono::steady_clock::now() + limit;
    }
  }
  std::stable_sort(records.begin(), records.end(), [](const TestRecord& a, const TestRecord& b) {
    return std::pair(a.partition, a.offset) < std::pair(b.partition, b.offset);
  });
  rd_kafka_consumer_close(reader.get());
  return records;
}

}  // namespace fencepost::testing
