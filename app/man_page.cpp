#include "app/man_page.h"

#include <fmt/format.h>

#include "core/build_info.h"

namespace lockstep::app {
namespace {

// Text as troff takes it: no hyphens of its own, no line that looks like a request.
std::string plain(const std::string& text) {
  std::string result;
  for (const char c : text) {
    if (c == '\\') {
      result += "\\e";
      continue;
    }
    if (c == '-') result += '\\';
    if ((c == '.' || c == '\'') && (result.empty() || result.back() == '\n')) result += "\\&";
    result += c;
  }
  return result;
}

void option(const CLI::Option& option, std::string& page) {
  const std::string value =
      option.get_items_expected_max() > 0 && !option.get_positional() ? option.get_type_name() : "";
  page += fmt::format(
      ".TP\n.B {}{}\n{}{}\n", plain(option.get_name(option.get_positional(), true)),
      value.empty() ? "" : " " + plain(value), plain(option.get_description()),
      option.get_default_str().empty() ? "" : plain(fmt::format(" (default: {})", option.get_default_str())));
}

void command(const CLI::App& app, std::string& page) {
  std::string positionals;
  for (const CLI::Option* one : app.get_options())
    if (one->get_positional()) positionals += " " + one->get_name(true);
  page +=
      fmt::format(".SS lockstep {}{}\n{}.\n", plain(app.get_name()), plain(positionals), plain(app.get_description()));
  for (const CLI::Option* one : app.get_options())
    if (one->get_group() != "") option(*one, page);
  if (!app.get_footer().empty()) page += fmt::format(".PP\n{}\n", plain(app.get_footer()));
}

constexpr const char* kExamples = R"(.SH EXAMPLES
.nf
mpirun --bind-to none -np 2 lockstep train configs/mnist_quick.yaml
srun --mpi=pmix lockstep train CONFIG --resume auto
lockstep plan CONFIG --world-size 1,2,4,8
lockstep doctor
.fi
.SH EXIT STATUS
0: done. 1: failed. 2: wrong input. 75: asked to end and saved; go on with \-\-resume auto.
.SH FILES
A run writes below run.dir: config.yaml (every default filled in), metrics.jsonl (an event per line), checkpoints.
.SH SEE ALSO
.BR mpirun (1),
.BR srun (1)
)";

}  // namespace

std::string man_page(const CLI::App& program) {
  const std::string version = build_info().substr(0, build_info().find(" ("));
  std::string page = fmt::format(".TH LOCKSTEP 1 \"\" \"{}\" \"User Commands\"\n.SH NAME\nlockstep \\- {}\n", version,
                                 "data\\-parallel training from a YAML file");
  page += ".SH SYNOPSIS\n.B lockstep\n.I COMMAND\n[\\fIOPTION\\fR...]\n.SH DESCRIPTION\n" +
          plain(program.get_description()) + ".\n.SH COMMANDS\n";
  for (const CLI::App* one : program.get_subcommands({})) command(*one, page);
  return page + kExamples;
}

}  // namespace lockstep::app
