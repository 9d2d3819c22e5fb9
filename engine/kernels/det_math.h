// exp, log, sin, cos and pow with one result everywhere: made of +, -, *, / and bit operations alone, because libm's
// differ between versions and pick other code on other CPUs. Pure functions.
#pragma once

#include <span>

namespace baton {

// Relative error under 2e-7. Results too small for a normal float are 0, too large infinity; NaN stays NaN.
float DetExp(float x);
// out[i] = DetExp(x[i]), sizes equal; in place is fine.
void DetExp(std::span<const float> x, std::span<float> out);
// -infinity at 0, NaN below. Rounded from the double version: within 1 unit in the last place.
float DetLog(float x);

// Relative error under 1e-15 for DetExp and DetLog; DetPow's grows with |y log(x)|: under 1e-13 while the result is
// finite. Results too small for a normal double are 0.
double DetExp(double x);
double DetLog(double x);
double DetPow(double x, double y);  // x >= 0

// Absolute error under 1e-15 for |x| <= 1e6, the domain; NaN outside of it.
double DetSin(double x);
double DetCos(double x);

}  // namespace baton
