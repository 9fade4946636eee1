#include "consumer/kafka/client/admin.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "consumer/kafka/client/settings.h"

namespace fencepost::consumer {
namespace {

tl::unexpected<Error> Failed(const std::string& where, const std::string& what) {
  return tl::unexpected(Error{"kafka_admin", what, where, ""});
}

// Sends one request, and waits for its answer.
template <typename Send>
tl::expected<rdkafka::Event, Error> Request(rd_kafka_t* handle, rd_kafka_admin_op_t operation,
                                            Millis limit, const std::string& where, Send send) {
  char why[512];
  const rdkafka::Queue queue(rd_kafka_queue_new(handle));
  const rdkafka::AdminOptions options(rd_kafka_AdminOptions_new(handle, operation));
  rd_kafka_AdminOptions_set_request_timeout(options.get(), Ms(limit), why, sizeof(why));
  send(options.get(), queue.get());
  rdkafka::Event event(rd_kafka_queue_poll(queue.get(), Ms(limit) + 1000));
  if (!event) return Failed(where, "no answer");
  if (rd_kafka_event_error(event.get()) != RD_KAFKA_RESP_ERR_NO_ERROR) {
    return Failed(where, rd_kafka_event_error_string(event.get()));
  }
  return event;
}

rdkafka::PartitionList PartitionsOf(const std::vector<KnownTopic>& topics, Offset offset) {
  rdkafka::PartitionList list = rdkafka::MakeList(topics.size());
  for (const KnownTopic& topic : topics) {
    for (int p = 0; p < topic.partitions; ++p) {
      rd_kafka_topic_partition_list_add(list.get(), topic.name.c_str(), p)->offset = offset;
    }
  }
  return list;
}

// The list's offsets, where `error` is none.
tl::expected<std::vector<Offset>, Error> OffsetsOf(const rdkafka::PartitionList& list,
                                                   rd_kafka_resp_err_t error) {
  std::vector<Offset> offsets;
  std::string where;
  for (int i = 0; i < list->cnt && error == RD_KAFKA_RESP_ERR_NO_ERROR; ++i) {
    error = list->elems[i].err;
    where = list->elems[i].topic;
    offsets.push_back(std::max<Offset>(list->elems[i].offset, -1));
  }
  if (error != RD_KAFKA_RESP_ERR_NO_ERROR) return Failed(where, rd_kafka_err2str(error));
  return offsets;
}

// Of this topic alone, which is there.
tl::expected<rdkafka::Metadata, rd_kafka_resp_err_t> AskTopic(rd_kafka_t* handle,
                                                              const std::string& topic,
                                                              Millis limit) {
  const rdkafka::Topic only(rd_kafka_topic_new(handle, topic.c_str(), nullptr));
  if (only == nullptr) return tl::unexpected(RD_KAFKA_RESP_ERR__UNKNOWN_TOPIC);
  const rd_kafka_metadata_t* raw = nullptr;
  auto error = rd_kafka_metadata(handle, 0, only.get(), &raw, Ms(limit));
  if (error != RD_KAFKA_RESP_ERR_NO_ERROR) return tl::unexpected(error);
  rdkafka::Metadata metadata(raw);
  error = metadata->topic_cnt == 1 ? metadata->topics[0].err : RD_KAFKA_RESP_ERR__UNKNOWN_TOPIC;
  if (error != RD_KAFKA_RESP_ERR_NO_ERROR) return tl::unexpected(error);
  return metadata;
}

}  // namespace

tl::expected<int, rd_kafka_resp_err_t> AskPartitionCount(rd_kafka_t* handle,
                                                         const std::string& topic, Millis limit) {
  const auto asked = AskTopic(handle, topic, limit);
  if (!asked) return tl::unexpected(asked.error());
  return (*asked)->topics[0].partition_cnt;
}

std::optional<int> PartitionWithoutLeader(rd_kafka_t* handle, const std::string& topic,
                                          Millis limit) {
  const auto asked = AskTopic(handle, topic, limit);
  if (!asked) return std::nullopt;
  const rd_kafka_metadata_topic& one = (*asked)->topics[0];
  for (int i = 0; i < one.partition_cnt; ++i) {
    if (one.partitions[i].leader < 0) return one.partitions[i].id;
  }
  return std::nullopt;
}

tl::expected<std::vector<KnownTopic>, rd_kafka_resp_err_t> AskTopics(rd_kafka_t* handle,
                                                                     const ReadTopics& read,
                                                                     Millis limit) {
  std::vector<KnownTopic> topics;
  if (read.pattern().empty()) {
    for (const std::string& name : read.names()) {
      const auto count = AskPartitionCount(handle, name, limit);
      if (!count) return tl::unexpected(count.error());
      topics.push_back({name, *count});
    }
  } else {
    const rd_kafka_metadata_t* raw = nullptr;
    const auto error = rd_kafka_metadata(handle, 1, nullptr, &raw, Ms(limit));
    if (error != RD_KAFKA_RESP_ERR_NO_ERROR) return tl::unexpected(error);
    const rdkafka::Metadata metadata(raw);
    for (int i = 0; i < metadata->topic_cnt; ++i) {
      const rd_kafka_metadata_topic& one = metadata->topics[i];
      if (one.err == RD_KAFKA_RESP_ERR_NO_ERROR && read.Has(one.topic))
        topics.push_back({one.topic, one.partition_cnt});
    }
  }
  std::ranges::sort(topics, {}, &KnownTopic::name);
  return topics;
}

tl::expected<std::unique_ptr<KafkaAdmin>, Error> KafkaAdmin::Make(const KafkaOptions& options) {
  KafkaSettings settings = ConnectionSettings(options);
  settings["group.id"] = options.group.empty() ? "fencepost-admin" : options.group;
  settings["enable.auto.commit"] = "false";
  settings["isolation.level"] = "read_uncommitted";  // ends are high watermarks
  settings["log_level"] = "0";
  auto conf = MakeConf(settings);
  if (!conf) return tl::unexpected(conf.error());
  auto handle = MakeHandle(RD_KAFKA_CONSUMER, *conf);
  if (!handle) return tl::unexpected(handle.error());
  return std::unique_ptr<KafkaAdmin>(new KafkaAdmin(handle->release()));
}

tl::expected<bool, Error> SameCluster(const KafkaOptions& one, const KafkaOptions& other,
                                      Millis limit) {
  std::vector<std::string> ids;
  for (const KafkaOptions* options : {&one, &other}) {
    const auto admin = KafkaAdmin::Make(*options);
    if (!admin) return tl::unexpected(admin.error());
    auto id = (*admin)->ClusterId(limit);
    if (!id) return tl::unexpected(id.error());
    ids.push_back(std::move(*id));
  }
  return ids.front() == ids.back();
}

tl::expected<std::string, Error> KafkaAdmin::ClusterId(Millis limit) {
  char* id = rd_kafka_clusterid(handle_.get(), Ms(limit));
  if (id == nullptr) {
    return tl::unexpected(Error{"kafka_unreachable", "no broker answers", "kafka.brokers",
                                "check the addresses, and TLS and SASL"});
  }
  std::string copy(id);
  rd_kafka_mem_free(handle_.get(), id);
  return copy;
}

tl::expected<void, Error> KafkaAdmin::CreateTopic(const std::string& topic, int partitions,
                                                  int replication, Millis limit) {
  char why[512];
  const rdkafka::NewTopic made(
      rd_kafka_NewTopic_new(topic.c_str(), partitions, replication, why, sizeof(why)));
  if (!made) return Failed(topic, why);
  rd_kafka_NewTopic_t* one = made.get();
  const auto event = Request(handle_.get(), RD_KAFKA_ADMIN_OP_CREATETOPICS, limit, topic,
                             [&](const auto* options, auto* queue) {
                               rd_kafka_CreateTopics(handle_.get(), &one, 1, options, queue);
                             });
  if (!event) return tl::unexpected(event.error());
  std::size_t count = 0;
  const auto* results =
      rd_kafka_CreateTopics_result_topics(rd_kafka_event_CreateTopics_result(event->get()), &count);
  for (std::size_t i = 0; i < count; ++i) {
    const auto error = rd_kafka_topic_result_error(results[i]);
    if (error == RD_KAFKA_RESP_ERR_NO_ERROR) continue;
    const char* text = rd_kafka_topic_result_error_string(results[i]);
    return tl::unexpected(
        Error{error == RD_KAFKA_RESP_ERR_TOPIC_ALREADY_EXISTS ? "topic_exists" : "kafka_admin",
              text == nullptr ? rd_kafka_err2str(error) : text, topic, ""});
  }
  return {};
}

tl::expected<void, Error> KafkaAdmin::DeleteRecords(const std::vector<Before>& records,
                                                    Millis limit) {
  const rdkafka::PartitionList list = rdkafka::MakeList(records.size());
  for (const auto& [where, offset] : records) {
    rd_kafka_topic_partition_list_add(list.get(), where.topic.c_str(), where.partition)->offset =
        offset;
  }
  const rdkafka::DeleteRecords request(rd_kafka_DeleteRecords_new(list.get()));
  rd_kafka_DeleteRecords_t* one = request.get();
  const auto event = Request(handle_.get(), RD_KAFKA_ADMIN_OP_DELETERECORDS, limit,
                             records.front().where.topic, [&](const auto* options, auto* queue) {
                               rd_kafka_DeleteRecords(handle_.get(), &one, 1, options, queue);
                             });
  if (!event) return tl::unexpected(event.error());
  const rd_kafka_topic_partition_list_t* answers =
      rd_kafka_DeleteRecords_result_offsets(rd_kafka_event_DeleteRecords_result(event->get()));
  for (int i = 0; i < answers->cnt; ++i) {
    const rd_kafka_topic_partition_t& answer = answers->elems[i];
    if (answer.err == RD_KAFKA_RESP_ERR_NO_ERROR) continue;
    return Failed(fmt::format("{}/{}", answer.topic, answer.partition),
                  rd_kafka_err2str(answer.err));
  }
  return {};
}

namespace {

using Groups = rdkafka::Holder<const rd_kafka_group_list, &rd_kafka_group_list_destroy>;

// Of one group; empty: there is none.
tl::expected<Groups, Error> AskGroup(rd_kafka_t* handle, const std::string& group, Millis limit) {
  const rd_kafka_group_list* raw = nullptr;
  const auto error = rd_kafka_list_groups(handle, group.c_str(), &raw, Ms(limit));
  Groups list(raw);
  const bool partial = error == RD_KAFKA_RESP_ERR__PARTIAL && list && list->group_cnt == 1;
  if (error != RD_KAFKA_RESP_ERR_NO_ERROR && !partial) {
    return Failed(group, rd_kafka_err2str(error));
  }
  if (list->group_cnt != 1) list.reset();
  if (list && list->groups[0].err != RD_KAFKA_RESP_ERR_NO_ERROR) {
    return Failed(group, rd_kafka_err2str(list->groups[0].err));
  }
  return list;
}

}  // namespace

tl::expected<std::string, Error> KafkaAdmin::GroupProtocol(const std::string& group, Millis limit) {
  return AskGroup(handle_.get(), group, limit).map([](const Groups& list) -> std::string {
    return list && list->groups[0].protocol != nullptr ? list->groups[0].protocol : "";
  });
}

tl::expected<std::vector<KafkaAdmin::Member>, Error> KafkaAdmin::Members(const std::string& group,
                                                                         Millis limit) {
  return AskGroup(handle_.get(), group, limit).map([](const Groups& list) {
    std::vector<Member> members;
    for (int i = 0; list && i < list->groups[0].member_cnt; ++i) {
      const rd_kafka_group_member_info& one = list->groups[0].members[i];
      const std::string host(one.client_host == nullptr ? "" : one.client_host);
      members.push_back({.name = MemberNameIn(one.client_id == nullptr ? "" : one.client_id),
                         .host = host.substr(host.rfind('/') + 1)});
    }
    return members;
  });
}

tl::expected<TopicRules, Error> KafkaAdmin::RulesOf(const std::string& topic, Millis limit) {
  const rdkafka::ConfigResource resource(
      rd_kafka_ConfigResource_new(RD_KAFKA_RESOURCE_TOPIC, topic.c_str()));
  rd_kafka_ConfigResource_t* one = resource.get();
  const auto event = Request(handle_.get(), RD_KAFKA_ADMIN_OP_DESCRIBECONFIGS, limit, topic,
                             [&](const auto* options, auto* queue) {
                               rd_kafka_DescribeConfigs(handle_.get(), &one, 1, options, queue);
                             });
  if (!event) return tl::unexpected(event.error());
  std::size_t count = 0;
  const auto* answers = rd_kafka_DescribeConfigs_result_resources(
      rd_kafka_event_DescribeConfigs_result(event->get()), &count);
  if (count != 1) return Failed(topic, "no answer about the topic");
  if (const auto error = rd_kafka_ConfigResource_error(answers[0]);
      error != RD_KAFKA_RESP_ERR_NO_ERROR) {
    return Failed(topic, rd_kafka_err2str(error));
  }
  const auto* entries = rd_kafka_ConfigResource_configs(answers[0], &count);
  KafkaSettings settings;
  for (std::size_t i = 0; i < count; ++i) {
    const char* value = rd_kafka_ConfigEntry_value(entries[i]);
    if (value != nullptr) settings[rd_kafka_ConfigEntry_name(entries[i])] = value;
  }
  return TopicRules::Of(settings);
}

tl::expected<std::vector<KnownTopic>, Error> KafkaAdmin::Topics(const ReadTopics& read,
                                                                Millis limit) {
  auto topics = AskTopics(handle_.get(), read, limit);
  if (topics) return std::move(*topics);
  const std::string names(fmt::format("{}", fmt::join(read.names(), ", ")));
  if (topics.error() != RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART)
    return Failed(names, rd_kafka_err2str(topics.error()));
  return tl::unexpected(Error{"topic_missing", "the topic does not exist", names, "create it"});
}

tl::expected<std::vector<Offset>, Error> KafkaAdmin::EndOffsets(
    const std::vector<KnownTopic>& topics, Millis limit) {
  const auto list = PartitionsOf(topics, RD_KAFKA_OFFSET_END);
  const auto error = rd_kafka_offsets_for_times(handle_.get(), list.get(), Ms(limit));
  return OffsetsOf(list, error);
}

tl::expected<std::vector<Offset>, Error> KafkaAdmin::CommittedOffsets(
    const std::vector<KnownTopic>& topics, Millis limit) {
  const auto list = PartitionsOf(topics, RD_KAFKA_OFFSET_INVALID);
  const auto error = rd_kafka_committed(handle_.get(), list.get(), Ms(limit));
  return OffsetsOf(list, error);
}

tl::expected<std::vector<Offset>, Error> KafkaAdmin::EndOffsets(const std::string& topic,
                                                                Millis limit) {
  return Topics({topic}, limit).and_then([&](const auto& one) { return EndOffsets(one, limit); });
}

tl::expected<std::vector<Offset>, Error> KafkaAdmin::CommittedOffsets(const std::string& topic,
                                                                      Millis limit) {
  return Topics({topic}, limit).and_then([&](const auto& one) {
    return CommittedOffsets(one, limit);
  });
}

}  // namespace fencepost::consumer
