// The table's rows for the factory: each kind's file defines its check and its builder.
#pragma once

#include <memory>

#include "optim/optimizer.h"

namespace lockstep {

void check_sgd(const OptimizerSettings& settings);
void check_adam(const OptimizerSettings& settings);
void check_lars(const OptimizerSettings& settings);
void check_adadelta(const OptimizerSettings& settings);
void check_rmsprop(const OptimizerSettings& settings);
void check_adagrad(const OptimizerSettings& settings);

std::unique_ptr<Optimizer> build_sgd(OptimizerInit init);
std::unique_ptr<Optimizer> build_adam(OptimizerInit init);  // adam and adamw
std::unique_ptr<Optimizer> build_lars(OptimizerInit init);
std::unique_ptr<Optimizer> build_lamb(OptimizerInit init);  // checked as adam
std::unique_ptr<Optimizer> build_adadelta(OptimizerInit init);
std::unique_ptr<Optimizer> build_rmsprop(OptimizerInit init);
std::unique_ptr<Optimizer> build_adagrad(OptimizerInit init);

// Throws Error "optimizer.KEY: expected a number in [0, 1), found X" and the like.
void require_fraction(const char* key, double value);      // [0, 1)
void require_unit(const char* key, double value);          // [0, 1]
void require_non_negative(const char* key, double value);  // finite, >= 0

}  // namespace lockstep
