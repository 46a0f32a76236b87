// Every simulated function begins with one of these: counts the call and says whether a test wants it to fail.
#pragma once

#include <string>

namespace lockstep::sim {

bool call_fails(const char* function);
int failing_code();                                          // of the call that was told to fail; 0: none was told
bool is_ignored(const char* function);                       // the call that was just counted
void misuse(const char* function, const std::string& what);  // kept for last_misuse()
bool has_epilogue(int epilogue);
bool is_silent();
void forget_calls();

}  // namespace lockstep::sim
