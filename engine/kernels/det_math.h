// SPDX-License-Identifier: Apache-2.0
// exp, log, sin, cos and pow with the same bits on every machine. The code uses only +, -, *, / and bit operations:
// libm's results differ between versions and CPUs. Pure functions.
#pragma once

#include <span>

namespace baton {

// Relative error below 2e-7. Results below the smallest normal float are 0, above the largest float infinity; NaN stays
// NaN.
float DetExp(float x);
// out[i] = DetExp(x[i]). Sizes must be equal; `out` may be `x`.
void DetExp(std::span<const float> x, std::span<float> out);
// -infinity at 0, NaN below 0. Error at most 1 unit in the last place: rounds the double result.
float DetLog(float x);

// Relative errors: DetExp and DetLog below 1e-15; DetPow below 1e-13 for finite results, growing with |y log(x)|.
// Results below the smallest normal double are 0.
double DetExp(double x);
double DetLog(double x);
double DetPow(double x, double y);  // x >= 0

// Absolute error below 1e-15 for |x| <= 1e6; NaN outside of this range.
double DetSin(double x);
double DetCos(double x);

}  // namespace baton
