// A wrapper that owns a context of the classifier and reports faults as exceptions.
#pragma once

#include <memory>
#include <new>
#include <stdexcept>
#include <string>
#include <vector>

#include "libclassifier.h"

class Fault : public std::runtime_error {
public:
    Fault(int code, const std::string &text) : std::runtime_error(text), code(code) {}
    const int code;
};

class Classifier {
public:
    static constexpr int64_t features = 4, classes = 3;

    struct Result {
        std::vector<float> scores, picked;
    };

    explicit Classifier(int64_t threads = 1) : context_(classifier_create(threads)) {
        if (!context_) throw std::bad_alloc();
    }

    void set_threads(int64_t threads) { context_.get()[CLASSIFIER_WORD_THREADS] = threads; }

    // The scores of rows of features, and of some classes alone.
    Result operator()(const std::vector<float> &x, const std::vector<int64_t> &chosen) {
        const int64_t rows = static_cast<int64_t>(x.size()) / features;
        const int64_t count = static_cast<int64_t>(chosen.size());
        Result result{std::vector<float>(static_cast<size_t>(rows * classes)),
                      std::vector<float>(static_cast<size_t>(rows * count))};
        const void *inputs[] = {x.data(), chosen.data()};
        void *outputs[] = {result.scores.data(), result.picked.data()};
        const int64_t input_dims[CLASSIFIER_INPUT_DIMS] = {rows, features, count};
        int64_t output_dims[CLASSIFIER_OUTPUT_DIMS];
        const int32_t code = classifier_run(context_.get(), inputs, input_dims, outputs, output_dims);
        if (code != 0) throw Fault(code, error());
        return result;
    }

private:
    struct Destroy {
        void operator()(classifier_context *context) const { classifier_destroy(context); }
    };

    std::string error() const {
        std::string text(static_cast<size_t>(classifier_error(context_.get(), nullptr, 0)), '\0');
        classifier_error(context_.get(), &text[0], static_cast<int64_t>(text.size()) + 1);
        return text;
    }

    std::unique_ptr<classifier_context, Destroy> context_;
};
