// A connection to one node's control port: sends a request and waits for its reply, always with a deadline.
// It has one DEALER socket, used by the main thread only; client.cpp is the only file of tgctl that uses cppzmq. A late
// reply to an earlier request is recognized by its id. Errors: kUnreachable when no reply comes in time, kForbidden
// when our key is refused, kCorrupt when the other end is not a tgd, and any error that the node replies.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "kernels/base/status.h"
#include "schema/control/control.h"

namespace tg::ctl {

// A request that is sent each second while the client waits for another reply.
struct ProgressPoll {
  schema::RequestBody request;
  std::function<bool(const schema::ReplyBody&)>
      on_reply;  // true = the node makes progress, so its deadline is extended
};

class Client {
 public:
  // address: host:port of a node's control port, or the path of its local socket; "" = own_node(). key_file: an
  // operator's or a cluster key file, "" for none. Connects in the background, to the address of a name that accepts
  // connections, which is looked for during kPortProbeMs at most; the first request reports a failure.
  static Result<Client> connect(const std::string& address, const std::string& key_file);
  ~Client();
  Client(Client&&) noexcept;

  // Waits kControlReplyMs.
  Result<schema::ReplyBody> ask(const schema::RequestBody& body);
  // For requests with a late reply: waits timeout_ms, and probes every two seconds whether the node is still alive.
  Result<schema::ReplyBody> ask_with_probes(const schema::RequestBody& body, int timeout_ms,
                                            const ProgressPoll* poll = nullptr);

  // The same, with the reply converted to the kind that belongs to the request.
  template <class Reply>
  Result<Reply> ask_for(const schema::RequestBody& body) {
    return as<Reply>(ask(body));
  }
  template <class Reply>
  static Result<Reply> as(Result<schema::ReplyBody> reply) {
    if (!reply) return reply.error();
    if (auto* expected = std::get_if<Reply>(&reply.value())) return std::move(*expected);
    return Error{ErrorKind::kCorrupt, "the node sent an unexpected reply; have tgctl and tgd the same version?"};
  }

  // Called some 20 times a second during a wait; if it returns false the wait ends, as on Ctrl-C.
  void set_wait_callback(std::function<bool()> keep_waiting);

  const std::string& address() const;

 private:
  struct State;
  explicit Client(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace tg::ctl
