#include "ctl/report/sheet.h"

#include <span>
#include <string_view>

#include "ctl/report/markup.h"
#include "engine/storage/sha256.h"

namespace tg::ctl {
namespace {

constexpr const char* kStyle = R"(
:root{color-scheme:light dark;--paper:#fff;--ink:#1c2430;--soft:#5b6675;--rule:#dde2e8;--card:#f5f7f9;--one:#1b6ca8;--two:#b4531f;--three:#6a4ca8;--four:#7a6a12;--good:#1e7a46;--bad:#a3271c}
@media (prefers-color-scheme:dark){:root{--paper:#14181d;--ink:#e4e8ed;--soft:#9aa6b3;--rule:#303843;--card:#1c2229;--one:#6db3ea;--two:#eb9a63;--three:#b79cf0;--four:#d6c25a;--good:#6fcf97;--bad:#f28b82}}
*{box-sizing:border-box}
body{margin:0 auto;padding:1.5rem;max-width:72rem;background:var(--paper);color:var(--ink);font:1rem/1.5 system-ui,sans-serif}
h1{font-size:1.5rem;margin:0;overflow-wrap:anywhere}h2{font-size:1.1rem;margin:2rem 0 .5rem}h3{font-size:.95rem;margin:0 0 .25rem}
p{margin:.25rem 0}.soft{color:var(--soft)}.good{color:var(--good)}.bad{color:var(--bad)}
.tiles,.charts{display:grid;gap:1rem}.tiles{grid-template-columns:repeat(auto-fit,minmax(9rem,1fr));margin:1.25rem 0}
.charts{grid-template-columns:repeat(auto-fit,minmax(min(26rem,100%),1fr))}
.tile,figure{background:var(--card);border-radius:.5rem;padding:.75rem 1rem;margin:0}
.tile b{display:block;font-size:1.5rem;font-variant-numeric:tabular-nums;overflow-wrap:anywhere}
svg{display:block;width:100%;height:auto;font:.75rem system-ui,sans-serif}
.swatch{display:inline-block;width:.8em;height:.8em}svg text{fill:var(--soft)}.grid{stroke:var(--rule)}.axis{stroke:var(--soft)}.mark{stroke:var(--soft);stroke-dasharray:4 4}
.line1,.line2,.line3,.line4{fill:none;stroke-width:2;stroke-linejoin:round}.line1{stroke:var(--one)}.line2{stroke:var(--two)}.line3{stroke:var(--three)}.line4{stroke:var(--four)}
.dot1{fill:var(--one)}.dot2{fill:var(--two)}.dot3{fill:var(--three)}.dot4{fill:var(--four)}.band{fill:var(--one);opacity:.18}
.bar0{fill:var(--one)}.bar1{fill:var(--good)}.bar2{fill:var(--two)}.bar3{fill:var(--three)}.bar4{fill:var(--four)}.bar5{fill:var(--soft)}
.key1,.key2,.key3,.key4{font-size:.85rem;margin-right:.75rem}.key1{color:var(--one)}.key2{color:var(--two)}.key3{color:var(--three)}.key4{color:var(--four)}
.scroll+h3{margin-top:1rem}.number{white-space:nowrap}.spark{width:clamp(6rem,20vw,15rem)}td.bar{width:40%;min-width:10rem}.scroll{overflow-x:auto}table{border-collapse:collapse;font-size:.9rem}
th,td{text-align:left;overflow-wrap:break-word;padding:.2rem 1rem .2rem 0;border-bottom:1px solid var(--rule);vertical-align:top;font-variant-numeric:tabular-nums}
th{color:var(--soft);font-weight:600}code{font-family:ui-monospace,monospace;font-size:.9em}
.pictures{display:flex;flex-wrap:wrap;gap:1rem}.pictures figure{text-align:center;max-width:10rem;overflow-wrap:anywhere}
.pictures img{width:6rem;height:auto;image-rendering:pixelated;display:block;margin:0 auto .25rem}
.matrix text{fill:var(--ink)}.few{max-width:40rem}.beside{display:flex;flex-wrap:wrap;gap:1rem 2rem}.beside figure{flex:0 1 42rem}.beside .whole{flex:1 0 100%}.beside>div{flex:1 1 16rem}.hit{fill:var(--one)}.miss{fill:var(--two)}.frame{fill:none;stroke:var(--rule)}
ul{margin:.25rem 0;padding-left:1.25rem}summary{cursor:pointer;color:var(--soft)}
@media print{body{max-width:none;padding:0}figure,.tile{break-inside:avoid;border:1px solid var(--rule)}details>*{display:block}}
)";

// The style sheet's source expression in a Content-Security-Policy.
std::string style_hash() {
  Sha256 hash;
  hash.add(std::as_bytes(std::span(std::string_view(kStyle))));
  const std::string hex = hash.hex();
  std::string bytes;
  for (std::size_t i = 0; i < hex.size(); i += 2) bytes += static_cast<char>(std::stoi(hex.substr(i, 2), nullptr, 16));
  return "sha256-" + base64(bytes);
}

}  // namespace

std::string begin_page(const std::string& title, std::uint64_t refresh_seconds) {
  std::string text =
      "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n"
      "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src '" +
      style_hash() + "'; img-src data:\">\n<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n";
  if (refresh_seconds > 0)
    text += "<meta http-equiv=\"refresh\" content=\"" + std::to_string(refresh_seconds) + "\">\n";
  return text + element("title", title + " - tgd") + "\n<style>" + kStyle + "</style></head><body>\n";
}

}  // namespace tg::ctl
