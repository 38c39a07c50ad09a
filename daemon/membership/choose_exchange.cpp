#include "daemon/membership/choose_exchange.h"

namespace tg::daemon {

schema::ExchangeKind choose_exchange(const schema::JobSpec& spec, std::size_t members) {
  if (spec.exchange == "direct") return schema::ExchangeKind::kDirect;
  if (spec.exchange == "sharded") return schema::ExchangeKind::kSharded;
  return members <= 2 ? schema::ExchangeKind::kDirect : schema::ExchangeKind::kSharded;
}

}  // namespace tg::daemon
