// A connection to one node's control port: a request out, its reply back, never without a deadline.
// One DEALER socket, used by the main thread only; the only file that meets cppzmq. Requests carry ids of our own, so a
// late reply to an earlier request is never taken for this one's. Errors: kUnreachable when nobody answers in time,
// kForbidden when our key is refused, kCorrupt when the other end is not a tgd, and whatever error the node replied.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "kernels/base/status.h"
#include "schema/control/control.h"

namespace tg::ctl {

// A request sent at once and then each second while waiting for another answer, and the receiver of the replies.
struct Meanwhile {
  schema::RequestBody question;
  std::function<bool(const schema::ReplyBody&)> answered;  // whether the node is at work on it: then it has time anew
};

class Client {
 public:
  // address: host:port of a node's control port, or the path of its local socket. key_file: an operator's or a cluster
  // key file, "" for none. Connects in the background; the first ask finds out.
  static Result<Client> connect(const std::string& address, const std::string& key_file);
  ~Client();
  Client(Client&&) noexcept;

  // Waits kControlReplyMs.
  Result<schema::ReplyBody> ask(const schema::RequestBody& body);
  // For requests that a node answers late: waits timeout_ms, but asks every two seconds whether the node still lives.
  Result<schema::ReplyBody> ask_patiently(const schema::RequestBody& body, int timeout_ms,
                                          const Meanwhile* meanwhile = nullptr);

  // The reply as the kind that belongs to the request.
  template <class Reply>
  Result<Reply> ask_for(const schema::RequestBody& body) {
    return as<Reply>(ask(body));
  }
  template <class Reply>
  static Result<Reply> as(Result<schema::ReplyBody> reply) {
    if (!reply) return reply.error();
    if (auto* expected = std::get_if<Reply>(&reply.value())) return std::move(*expected);
    return Error{ErrorKind::kCorrupt, "the node did not answer what was asked; are both of the same version?"};
  }

  // Called some 20 times a second while an answer is waited for; where it says false the ask gives up, as on Ctrl-C.
  void while_waiting(std::function<bool()> go_on);

  const std::string& address() const;

 private:
  struct State;
  explicit Client(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace tg::ctl
