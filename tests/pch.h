#pragma once
#include <catch2/catch.hpp>
#include "../cmake/pch.h"
