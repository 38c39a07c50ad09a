// The tables of doctor: every check with what it says where nothing is wrong, every problem with its one sentence and
// its one next step, and the thresholds. Words in braces are filled in; {node} and {peer} are names of nodes. Pure.
#pragma once

#include <cstdint>

#include "schema/control/doctor.h"

namespace tg::daemon {

using schema::Check;

// A clock may be so far from the others' median: the ends of a run are ordered by their times, to the second.
inline constexpr double kMaxClockSeconds = 1;
// A link that carries less than this share of the median link, and is too slow for a 1 Gbit/s Ethernet, is slow. Links
// that share cores differ by less than three times; Ethernets differ by ten.
inline constexpr double kMinMedianShare = 1.0 / 3, kGigabitPayloadMbps = 800;
// The share of the given rate (--link) that a link has to carry.
inline constexpr double kMinLineShare = 0.8;
// Bytes that have to be left on the disk after one run.
inline constexpr std::uint64_t kMinDiskBytes = 100u << 20;

enum class Needs : std::uint8_t {
  kNothing,
  kTwoNodes,    // that were examined
  kConnection,  // from an examined node to another node
};

struct CheckRow {
  Check check;
  Needs needs;
  bool needs_idle;  // not checked while a run is on
  const char* pass;
};
inline constexpr CheckRow kChecks[] = {
    {Check::kNodes, Needs::kNothing, false, "every node answers"},
    {Check::kConfiguration, Needs::kTwoNodes, false, "the same peer lines on every node"},
    {Check::kVersions, Needs::kTwoNodes, false, "the same build on every node"},
    {Check::kNames, Needs::kNothing, false, "every host resolves, to the same address on every node"},
    {Check::kPorts, Needs::kConnection, false, "every port answers, and every link is up in both directions"},
    {Check::kKeys, Needs::kConnection, false, "the same cluster key, or none, on every node"},
    {Check::kMtu, Needs::kConnection, false, "the same packet size on every node"},
    {Check::kClock, Needs::kTwoNodes, false, "the clocks agree within 1 s"},
    {Check::kBandwidth, Needs::kConnection, true, "no link is slow"},
    {Check::kData, Needs::kTwoNodes, true, "no difference in MNIST, CIFAR or a folder of pictures"},
    {Check::kDisk, Needs::kNothing, false, "room for a run of LeNet with adam"},
    {Check::kMemory, Needs::kNothing, true, "memory and threads for a run of LeNet with adam"}};

struct Problem {
  Check check;
  const char* seen;
  const char* fix;
};

inline constexpr Problem kNoAnswer{Check::kNodes, "not examined: {why}",
                                   "ask again in a moment; if that does not help, read the log of {node}"};
inline constexpr Problem kHungCheck{Check::kNodes, "its check of {value} did not end in time",
                                    "does a disk there hang? dmesg on {node} says"};
inline constexpr Problem kOtherPeerLines{
    Check::kConfiguration, "its peer lines have {value} where those of {model} have {usual}",
    "give every node the same peer lines; tgd reads its file again when it changes"};
inline constexpr Problem kOtherBuild{Check::kVersions, "runs tgd {value}, {model} runs {usual}",
                                     "install one build on every node and restart tgd (tgd --version prints it)"};
inline constexpr Problem kUnresolved{Check::kNames, "{host}, the host of {peer}, does not resolve on {nodes}: {why}",
                                     "correct the peer line of {peer}, or add the name to DNS or /etc/hosts (getent "
                                     "hosts {host} tries it)"};
inline constexpr Problem kOtherAddress{Check::kNames,
                                       "{host}, the host of {peer}, is {value} on {node} but {usual} on {model}",
                                       "correct /etc/hosts or DNS on {node}, or put the address into the peer line"};
inline constexpr Problem kLinkDown{Check::kPorts, "both ports of {peer} answer {node}, but the link is not up",
                                   "ask again in a few seconds; if it stays down, restart tgd on {peer}"};
inline constexpr Problem kOtherKey{Check::kKeys, "it has another cluster key than {nodes}, or none",
                                   "copy the cluster key file of {model} to {node} (its key-file)"};
inline constexpr Problem kOtherMtu{Check::kMtu, "sends packets of {value} bytes ({device}), {model} of {usual}",
                                   "ip link set dev {device} mtu {usual} on {node}, and the same in its network "
                                   "configuration; packets that do not fit hang connections"};
inline constexpr Problem kOtherClock{Check::kClock, "its clock is {value} s {direction} the others'",
                                     "timedatectl set-ntp true on {node}, or install chrony there"};
inline constexpr Problem kNothingThrough{Check::kBandwidth, "nothing came through from {node} to {peer}",
                                         "find the lost packets: ping -M do -s 1472 {place} on {node}"};
inline constexpr Problem kSlowSender{Check::kBandwidth, "every link from {node} is slow: {value}, expected {usual}",
                                     "check its cable, switch port and agreed speed: ethtool {device} on {node}"};
inline constexpr Problem kSlowReceiver{Check::kBandwidth, "every link to {node} is slow: {value}, expected {usual}",
                                       "check its cable, switch port and agreed speed: ethtool {device} on {node}"};
inline constexpr Problem kSlowLink{Check::kBandwidth, "{node} to {peer} is slow: {value}, expected {usual}",
                                   "check cables, switch ports and agreed speed of both: ethtool {device} on {node}"};
inline constexpr Problem kOtherData{Check::kData, "{value}, unlike {model}",
                                    "copy {set} from {usual} on {model} into the data-dir of {node}"};

inline constexpr Problem kNarrowPath{Check::kMtu, "only small packets get through at {place}, large ones are lost",
                                     "find the size that passes (ping -M do -s 1472 {place} from the other end) and "
                                     "set it as the MTU of all nodes (ip link set dev DEVICE mtu SIZE), or let the "
                                     "routers between them send ICMP"};
// By tg::schema::Reach: a node that no other node reaches, and one direction between two nodes.
inline constexpr Problem kTooBusy{Check::kPorts, "{node} had no time to try the ports of {peer}",
                                  "ask again when {node} is less busy"};
inline constexpr Problem kDown[] = {
    kNoAnswer,
    kNoAnswer,
    {Check::kNodes, "down: nothing listens at {place}",
     "start tgd on {node} (systemctl start tgd); if it exits at once, its log says why (journalctl -u tgd)"},
    {Check::kNodes, "down: its machine does not answer at {place}",
     "is it on, is its cable in, is the address right, does its firewall let TCP {ports} in?"},
    {Check::kNodes, "down: no route to its machine at {place}",
     "is it on, and is the address right (ip -brief address)?"},
    {Check::kNodes, "down: its process at {place} accepts connections but sends nothing",
     "continue or restart tgd on {node} (is it stopped, or out of memory?)"},
    {Check::kNodes, "down: the program at {place} is not a tgd",
     "correct the peer line of {node}, or end that program"},
    kNarrowPath};
inline constexpr Problem kBlocked[] = {
    kTooBusy,
    kTooBusy,
    {Check::kPorts, "{node} is refused by {peer} at {place}, TCP {ports}",
     "on {peer}, let TCP {ports} in from {from}, and check its listen line (ss -ltn)"},
    {Check::kPorts, "{node} gets no answer from {peer} at {place}, TCP {ports}",
     "a firewall drops it: ufw allow from {from} to any port {ports} proto tcp, on {peer}"},
    {Check::kPorts, "{node} has no route to {peer} at {place}", "ip route get {place} on {node} shows what is missing"},
    {Check::kPorts, "{peer} accepts connections from {node} at {place}, TCP {ports}, but sends nothing",
     "continue or restart tgd on {peer}"},
    {Check::kPorts, "{node} finds another program than tgd on {peer} at {place}, TCP {ports}",
     "correct the peer line of {peer}, or end that program"},
    kNarrowPath};

}  // namespace tg::daemon
