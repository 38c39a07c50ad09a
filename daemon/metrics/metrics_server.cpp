#include "daemon/metrics/metrics_server.h"

#include <civetweb.h>

#include <chrono>
#include <mutex>
#include <string_view>

#include "schema/limits.h"
#include "schema/text.h"

namespace tg::daemon {
namespace {

static_assert(MetricsServer::kThreads + MetricsServer::kMaxWaiting + 1 <= schema::kMetricsDescriptors);

constexpr std::size_t kPieceBytes = 16 * 1024;
constexpr unsigned kHasIpv6 = 8;  // a flag of mg_check_feature

}  // namespace

struct MetricsServer::State {
  explicit State(HttpResponder& a) : responder(a) {}
  HttpResponder& responder;
  mg_context* server = nullptr;
  std::mutex mutex;         // guards complaint
  std::string start_error;  // the first message of CivetWeb; later ones are about requests

  static int log(const mg_connection* connection, const char* message) {
    auto* const state = static_cast<State*>(mg_get_user_data(mg_get_context(connection)));
    const std::lock_guard lock(state->mutex);
    if (state->start_error.empty()) state->start_error = message;
    return 1;  // keeps CivetWeb from writing a log of its own, which clients could fill
  }

  // CivetWeb's own answer to a request that it cannot read begins with the request's bytes.
  static int refuse(mg_connection* connection, int status, const char* /*why*/) {
    mg_printf(connection, "HTTP/1.1 %d %s\r\nContent-Length: 0\r\nConnection: close\r\n\r\n", status,
              mg_get_response_code_text(connection, status));
    return 0;  // the response is complete
  }

  // CivetWeb's own limit restarts with every byte that the client reads.
  static void write(mg_connection* connection, std::string_view body) {
    const auto end = Metrics::Clock::now() + std::chrono::milliseconds(kRequestMs);
    while (!body.empty() && Metrics::Clock::now() < end) {
      const std::string_view piece = body.substr(0, kPieceBytes);
      if (mg_write(connection, piece.data(), piece.size()) != static_cast<int>(piece.size())) return;
      body.remove_prefix(piece.size());
    }
  }

  static int answer(mg_connection* connection, void* data) {
    const mg_request_info& request = *mg_get_request_info(connection);
    const std::string_view method = request.request_method;
    const bool reads = method == "GET" || method == "HEAD";
    const std::string_view path = request.local_uri == nullptr ? "" : request.local_uri;
    const HttpResponse answer = reads ? static_cast<State*>(data)->responder.respond(path, Metrics::Clock::now())
                                      : HttpResponse{405, "GET only\n"};
    mg_printf(connection,
              "HTTP/1.1 %d %s\r\nContent-Type: %s\r\nContent-Length: %zu\r\nCache-Control: no-store\r\nConnection: "
              "close\r\n\r\n",
              answer.status, mg_get_response_code_text(connection, answer.status), answer.type.c_str(),
              answer.body.size());
    if (method != "HEAD") write(connection, answer.body);
    return answer.status;
  }
};

MetricsServer::MetricsServer(HttpResponder& responder) : state_(std::make_unique<State>(responder)) {}

MetricsServer::~MetricsServer() {
  if (state_->server == nullptr) return;
  mg_stop(state_->server);
  mg_exit_library();
}

Status MetricsServer::start(const std::string& host, std::uint16_t port) {
  State& state = *state_;
  mg_init_library(0);
  const std::string address = schema::host_and_port(host, port);
  if (schema::is_ipv6(host) && mg_check_feature(kHasIpv6) == 0) {
    mg_exit_library();
    return Error{ErrorKind::kIo, "metrics = " + address +
                                     ": this machine's libcivetweb is built without IPv6; give an IPv4 address such "
                                     "as 127.0.0.1:" +
                                     std::to_string(port)};
  }
  const std::string threads = std::to_string(kThreads), waiting = std::to_string(kMaxWaiting),
                    unaccepted = std::to_string(kMaxUnaccepted), request_ms = std::to_string(kRequestMs),
                    request_bytes = std::to_string(kMaxRequestBytes);
  const char* const options[] = {"listening_ports",
                                 address.c_str(),
                                 "num_threads",
                                 threads.c_str(),
                                 "connection_queue",
                                 waiting.c_str(),
                                 "listen_backlog",
                                 unaccepted.c_str(),
                                 "request_timeout_ms",
                                 request_ms.c_str(),
                                 "max_request_size",
                                 request_bytes.c_str(),
                                 "enable_keep_alive",
                                 "no",
                                 nullptr};
  mg_callbacks callbacks{};
  callbacks.log_message = State::log;
  callbacks.http_error = State::refuse;
  // mg_start2 would report the error, but Debian's library lays it out differently from its header.
  state.server = mg_start(&callbacks, &state, const_cast<const char**>(options));
  if (state.server == nullptr) {
    mg_exit_library();
    const std::lock_guard lock(state.mutex);
    return Error{ErrorKind::kIo, "metrics = " + address + ": " + state.start_error +
                                     "; name an address and a free port of this machine (ss -ltnp lists ports in use)"};
  }
  mg_set_request_handler(state.server, "/", State::answer, &state);
  return {};
}

}  // namespace tg::daemon
