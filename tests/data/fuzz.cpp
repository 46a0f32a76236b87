// Damaged data files: always a data set or an Error, never anything else.
#include "support/fuzz.h"

#include <doctest/doctest.h>

#include "data/csv.h"
#include "data/files.h"
#include "data/idx.h"
#include "data/npy.h"
#include "data/rows.h"

using namespace lockstep;
using namespace lockstep::test;

TEST_CASE("fuzzed IDX files are read or refused") {
  const TempDir dir;
  DatasetSettings settings;
  settings.kind = "idx";
  settings.labels = LOCKSTEP_SOURCE_DIR "/tests/corpus/idx/labels";
  fuzz("idx", [&](const std::string& bytes) {
    settings.images = dir.write("images", bytes);
    read_all(*make_idx(settings));
  });
}

TEST_CASE("fuzzed npy files are read or refused") {
  const TempDir dir;
  DatasetSettings settings;
  settings.kind = "npy";
  settings.y = LOCKSTEP_SOURCE_DIR "/tests/corpus/npy/i8.npy";
  fuzz("npy", [&](const std::string& bytes) {
    settings.x = dir.write("x.npy", bytes);
    read_all(*make_npy(settings));
  });
}

TEST_CASE("fuzzed CSV files are read or refused") {
  const TempDir dir;
  DatasetSettings settings;
  settings.kind = "csv";
  fuzz("csv", [&](const std::string& bytes) {
    settings.file = dir.write("table.csv", bytes);
    read_all(*make_csv(settings));
  });
}
