/* Calls a compiled classifier: see README.md. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libclassifier.h"

enum { FEATURES = 4, CLASSES = 3 };

/* An allocator that counts what is in use. */
typedef struct {
    int64_t pieces;
} counter;

static void *take(void *user, int64_t size, int64_t alignment) {
    void *memory = NULL;
    size_t rounded = ((size_t)size + (size_t)alignment - 1) / (size_t)alignment * (size_t)alignment;
    /* (C11 has aligned_alloc.) */
    char *raw = malloc(rounded + (size_t)alignment + sizeof(void *));
    if (raw != NULL) {
        uintptr_t place = (uintptr_t)(raw + sizeof(void *) + alignment - 1) / (uintptr_t)alignment * (uintptr_t)alignment;
        memory = (void *)place;
        memcpy((char *)memory - sizeof(void *), &raw, sizeof(void *));
        ((counter *)user)->pieces++;
    }
    return memory;
}

static void give(void *user, void *memory) {
    void *raw;
    memcpy(&raw, (char *)memory - sizeof(void *), sizeof(void *));
    free(raw);
    ((counter *)user)->pieces--;
}

/* One run on rows of features; the status, which is told if it is a fault. */
static int32_t classify(classifier_context *context, const float *x, int64_t rows, const int64_t *classes,
                        int64_t count, float *scores, float *picked) {
    const void *inputs[CLASSIFIER_INPUT_COUNT];
    void *outputs[CLASSIFIER_OUTPUT_COUNT];
    int64_t output_dims[CLASSIFIER_OUTPUT_DIMS];
    int64_t input_dims[CLASSIFIER_INPUT_DIMS];
    int32_t code;
    inputs[CLASSIFIER_INPUT_X] = x;
    inputs[CLASSIFIER_INPUT_CLASSES] = classes;
    outputs[CLASSIFIER_OUTPUT_SCORES] = scores;
    outputs[CLASSIFIER_OUTPUT_PICKED] = picked;
    input_dims[0] = rows;
    input_dims[1] = FEATURES;
    input_dims[2] = count;
    code = classifier_run(context, inputs, input_dims, outputs, output_dims);
    if (code != 0) {
        char text[512];
        classifier_error(context, text, sizeof text);
        printf("fault %d: %s\n", (int)code, text);
    }
    return code;
}

static void print(const char *what, const float *values, int64_t count) {
    int64_t i;
    printf("%s", what);
    for (i = 0; i < count; i++) printf(" %.4f", (double)values[i]);
    printf("\n");
}

/* The same rows on one thread and on two. */
static int compare_threads(classifier_context *context, int64_t rows) {
    const int64_t classes[] = {1};
    float *x = malloc((size_t)rows * FEATURES * sizeof *x);
    float *scores = malloc((size_t)rows * CLASSES * sizeof *scores);
    float *again = malloc((size_t)rows * CLASSES * sizeof *again);
    float *picked = malloc((size_t)rows * sizeof *picked);
    int equal = 0;
    if (x != NULL && scores != NULL && again != NULL && picked != NULL) {
        int64_t i;
        for (i = 0; i < rows * FEATURES; i++) x[i] = (float)(i % 7) - 3;
        context[CLASSIFIER_WORD_THREADS] = 1;
        equal = classify(context, x, rows, classes, 1, scores, picked) == 0;
        context[CLASSIFIER_WORD_THREADS] = 2;
        equal = equal && classify(context, x, rows, classes, 1, again, picked) == 0;
        equal = equal && memcmp(scores, again, (size_t)rows * CLASSES * sizeof *scores) == 0;
    }
    free(x);
    free(scores);
    free(again);
    free(picked);
    printf("%d rows on two threads: %s\n", (int)rows, equal ? "equal" : "different");
    return equal;
}

int main(void) {
    const float x[2 * FEATURES] = {1, 2, 3, 4, 1, 0, 0, 0};
    const int64_t classes[] = {2, 0}, wrong[] = {7, 0};
    float scores[2 * CLASSES], picked[2 * 2];
    counter memory = {0};
    int good;
    classifier_context *context;
    if (classifier_abi != CLASSIFIER_ABI) return 2;
    context = classifier_create_with(1, take, give, &memory);
    if (context == NULL) return 3;
    good = classify(context, x, 2, classes, 2, scores, picked) == 0;
    print("scores of 2 rows:", scores, 2 * CLASSES);
    print("picked:", picked, 4);
    good = good && classify(context, x, 2, wrong, 2, scores, picked) != 0;
    good = good && compare_threads(context, 20000);
    classifier_destroy(context);
    return good && memory.pieces == 0 ? 0 : 1;
}
