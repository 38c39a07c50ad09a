// Faults that tests ask for: what is read, what is refused, and that all that is written reads back.
#include "schema/options/fault.h"

#include <gtest/gtest.h>

namespace tg::schema {
namespace {

TEST(Fault, EveryKindAtEveryPhaseReadsBack) {
  for (const FaultKind kind : {FaultKind::kKill, FaultKind::kHang, FaultKind::kPause, FaultKind::kFlip})
    for (const Phase phase : values_of<Phase>()) {
      const Fault fault{kind, phase, 12};
      const Result<Fault> read = parse_fault(format_fault(fault));
      ASSERT_TRUE(read.ok()) << read.error().message;
      EXPECT_EQ(*read, fault) << format_fault(fault);
    }
  for (const FaultKind kind : {FaultKind::kKill, FaultKind::kHang, FaultKind::kFail, FaultKind::kFull})
    for (const DiskPoint point : values_of<DiskPoint>()) {
      const Fault fault{kind, Phase::kIdle, 3, point};
      EXPECT_EQ(parse_fault(format_fault(fault)).value(), fault) << format_fault(fault);
    }
  for (const FaultKind kind : {FaultKind::kKill, FaultKind::kHang, FaultKind::kPause})
    for (const ChangePoint point : values_of<ChangePoint>()) {
      const Fault fault{.kind = kind, .step = 2, .change = point};
      EXPECT_EQ(parse_fault(format_fault(fault)).value(), fault) << format_fault(fault);
    }
  EXPECT_EQ(format_fault({.step = 1, .change = ChangePoint::kDecided}), "kill@decided:1");
  EXPECT_EQ(format_fault({FaultKind::kFull, Phase::kIdle, 2, DiskPoint::kWrite}), "full@write:2");
  EXPECT_EQ(format_fault({FaultKind::kKill, Phase::kScalerWait, 20}), "kill@scaler-wait:20");
  EXPECT_EQ(parse_fault("kill@scaler wait:20").value(), (Fault{FaultKind::kKill, Phase::kScalerWait, 20}));
}

TEST(Fault, InvalidFaultsAreRefused) {
  const auto error = [](const char* text) {
    const Result<Fault> read = parse_fault(text);
    return read.ok() ? std::string() : read.error().message;
  };
  for (const char* text : {"", "kill", "kill@forward", "kill:3", "explode@forward:3", "kill@forward:", "kill@forward:x",
                           "kill@forward:-1", "kill@forward:3 ", ":@"})
    EXPECT_NE(error(text).find("kill|hang|pause|flip|fail|full@PHASE:STEP"), std::string::npos)
        << text << ": " << error(text);
  EXPECT_NE(error("full@reduce:3").find("\"reduce\" is not open, write, fsync or rename"), std::string::npos);
  EXPECT_NE(error("flip@write:3").find("\"write\" is not a phase"), std::string::npos);
  EXPECT_NE(error("flip@promise:1").find("\"promise\" is not a phase"), std::string::npos);
  EXPECT_NE(error("kill@breakfast:3").find("\"breakfast\" is not a phase"), std::string::npos);
}

}  // namespace
}  // namespace tg::schema
