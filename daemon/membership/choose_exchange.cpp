#include "daemon/membership/choose_exchange.h"

namespace tg::daemon {

schema::ExchangeKind choose_exchange(std::string_view asked, std::size_t members) {
  if (asked == "direct") return schema::ExchangeKind::kDirect;
  if (asked == "sharded") return schema::ExchangeKind::kSharded;
  return members <= 2 ? schema::ExchangeKind::kDirect : schema::ExchangeKind::kSharded;
}

}  // namespace tg::daemon
