#include "consumer/cli/dev/feeder.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include <fmt/format.h>

#include "consumer/cli/dev/dev_options.h"
#include "consumer/cli/dev/record_lines.h"
#include "consumer/cli/shared/command.h"

namespace fencepost::cli {
namespace {

using consumer::WorkerStatus;
using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr int kPollMs = 50;
constexpr seconds kLook{1};
constexpr seconds kQuiet{3};  // without a finished record: what it waits for is told
// Of the 5 MiB that the mock cluster keeps of a partition.
constexpr std::size_t kMostUnfinished = 1000, kMostUnfinishedBytes = 1u << 20;
constexpr std::size_t kRead = 64u << 10;

// A process in the background would be stopped by reading from it.
bool IsOurTerminal(int fd) { return isatty(fd) == 1 && tcgetpgrp(fd) == getpgrp(); }

bool MayBeWritten(int fd) {
  struct stat about {};
  if (fstat(fd, &about) != 0) return false;
  return S_ISFIFO(about.st_mode) || S_ISREG(about.st_mode) || S_ISSOCK(about.st_mode) ||
         IsOurTerminal(fd);
}

}  // namespace

tl::expected<DevInput, Error> DevInput::Open(const std::string& produce) {
  DevInput input;
  const bool file = !produce.empty() && produce != "-";
  input.name = file ? produce : "standard input";
  input.ends = !produce.empty();
  if (!file && !input.ends && !MayBeWritten(STDIN_FILENO)) return input;
  input.fd = Fd(file ? open(produce.c_str(), O_RDONLY | O_CLOEXEC)
                     : fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3));
  if (!input.fd.open()) {
    return tl::unexpected(Error{
        "bad_input", fmt::format("cannot be read: {}", std::strerror(errno)), input.name, ""});
  }
  input.terminal = IsOurTerminal(input.fd.get());
  return input;
}

Feeder::Feeder(const consumer::PipelineOptions& options, DevInput input, EffectLog& effects,
               Calls calls)
    : options_(options),
      input_(std::move(input)),
      effects_(effects),
      calls_(std::move(calls)),
      was_given_(input_.ends) {}

Feeder::~Feeder() { Stop(); }

tl::expected<void, Error> Feeder::Start() {
  auto producer = consumer::Producer::Make(options_.kafka, {{"linger.ms", "5"}});
  if (!producer) return tl::unexpected(producer.error());
  producer_ = std::move(*producer);
  thread_ = std::thread([this] { Run(); });
  return {};
}

void Feeder::Stop() {
  stop_.Stop();
  if (thread_.joinable()) thread_.join();
}

void Feeder::Run() {
  while (!stop_.stopped()) {
    const bool reads = input_.fd.open() && HasRoom();
    std::array<pollfd, 2> fds{{{stop_.fd(), POLLIN, 0}, {reads ? input_.fd.get() : -1, POLLIN, 0}}};
    if (poll(fds.data(), fds.size(), kPollMs) > 0 && fds[1].revents != 0) Read();
    producer_->Poll(milliseconds(0));
    const std::uint64_t finished = effects_.Finished();
    if (finished != finished_) progress_at_ = Clock::now();
    for (; finished_ < finished; ++finished_) PopSize();
    if (Clock::now() >= look_at_) {
      look_at_ = Clock::now() + kLook;
      effects_.Tick();
      TellState();
    }
    if (was_given_ && !told_done_ && !input_.fd.open() && delivered_ == sent_ &&
        finished_ >= sent_) {
      told_done_ = true;
      calls_.done();
    }
  }
  effects_.Tick();
}

void Feeder::PopSize() {
  if (sizes_.empty()) return;
  unfinished_bytes_ -= sizes_.front();
  sizes_.pop_front();
}

bool Feeder::HasRoom() const {
  return sizes_.size() < kMostUnfinished && unfinished_bytes_ < kMostUnfinishedBytes;
}

void Feeder::Read() {
  if (input_.terminal && !IsOurTerminal(input_.fd.get())) return;
  std::array<char, kRead> buffer{};
  const ssize_t got = read(input_.fd.get(), buffer.data(), buffer.size());
  if (got < 0 && (errno == EINTR || errno == EAGAIN)) return;
  if (got < 0) Refuse(line_ + 1, fmt::format("cannot be read: {}", std::strerror(errno)));
  unread_.append(buffer.data(), got > 0 ? static_cast<std::size_t>(got) : 0);
  std::size_t begin = 0;
  for (auto end = unread_.find('\n'); end != std::string::npos; end = unread_.find('\n', begin)) {
    TakeLine(std::string_view(unread_).substr(begin, end - begin));
    begin = end + 1;
  }
  unread_.erase(0, begin);
  if (got > 0) return;
  if (!unread_.empty()) TakeLine(std::exchange(unread_, ""));
  input_.fd.Close();
  was_given_ = was_given_ || (!input_.terminal && line_ > 0);
}

void Feeder::TakeLine(std::string_view line) {
  ++line_;
  if (line.find_first_not_of(" \t\r") == std::string_view::npos) return;
  const auto record = ReadRecordLine(line, options_.kafka.topics, kDevPartitions);
  record ? Send(*record) : Refuse(line_, record.error());
}

void Feeder::Send(const consumer::GivenRecord& record) {
  consumer::OutgoingRecord outgoing{.topic = record.topic, .partition = record.partition};
  outgoing.key = record.key;
  outgoing.value = record.value;
  outgoing.timestamp = record.timestamp;
  std::size_t size =
      (record.key ? record.key->size() : 0) + (record.value ? record.value->size() : 0);
  for (const auto& [name, value] : record.headers) {
    outgoing.headers.push_back({name, value});
    size += name.size() + value.size();
  }
  ++sent_;
  const auto delivered = [this, line = line_](const tl::expected<consumer::Offset, Error>& end) {
    if (end) {
      ++delivered_;
    } else {
      --sent_;
      PopSize();
      Refuse(line, end.error().Line());
    }
  };
  if (const auto sent = producer_->Send(outgoing, delivered); !sent) {
    --sent_;
    return Refuse(line_, sent.error().Line());
  }
  sizes_.push_back(size);
  unfinished_bytes_ += size;
}

void Feeder::Refuse(std::uint64_t line, std::string_view why) {
  ++bad_;
  PrintError(fmt::format("{}:{}: not sent: {}", input_.name, line, why));
}

// When it begins to wait for something else.
void Feeder::TellState() {
  std::string state = StateNow();
  if (state == state_) return;
  state_ = std::move(state);
  if (!state_.empty()) fmt::print("waits: {}\n", state_);
  std::fflush(stdout);
}

// Empty: for nothing.
std::string Feeder::StateNow() {
  const WorkerStatus status = calls_.status();
  if (status.ready && !std::exchange(ready_, true)) {
    fmt::print("ready after {:.1f} s\n",
               std::chrono::duration<double>(Clock::now() - began_).count());
  }
  if (!status.ready) return status.reason;
  if (status.in_flight_records == 0 || Clock::now() - progress_at_ < kQuiet) return "";
  for (const consumer::PartitionStatus& partition : status.partitions) {
    if (!partition.oldest_offset) continue;
    return fmt::format(
        "{} ({})",
        consumer::SourceText({partition.topic, partition.partition}, *partition.oldest_offset),
        partition.oldest_stage);
  }
  return "";
}

}  // namespace fencepost::cli
