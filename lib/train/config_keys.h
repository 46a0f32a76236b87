// The tables of the config's sections, one function each.
#pragma once

#include "train/config_schema.h"

namespace lockstep {

const Schema& run_schema();
const Schema& model_schema();
const Schema& data_schema();
const Schema& dataset_schema();
const Schema& normalize_schema();
const Schema& augmentation_schema();
const Schema& sampler_schema();
const Schema& train_schema();
const Schema& loss_scale_schema();
const Schema& early_stopping_schema();
const Schema& optimizer_schema();
const Schema& parameter_group_schema();
const Schema& schedule_schema();
const Schema& eval_schema();
const Schema& checkpoint_schema();
const Schema& init_from_schema();
const Schema& log_schema();
const Schema& distributed_schema();
const Schema& device_schema();

// Keys of train and model that have a file of their own.
std::vector<Key> precision_keys();
Key init_from_key();  // of Config

// `kind` and whatever else is chosen by name: value of a text member.
template <class S>
void discriminate(Schema& schema, std::string key_name, std::string S::*member) {
  schema.discriminator = std::move(key_name);
  schema.kind_of = [member](const void* object) { return static_cast<const S*>(object)->*member; };
}

}  // namespace lockstep
