/* Predictions of a Cistern model inside another program, as a C interface.
 *
 *   char error[512];
 *   cistern_model* model = cistern_open("serving", "threads=4", error, sizeof(error));
 *   if (model == NULL) ...;
 *   cistern_input input = {keys, key_num, offsets, offset_num};
 *   cistern_batch batch = {samples, dense, dense_num, &input, 1};
 *   uint64_t commit;
 *   int code = cistern_predict(model, &batch, out, out_num, &commit, error, sizeof(error));
 *
 * The folder is one that `cistern export serving` writes. Link with -lcistern_serve (pkg-config
 * cistern_serve, or find_package(cistern_serve)).
 *
 * Threads: every function may be called from any thread, also for one model at the same time,
 * except that cistern_close must be the last call for a model. The library keeps none of the
 * caller's pointers and never writes beyond the sizes that it is given. Messages end with a zero
 * byte and are cut to error_size; `error` may be NULL. */
#ifndef CISTERN_SERVE_H_
#define CISTERN_SERVE_H_

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define CISTERN_API __attribute__((visibility("default")))

/* The interface of this header. A program built for an older one keeps working.
 * 2: cistern_predict_text. 3: cistern_predict_weighted. */
#define CISTERN_SERVE_VERSION 3

typedef struct cistern_model cistern_model;

enum cistern_code {
  CISTERN_OK = 0,
  CISTERN_BAD_REQUEST = -1, /* the batch does not fit the model; `error` says why */
  CISTERN_NOT_FOUND = -2,   /* no such folder or version */
  CISTERN_CORRUPT = -3,     /* damaged files */
  CISTERN_FAILED = -4       /* anything else, such as memory */
};

/* The keys of one sparse input of a batch, by (sample, slot):
 * keys[offsets[i * slots + s]] ... keys[offsets[i * slots + s + 1] - 1] belong to slot s of sample
 * i. offset_num is samples * slots + 1, offsets[0] is 0, and the last offset is key_num. */
typedef struct cistern_input {
  const uint64_t* keys;
  size_t key_num;
  const uint32_t* offsets;
  size_t offset_num;
} cistern_input;

typedef struct cistern_batch {
  size_t samples;
  const float* dense; /* [samples, dense features] */
  size_t dense_num;
  const cistern_input* inputs; /* in the order of cistern_describe */
  size_t input_num;
} cistern_batch;

/* Opens the current version of a serving folder.
 *
 * options: NULL, or words "name=value" separated by spaces:
 *   threads=N      predictions at the same time; more calls wait (default: one per core)
 *   max_samples=N  of one batch (default 16384)
 *   poll_ms=N      look for a newer version every N ms and switch to it; 0: only cistern_follow
 *                  does (default 200)
 *   verify=1       read and check every byte of the rows first
 *   fall_back=1    if the current version is corrupt, open the newest older one that is not
 * (default 0: an error) Returns NULL on an error. */
CISTERN_API cistern_model* cistern_open(const char* folder, const char* options, char* error,
                                        size_t error_size);

/* Predicts a batch on the calling thread.
 *
 * out: out_num = samples * labels floats, the probability of each label.
 * commit: the number of the commit that predicted all of them; may be NULL.
 * A key that the model has no row for counts as zeros, as in `cistern eval`.
 * Returns CISTERN_OK or an error, after which `out` is unspecified. */
CISTERN_API int cistern_predict(cistern_model* model, const cistern_batch* batch, float* out,
                                size_t out_num, uint64_t* commit, char* error, size_t error_size);

/* The weights of the keys of one sparse input: key_num finite numbers for an input with "weights"
 * in cistern_describe, none (0) for others. */
typedef struct cistern_weights {
  const float* weights;
  size_t weight_num;
} cistern_weights;

/* As cistern_predict, for a model whose keys have weights. weights: [batch->input_num], in the
 * order of the inputs. */
CISTERN_API int cistern_predict_weighted(cistern_model* model, const cistern_batch* batch,
                                         const cistern_weights* weights, float* out, size_t out_num,
                                         uint64_t* commit, char* error, size_t error_size);

/* A row of text. It need not end with a zero byte. */
typedef struct cistern_text {
  const char* bytes;
  size_t size;
} cistern_text;

/* Predicts rows of text, for a model that was exported with its data recipe. A row is a line as in
 * the training data (CSV, for example) with the columns of "text"."columns" in cistern_describe, in
 * this order: those that the model reads, without labels.
 *
 * out, commit and the result are as in cistern_predict; CISTERN_BAD_REQUEST also means that the
 * model has no recipe, or that a row does not fit it. */
CISTERN_API int cistern_predict_text(cistern_model* model, const cistern_text* rows, size_t row_num,
                                     float* out, size_t out_num, uint64_t* commit, char* error,
                                     size_t error_size);

/* Looks for a newer version now and switches to it. Returns 1 if it did, 0 if there is none, or an
 * error; after an error the older version is served on. */
CISTERN_API int cistern_follow(cistern_model* model, char* error, size_t error_size);

/* Writes a JSON object to json[size]: "name", "commit", "version", "labels", "dense",
 * "max_samples", "inputs": [{"name", "slots"}], also "weights": true if its keys have weights, and,
 * with a recipe, "text": {"columns", "delimiter"}; of a model of libsvm or libffm lines also
 * "format": such a line is a row, with its label or without, and the delimiter is a space.
 * cistern_stats: "requests", "refused", "samples", "unseen_keys", "commit". Both return the length
 * of the whole text without its zero byte; if that is `size` or more, the text was cut. */
CISTERN_API size_t cistern_describe(cistern_model* model, char* json, size_t size);
CISTERN_API size_t cistern_stats(cistern_model* model, char* json, size_t size);

/* Frees the model; NULL is allowed. */
CISTERN_API void cistern_close(cistern_model* model);

#ifdef __cplusplus
}
#endif

#endif /* CISTERN_SERVE_H_ */
