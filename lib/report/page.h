// The files of page/ and the chart library, as CMake put them into the program (cmake/EmbedText.cmake).
#pragma once

#include <string_view>

namespace lockstep::page {

extern const std::string_view page_html, page_css, plan_js, pictures_js, sections_js;
extern const std::string_view chart_js;  // Chart.js, MIT licence, which it carries in its first lines

}  // namespace lockstep::page
