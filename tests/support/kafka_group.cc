#include "tests/support/kafka_group.h"

#include <arpa/inet.h>
#include <librdkafka/rdkafka.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <cstdint>
#include <memory>
#include <stdexcept>

namespace fencepost::testing {
namespace {

constexpr int kCallMs = 10'000;

// Kafka's wire format: integers in network order, strings with their length before them.
std::string Int16(std::size_t value) {
  return {static_cast<char>(value >> 8), static_cast<char>(value)};
}
std::string Int32(std::size_t value) { return Int16(value >> 16) + Int16(value & 0xffff); }
std::string Text(const std::string& text) { return Int16(text.size()) + text; }

// Returns the broker's error code.
int Leave(const std::string& broker, const std::string& group, const std::string& member) {
  constexpr std::size_t kLeaveGroup = 13;
  const std::string body =
      Int16(kLeaveGroup) + Int16(0) + Int32(1) + Text("test") + Text(group) + Text(member);
  const std::string request = Int32(body.size()) + body;
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port =
      htons(static_cast<std::uint16_t>(std::stoi(broker.substr(broker.rfind(':') + 1))));
  address.sin_addr.s_addr = inet_addr(broker.substr(0, broker.rfind(':')).c_str());
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const timeval limit{kCallMs / 1000, 0};
  setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
  std::string answer(10, '\0');  // size, correlation id, error code
  const bool answered =
      connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0 &&
      send(fd, request.data(), request.size(), MSG_NOSIGNAL) ==
          static_cast<ssize_t>(request.size()) &&
      recv(fd, answer.data(), answer.size(), MSG_WAITALL) == static_cast<ssize_t>(answer.size());
  close(fd);
  if (!answered) throw std::runtime_error("kafka: LeaveGroup was not answered");
  return static_cast<unsigned char>(answer[8]) << 8 | static_cast<unsigned char>(answer[9]);
}

using Handle = std::unique_ptr<rd_kafka_t, decltype(&rd_kafka_destroy)>;

Handle ClientOf(const std::string& broker) {
  char why[512];
  rd_kafka_conf_t* conf = rd_kafka_conf_new();
  rd_kafka_conf_set(conf, "bootstrap.servers", broker.c_str(), why, sizeof(why));
  Handle handle(rd_kafka_new(RD_KAFKA_PRODUCER, conf, why, sizeof(why)), &rd_kafka_destroy);
  if (!handle) throw std::runtime_error(why);
  return handle;
}

}  // namespace

GroupView LookAtGroup(const std::string& broker, const std::string& group) {
  const Handle handle = ClientOf(broker);
  const rd_kafka_group_list* found = nullptr;
  auto error = rd_kafka_list_groups(handle.get(), group.c_str(), &found, kCallMs);
  const std::unique_ptr<const rd_kafka_group_list, decltype(&rd_kafka_group_list_destroy)> list(
      found, &rd_kafka_group_list_destroy);
  if (error == RD_KAFKA_RESP_ERR_NO_ERROR && list->group_cnt == 1) error = list->groups[0].err;
  if (error == RD_KAFKA_RESP_ERR_COORDINATOR_LOAD_IN_PROGRESS ||
      error == RD_KAFKA_RESP_ERR_COORDINATOR_NOT_AVAILABLE ||
      error == RD_KAFKA_RESP_ERR_NOT_COORDINATOR) {
    return {};
  }
  if (error != RD_KAFKA_RESP_ERR_NO_ERROR) throw std::runtime_error(rd_kafka_err2str(error));
  GroupView view;
  for (int g = 0; g < list->group_cnt; ++g) {
    view.state = list->groups[g].state;
    for (int m = 0; m < list->groups[g].member_cnt; ++m) {
      const rd_kafka_group_member_info& member = list->groups[g].members[m];
      view.members.emplace_back(member.member_id);
      view.assignments.append(static_cast<const char*>(member.member_assignment),
                              static_cast<std::size_t>(member.member_assignment_size));
    }
  }
  return view;
}

int RemoveMembers(const std::string& broker, const std::string& group) {
  const auto members = LookAtGroup(broker, group).members;
  for (const std::string& member : members) {
    const int error = Leave(broker, group, member);
    if (error == RD_KAFKA_RESP_ERR_UNKNOWN_MEMBER_ID) continue;  // its session has ended since
    if (error != 0) throw std::runtime_error("kafka: LeaveGroup: error " + std::to_string(error));
  }
  return static_cast<int>(members.size());
}

void DeleteGroup(const std::string& broker, const std::string& group) {
  const Handle handle = ClientOf(broker);
  const std::unique_ptr<rd_kafka_queue_t, decltype(&rd_kafka_queue_destroy)> queue(
      rd_kafka_queue_new(handle.get()), &rd_kafka_queue_destroy);
  const std::unique_ptr<rd_kafka_DeleteGroup_t, decltype(&rd_kafka_DeleteGroup_destroy)> old(
      rd_kafka_DeleteGroup_new(group.c_str()), &rd_kafka_DeleteGroup_destroy);
  rd_kafka_DeleteGroup_t* groups[] = {old.get()};
  rd_kafka_DeleteGroups(handle.get(), groups, 1, nullptr, queue.get());
  const std::unique_ptr<rd_kafka_event_t, decltype(&rd_kafka_event_destroy)> event(
      rd_kafka_queue_poll(queue.get(), kCallMs), &rd_kafka_event_destroy);
  if (!event) throw std::runtime_error("kafka: DeleteGroups was not answered");
  if (rd_kafka_event_error(event.get()) != RD_KAFKA_RESP_ERR_NO_ERROR) {
    throw std::runtime_error(rd_kafka_event_error_string(event.get()));
  }
  std::size_t count = 0;
  const auto* results =
      rd_kafka_DeleteGroups_result_groups(rd_kafka_event_DeleteGroups_result(event.get()), &count);
  for (std::size_t i = 0; i < count; ++i) {
    const rd_kafka_error_t* error = rd_kafka_group_result_error(results[i]);
    if (error != nullptr) throw std::runtime_error(rd_kafka_error_string(error));
  }
}

}  // namespace fencepost::testing
