#pragma once
// What is believed of a mechanism before anything is measured: the phases that it works on and the sign and rough size
// of its effect. Rules of thumb, not measurements; they order, and conclude nothing (notes on statistics §9).

#include <string>

#include "core/search/space.h"

namespace infrarsi {

struct MechanismRule {
    unsigned phases = kEveryPhase;
    double gain = 0;  // log speed-up for switching on, raising or replacing a naive form
};

// Of a canonical mechanism id; the first rule that matches its name or prefix, else no opinion.
[[nodiscard]] MechanismRule mechanism_rule(const std::string& mechanism);
// Micro-batch and recomputation multiply the memory of activations.
[[nodiscard]] bool scales_activations(const std::string& mechanism);

}  // namespace infrarsi
