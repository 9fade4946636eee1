// A client that sends any bytes, and need not behave.
#pragma once

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netdb.h>
#include <sys/socket.h>
#include <unistd.h>

#include <string>
#include <string_view>

namespace fencepost::metrics {

// -1: no connection. `from`: the IPv4 address to ask from.
inline int Connect(const std::string& host, int port, int receive_buffer = 0,
                   const char* from = nullptr) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICHOST;
  addrinfo* address = nullptr;
  if (getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &address) != 0) return -1;
  const int fd = socket(address->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
  timeval limit{10, 0};
  setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
  if (receive_buffer > 0) {
    setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &receive_buffer, sizeof receive_buffer);
  }
  if (from != nullptr) {
    sockaddr_in own{.sin_family = AF_INET, .sin_port = 0, .sin_addr = {}, .sin_zero = {}};
    EXPECT_EQ(inet_pton(AF_INET, from, &own.sin_addr), 1);
    EXPECT_EQ(bind(fd, reinterpret_cast<const sockaddr*>(&own), sizeof own), 0);
  }
  const bool connected = connect(fd, address->ai_addr, address->ai_addrlen) == 0;
  freeaddrinfo(address);
  if (connected) return fd;
  close(fd);
  return -1;
}

inline void Say(int fd, std::string_view text) {
  while (!text.empty()) {
    const ssize_t sent = send(fd, text.data(), text.size(), MSG_NOSIGNAL);
    if (sent <= 0) return;  // the server has ended it
    text.remove_prefix(static_cast<std::size_t>(sent));
  }
}

// All until the server closes.
inline std::string Hear(int fd) {
  std::string answer;
  char buffer[4096];
  for (ssize_t n = 0; (n = recv(fd, buffer, sizeof buffer, 0)) > 0;) {
    answer.append(buffer, static_cast<std::size_t>(n));
  }
  return answer;
}

inline std::string Exchange(const std::string& host, int port, const std::string& request,
                            const char* from = nullptr) {
  const int fd = Connect(host, port, 0, from);
  if (fd < 0) return "no connection";
  Say(fd, request);
  std::string answer = Hear(fd);
  close(fd);
  return answer;
}

// `headers`: each with its end of line.
inline std::string Ask(int port, const std::string& method, const std::string& path,
                       const std::string& headers = "Host: localhost\r\n") {
  return Exchange("127.0.0.1", port, method + " " + path + " HTTP/1.1\r\n" + headers + "\r\n");
}

inline std::string StatusOf(const std::string& answer) {
  return answer.starts_with("HTTP/1.1 ") ? answer.substr(9, 3) : answer.empty() ? "closed" : answer;
}

inline std::string BodyOf(const std::string& answer) {
  const auto end = answer.find("\r\n\r\n");
  return end == std::string::npos ? "" : answer.substr(end + 4);
}

}  // namespace fencepost::metrics
