// The prose of docs/config.md.
#pragma once

namespace lockstep {

const char* reference_introduction();  // how files, scalars, paths and --set are read
const char* reference_layers();        // how an entry of model.layers is written

}  // namespace lockstep
