// Calls a compiled classifier through a wrapper: see README.md.
#include <cstdio>

#include "classifier.hpp"

static void print(const char *what, const std::vector<float> &values) {
    std::printf("%s", what);
    for (float value : values) std::printf(" %.4f", static_cast<double>(value));
    std::printf("\n");
}

int main() {
    if (classifier_abi != CLASSIFIER_ABI) return 2;
    Classifier classifier;
    const std::vector<float> x = {1, 2, 3, 4, 1, 0, 0, 0};
    const auto result = classifier(x, {2, 0});
    print("scores of 2 rows:", result.scores);
    print("picked:", result.picked);
    try {
        classifier(x, {7, 0});
        return 1;
    } catch (const Fault &fault) {
        std::printf("fault %d: %s\n", fault.code, fault.what());
    }
    std::vector<float> many(20000 * Classifier::features);
    for (size_t i = 0; i < many.size(); i++) many[i] = static_cast<float>(i % 7) - 3;
    const auto alone = classifier(many, {1});
    classifier.set_threads(2);
    const bool equal = classifier(many, {1}).scores == alone.scores;
    std::printf("20000 rows on two threads: %s\n", equal ? "equal" : "different");
    return equal ? 0 : 1;
}
