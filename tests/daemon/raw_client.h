// A client that speaks ZMTP by hand, for what libzmq's would not do.
#pragma once

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <string>

#include "control_fixture.h"

namespace tg::tests {

// ZMTP 3.1 by hand: libzmq sends no part of a message before its last one is there.
class RawClient {
 public:
  // receive_buffer: size of the kernel's buffer; 0 = the default.
  explicit RawClient(const std::string& endpoint, int receive_buffer = 0) {
    if (receive_buffer > 0) {
      EXPECT_EQ(::setsockopt(socket_, SOL_SOCKET, SO_RCVBUF, &receive_buffer, sizeof receive_buffer), 0);
    }
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<std::uint16_t>(std::stoi(endpoint.substr(endpoint.rfind(':') + 1))));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(::connect(socket_, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
    std::string greeting("\xff\0\0\0\0\0\0\0\x01\x7f\x03\x01NULL", 16);
    greeting.resize(64);
    send(greeting);
    send(std::string("\x04\x1c\x05READY\x0bSocket-Type\0\0\0\x06", 24) + "DEALER");
  }
  ~RawClient() { ::close(socket_); }
  // Waits for the other end's greeting and READY. A port with an authenticator resets clients that send messages before
  // them.
  bool let_in() {
    const timeval patience{kPatienceMs / 1000, 0};
    EXPECT_EQ(::setsockopt(socket_, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience), 0);
    const std::string head = read(64 + 2);  // the greeting, and the flags and size of READY
    return !head.empty() && !read(static_cast<unsigned char>(head.back())).empty();
  }
  // False if the other end no longer reads.
  bool send(const std::string& bytes) {
    return ::send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(bytes.size());
  }

 private:
  // "" if they do not arrive.
  std::string read(std::size_t count) {
    std::string bytes(count, '\0');
    return ::recv(socket_, bytes.data(), count, MSG_WAITALL) == static_cast<ssize_t>(count) ? bytes : "";
  }
  const int socket_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
};

}  // namespace tg::tests
