// A job key that does not reach the engine would be taken and do nothing.
#include "daemon/step/job_data.h"

#include <gtest/gtest.h>

namespace tg::daemon {
namespace {

TEST(JobData, TheJobsOptionsReachTheEngine) {
  schema::JobSpec job;
  for (const char* setting :
       {"model=alexnet", "dropout=0.25,0", "label-smoothing=0.1", "freeze=features.", "crop=area", "least-area=0.05",
        "resize=256", "resize-shape=square", "flip=horizontal", "colour=jitter", "colour-strength=0.5",
        "colour-hue=0.2", "normalization=given", "mean=0.5", "deviation=2"})
    ASSERT_TRUE(schema::set_job_key(job, setting).ok()) << setting;
  const engine::ModelOptions model = model_options(job);
  EXPECT_EQ(model.kind, ModelKind::kAlexnet);
  EXPECT_EQ(model.dropout, (std::vector<double>{0.25, 0}));
  EXPECT_EQ(model.label_smoothing, 0.1);
  EXPECT_EQ(model.freeze, std::vector<std::string>{"features."});
  const engine::RecipeOptions recipe = recipe_options(job);
  EXPECT_EQ(recipe.crop, Crop::kArea);
  EXPECT_EQ(recipe.least_area, 0.05);
  EXPECT_EQ(recipe.resize, 256);
  EXPECT_EQ(recipe.resize_shape, ResizeShape::kSquare);
  EXPECT_EQ(recipe.flip, Flip::kHorizontal);
  EXPECT_EQ(recipe.colour, Colour::kJitter);
  EXPECT_EQ(recipe.colour_strength, 0.5);
  EXPECT_EQ(recipe.colour_hue, 0.2);
  EXPECT_EQ(recipe.normalization, Normalization::kGiven);
  EXPECT_EQ(recipe.mean, std::vector<double>{0.5});
  EXPECT_EQ(recipe.deviation, std::vector<double>{2});
}

}  // namespace
}  // namespace tg::daemon
