#include "core/simulate/random_stream.h"

using namespace infrarsi;

TEST_CASE("streams give the specification's check values", "[simulate]") {
    sim::RandomStream raw({"demo", "0", "drift", "0"});
    CHECK(raw.state() == 0x10139801a44c7eaeU);
    CHECK(raw.next() == 4700783617228532347U);
    CHECK(raw.next() == 18305595505836473790U);

    sim::RandomStream read({"demo", "0", "drift", "0"});
    CHECK(read.uniform() == 0.2548299905091721);
    CHECK(read.normal() == Approx(2.4251192643752986).margin(1e-15));
    CHECK(read.normal() == Approx(-1.3775877132201353).margin(1e-15));
}

TEST_CASE("normal quantiles are those of AS 241 in the centre and both tails", "[simulate]") {
    const std::pair<double, double> known[] = {{1e-10, -6.361340902404056},
                                               {0.001, -3.090232306167813},
                                               {0.02, -2.0537489106318225},
                                               {0.3, -0.5244005127080407},
                                               {0.975, 1.9599639845400536}};
    for (const auto& [p, z] : known) {
        INFO(p);
        CHECK(sim::normal_quantile(p) == Approx(z).epsilon(1e-15));
    }
    CHECK(sim::normal_quantile(0.5) == 0);
    CHECK(sim::normal_quantile(1 - 0x1p-53) == Approx(8.2095361516013856).epsilon(1e-12));
    CHECK(sim::normal_quantile(0x1p-53) == Approx(-8.2095361516013856).epsilon(1e-12));
}

TEST_CASE("a million normals have mean 0 and variance 1, and uniforms stay inside", "[simulate]") {
    sim::RandomStream stream({"moments"});
    constexpr int kCount = 1'000'000;
    double sum = 0;
    double squares = 0;
    for (int i = 0; i < kCount; ++i) {
        const double z = stream.normal();
        sum += z;
        squares += z * z;
    }
    const double mean = sum / kCount;
    CHECK(std::abs(mean) < 0.004);
    CHECK(std::abs(squares / kCount - mean * mean - 1) < 0.006);

    sim::RandomStream uniforms({"uniforms"});
    double low = 1;
    double high = 0;
    for (int i = 0; i < 100'000; ++i) {
        const double u = uniforms.uniform();
        low = std::min(low, u);
        high = std::max(high, u);
    }
    CHECK(low > 0);
    CHECK(high < 1);
    CHECK(low < 1e-4);
    CHECK(high > 1 - 1e-4);
}
