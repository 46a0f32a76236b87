// Whether what a process prints is watched by people.
#pragma once

namespace lockstep {

// descriptor: 1 or 2. mpirun gives its ranks a terminal of their own even where its own output goes to a file: of a
// process that it started both must be one.
bool is_terminal(int descriptor);
int terminal_width(int descriptor);  // columns; 80 where it is not known

}  // namespace lockstep
