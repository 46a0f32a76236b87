// The CSV reader: quoting, columns by name and index, and errors that say file:line:column.
#include "data/csv.h"

#include <doctest/doctest.h>

#include "data/csv_reader.h"
#include "data/files.h"
#include "data/rows.h"

using namespace lockstep;
using namespace lockstep::test;
using namespace std::string_literals;  // assigning a short literal sets off a wrong -Wrestrict in GCC 12

namespace {

struct Csv {
  TempDir dir;
  DatasetSettings settings;
  explicit Csv(const std::string& text) {
    settings.kind = "csv";
    settings.file = dir.write("t.csv", text);
  }
  std::string error() const {
    return error_of([&] { make_csv(settings); });
  }
  std::string at(const std::string& message) const { return settings.file + message; }
};

const std::string kNamed = "a,b,label,c\n1,2,0,3\n4,5.5,2,6\n-7,8e-1,1,+9\n";

}  // namespace

TEST_CASE("csv with a header: features and target by name or index") {
  Csv csv(kNamed);
  csv.settings.target = "label"s;
  auto all = make_csv(csv.settings);
  CHECK_EQ(all->size(), 3);
  CHECK_EQ(all->sample_shape().str(), "[3]");
  CHECK_EQ(all->classes(), 3);
  CHECK_EQ(read_all(*all).x, std::vector<float>{1, 2, 3, 4, 5.5F, 6, -7, 0.8F, 9});
  CHECK_EQ(read_all(*all).labels, std::vector<int64_t>{0, 2, 1});
  csv.settings.features = {"c", "0"};
  CHECK_EQ(read_all(*make_csv(csv.settings)).x, std::vector<float>{3, 1, 6, 4, 9, -7});
}

TEST_CASE("csv without a header: the last column is the target") {
  const auto dataset = make_csv(Csv("1,2,0\n3,4,1\n").settings);
  CHECK_EQ(read_all(*dataset).x, std::vector<float>{1, 2, 3, 4});
  CHECK_EQ(read_all(*dataset).labels, std::vector<int64_t>{0, 1});
}

TEST_CASE("csv targets: real numbers are values and integers are what the loss wants") {
  CHECK_EQ(read_all(*make_csv(Csv("1,0.5\n2,3\n").settings)).targets, std::vector<float>{0.5F, 3});
  Csv integers("1,0\n2,1\n");
  integers.settings.targets = WantedTargets::values;
  CHECK_EQ(read_all(*make_csv(integers.settings)).targets, std::vector<float>{0, 1});
  integers.settings.classes = 2;
  CHECK(make_csv(integers.settings)->target_kind() == TargetKind::values);
  Csv real("1,0\n2,1.5\n");
  real.settings.targets = WantedTargets::labels;
  CHECK_EQ(real.error(), real.at(":2:3: expected an integer class label in column 1, found '1.5'"));
}

TEST_CASE("csv normalisation is applied to the features") {
  Csv csv("1,0\n2,1\n");
  csv.settings.mean = 0.5;
  csv.settings.std = 0.25;
  CHECK_EQ(read_all(*make_csv(csv.settings)).x, std::vector<float>{2, 6});
}

TEST_CASE("csv spelling: quotes and CRLF and byte order mark and blank lines and no last line end") {
  Csv csv("\xef\xbb\xbf\"a \"\"x\"\", y\",\"two\nlines\",t\r\n\r\n\"1\", 2 ,0\r\n3,4,1");
  csv.settings.features = {"a \"x\", y", "two\nlines"};
  csv.settings.target = "t"s;
  const Rows rows = read_all(*make_csv(csv.settings));
  CHECK_EQ(rows.x, std::vector<float>{1, 2, 3, 4});
  CHECK_EQ(rows.labels, std::vector<int64_t>{0, 1});
}

TEST_CASE("csv may be gzip") {
  Csv csv(gzip(kNamed));
  csv.settings.target = "label"s;
  CHECK_EQ(make_csv(csv.settings)->size(), 3);
}

TEST_CASE("csv bad cell is named by file line and column") {
  Csv word("a,b,y\n1,2,0\n3,four,1\n");
  CHECK_EQ(word.error(), word.at(":3:3: expected a number in column 'b', found 'four'"));
  Csv empty("1,2,0\n3,,1\n");
  CHECK_EQ(empty.error(), empty.at(":2:3: expected a number in column 1, found ''"));
  Csv large("1,2,0\n3,1e400,1\n");
  CHECK_EQ(large.error(), large.at(":2:3: expected a number in column 1, found '1e400'"));
  Csv after_lines("\"a\nb\",c\n1,x\n");
  CHECK_EQ(after_lines.error(), after_lines.at(":3:3: expected a number in column 'c', found 'x'"));
}

TEST_CASE("csv rows of another length are named") {
  Csv shorter("1,2,0\n3,4\n");
  CHECK_EQ(shorter.error(), shorter.at(":2:1: expected 3 cells, found 2"));
  Csv longer("1,2,0\n3,4,1,5\n");
  CHECK_EQ(longer.error(), longer.at(":2:1: expected 3 cells, found 4"));
}

TEST_CASE("csv quotes that are not closed or followed by text") {
  Csv open("1,\"2,0\n3,4,1\n");
  CHECK_EQ(open.error(), open.at(":1:3: expected a closing quote, found the end of the file"));
  Csv after("1,\"2\"x,0\n");
  CHECK_EQ(after.error(), after.at(":1:3: expected a comma or the line's end after the closing quote, found 'x'"));
}

TEST_CASE("csv first line with names and numbers needs a word from the user") {
  Csv csv("label,0,1\n1,2,3\n");
  CHECK(has(csv.error(), ":1:1: expected a row of numbers or a row of names, found both ('label')"));
  csv.settings.header = true;
  csv.settings.target = "label"s;
  csv.settings.features = {"1", "0"};  // the names win over the indices
  CHECK_EQ(read_all(*make_csv(csv.settings)).x, std::vector<float>{3, 2});
}

TEST_CASE("csv columns that don't exist or are used twice") {
  Csv csv(kNamed);
  csv.settings.target = "lable"s;
  CHECK_EQ(csv.error(), csv.at(": no column 'lable': expected an index below 4 or one of the names a, b, label, c"));
  csv.settings.target = "4"s;
  CHECK(has(csv.error(), "no column '4'"));
  csv.settings.target = "label"s;
  csv.settings.features = {"a", "label"};
  CHECK(has(csv.error(), "column 'label' is both a feature and the target"));
  csv.settings.features = {"a", "0"};
  CHECK(has(csv.error(), "feature '0' is given twice"));
  Csv twice("a,a,y\n1,2,0\n");
  twice.settings.features = {"a"};
  CHECK(has(twice.error(), "two columns are named 'a'"));
}

TEST_CASE("csv label out of range is named by file line and column") {
  Csv csv("1,0\n2,3\n");
  csv.settings.classes = 3;
  CHECK_EQ(csv.error(), csv.at(":2:3: label: expected 0 to 2, found 3"));
  Csv negative("1,0\n2,-1\n");
  negative.settings.targets = WantedTargets::labels;
  CHECK_EQ(negative.error(), negative.at(":2:3: label: expected 0 or more, found -1"));
}

TEST_CASE("csv without rows") {
  CHECK(has(Csv("\n\n").error(), "expected rows, found blank lines only"));
  CHECK(has(Csv("a,b\n").error(), "expected rows below the header, found none"));
  CHECK(has(Csv("1\n2\n").error(), "expected at least 2 columns separated by commas, found 1"));
  CHECK(has(Csv("").error(), "the file is empty"));
}

TEST_CASE("csv cells have a largest size") {
  CHECK(has(Csv("1," + std::string(70000, '7') + "\n").error(), ":1:3: expected a cell of at most 65536 bytes"));
}
