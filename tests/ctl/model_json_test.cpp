#include "ctl/fetch/model_json.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "ctl/fetch/predict_script.h"

namespace tg::ctl {
namespace {

constexpr const char* kDescription =
    R"({"model": "mlp", "run": "another", "data": {"kind": "npy", "test_samples": 7, "damaged": "fatal"},
  "classes": ["cat", "dog \"rex\""], "graph": {"output": "fc1", "operators": [{"name": "fc1"}, {"name": "relu 2"}]}})";
constexpr const char* kRecord = R"({"id": "mlp-1", "build": "0.1.0+abc", "evaluation": {"step": 3, "accuracy": 0.5,
  "loss": null}, "own": {"digest_step": 4, "digest": "00000000000000ab"}})";

TEST(ModelJson, HasTheRunsFactsAndTheDescription) {
  const Result<std::string> text = compose_model_json(kDescription, kRecord);
  ASSERT_TRUE(text.ok()) << text.error().message;
  const auto json = nlohmann::json::parse(*text);
  EXPECT_EQ(json["run"].get<std::string>(), "mlp-1") << "what the record says comes first";
  EXPECT_EQ(json["tgd"].get<std::string>(), "0.1.0+abc");
  EXPECT_EQ(json["step"].get<int>(), 4);
  EXPECT_EQ(json["digest"].get<std::string>(), "00000000000000ab");
  EXPECT_EQ(json["evaluation"]["samples"].get<int>(), 7);
  EXPECT_EQ(json["evaluation"]["accuracy"].get<double>(), 0.5);
  EXPECT_TRUE(json["evaluation"]["loss"].is_null());
  EXPECT_EQ(json["classes"][1].get<std::string>(), "dog \"rex\"");
  EXPECT_EQ(json["graph"]["operators"][1]["name"].get<std::string>(), "relu 2");
}

TEST(ModelJson, IsOfTheBestEvaluation) {
  std::string record = kRecord;
  record.insert(1, R"("best_accuracy": 0.75, "best_step": 2, )");
  auto json = nlohmann::json::parse(compose_model_json(kDescription, record, 2).value());
  EXPECT_EQ(json["step"].get<int>(), 2);
  EXPECT_EQ(json["digest"].get<std::string>(), "00000000000000ab");
  EXPECT_EQ(json["evaluation"].dump(), R"({"accuracy":0.75,"loss":null,"samples":7,"step":2})");
  json = nlohmann::json::parse(compose_model_json(kDescription, record, 3).value());
  EXPECT_EQ(json["evaluation"]["accuracy"].get<double>(), 0.5) << "the last one was the best";
}

TEST(ModelJson, IsALineAKeyAndALineAnOperator) {
  const std::string text = compose_model_json(kDescription, kRecord).value();
  EXPECT_NE(text.find("\n  \"classes\": [\"cat\",\"dog \\\"rex\\\"\"],\n"), std::string::npos) << text;
  EXPECT_NE(text.find("\n      {\"name\":\"relu 2\"}\n"), std::string::npos) << text;
}

TEST(ModelJson, WithoutAnEvaluationHasNone) {
  std::string record = kRecord;
  record.replace(record.find(R"({"step")"), record.find("}, \"own\"") + 1 - record.find(R"({"step")"), "null");
  const auto json = nlohmann::json::parse(compose_model_json(kDescription, record).value());
  EXPECT_TRUE(json["evaluation"].is_null());
}

TEST(ModelJson, HasNoSampleCountIfDamagedFilesAreSkipped) {
  std::string description = kDescription;
  description.replace(description.find("fatal"), 5, "skip");
  const auto json = nlohmann::json::parse(compose_model_json(description, kRecord).value());
  EXPECT_EQ(json["evaluation"]["accuracy"].get<double>(), 0.5);
  EXPECT_FALSE(json["evaluation"].contains("samples"));
}

TEST(ModelJson, RefusesDeepNesting) {
  const auto with = [](int depth) {
    const auto count = static_cast<std::size_t>(depth);
    return std::string(kDescription).insert(1, "\"deep\": " + std::string(count, '[') + std::string(count, ']') + ", ");
  };
  EXPECT_TRUE(compose_model_json(with(20), kRecord).ok());
  const Result<std::string> text = compose_model_json(with(1'000'000), kRecord);
  ASSERT_FALSE(text.ok());
  EXPECT_EQ(text.error().kind, ErrorKind::kCorrupt);
  EXPECT_NE(text.error().message.find("nested more than 32 deep"), std::string::npos) << text.error().message;
}

TEST(ModelJson, RefusesAnInvalidDescription) {
  for (const char* description :
       {"", "[]", "7", "{}", R"({"model": "mlp"})", R"({"model": "mlp", "data": 7})", "{\"model"}) {
    const Result<std::string> text = compose_model_json(description, kRecord);
    ASSERT_FALSE(text.ok()) << description;
    EXPECT_EQ(text.error().kind, ErrorKind::kCorrupt);
  }
}

TEST(PredictScript, IsTheWholeFile) {
  EXPECT_TRUE(predict_script().starts_with("#!/usr/bin/env python3\n"));
  EXPECT_TRUE(predict_script().ends_with("    sys.exit(main())\n"));
}

}  // namespace
}  // namespace tg::ctl
