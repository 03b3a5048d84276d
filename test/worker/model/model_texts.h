// Small model files of common architectures: DNN, DeepFM, DLRM, DCN, and one with a tangled graph.
#pragma once

#include <string>
#include <vector>

#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"

namespace cistern::model {

// Adds a solver (batchsize 16) and SGD with learning rate 1 to the layers, so that a step moves
// each weight by exactly its gradient.
inline std::string WithSgd(const std::string& data, const std::string& layers) {
  return R"({"solver": {"max_iter": 1, "batchsize": 16, "seed": 5},
    "optimizer": {"type": "SGD", "sgd_hparam": {"learning_rate": 1.0}},
    "layers": [{"type": "Data", "source": "x", "label": {"top": "label", "label_dim": 1},)" +
         data + "}," + layers +
         R"(, {"type": "BinaryCrossEntropyLoss", "name": "loss", "bottom": ["logit", "label"]}]})";
}

inline std::string OneSparse() {
  return R"("dense": {"top": "dense", "dense_dim": 3},
            "sparse": [{"top": "data1", "slot_num": 4, "type": "DistributedSlot"}])";
}

inline std::string Embedding(const std::string& name, const std::string& bottom, int width,
                             const std::string& combiner) {
  return R"({"type": "DistributedSlotSparseEmbeddingHash", "name": ")" + name +
         R"(", "bottom": ")" + bottom + R"(", "top": ")" + name +
         R"(", "sparse_embedding_hparam": {"embedding_vec_size": )" + std::to_string(width) +
         R"(, "combiner": )" + combiner + "}}";
}

inline std::string FullyConnected(const std::string& bottom, const std::string& top, int width) {
  return R"({"type": "InnerProduct", "name": ")" + top + R"(", "bottom": ")" + bottom +
         R"(", "top": ")" + top + R"(", "fc_param": {"num_output": )" + std::to_string(width) +
         "}}";
}

// A layer with one bottom and one top; `more`: further keys.
inline std::string Simple(const std::string& type, const std::string& bottom,
                          const std::string& top, const std::string& more = "") {
  return R"({"type": ")" + type + R"(", "name": ")" + top + R"(", "bottom": ")" + bottom +
         R"(", "top": ")" + top + "\"" + (more.empty() ? "" : ", " + more) + "}";
}

// Embedding, [Linear, BatchNorm, ReLU, Dropout] twice, Linear.
inline std::string DnnText() {
  return WithSgd(OneSparse(),
                 Embedding("emb", "data1", 5, "0") + "," +
                     Simple("Reshape", "emb", "flat", R"("leading_dim": 20)") + "," +
                     FullyConnected("flat", "fc1", 8) + "," + Simple("BatchNorm", "fc1", "bn1") +
                     "," + Simple("ReLU", "bn1", "relu1") + "," +
                     Simple("Dropout", "relu1", "drop1", R"("rate": 0.25)") + "," +
                     FullyConnected("drop1", "fc2", 6) + "," + Simple("BatchNorm", "fc2", "bn2") +
                     "," + Simple("ReLU", "bn2", "relu2") + "," +
                     Simple("Dropout", "relu2", "drop2", R"("rate": 0.25)") + "," +
                     FullyConnected("drop2", "logit", 1));
}

// HugeCTR's samples/deepfm, smaller. Dimension 0 changes; Slice splits and duplicates.
inline std::string DeepFmText() {
  return WithSgd(
      OneSparse(),
      Embedding("emb", "data1", 5, "0") + "," +
          Simple("Reshape", "emb", "vectors", R"("leading_dim": 5)") +
          R"(,{"type": "Slice", "name": "parts", "bottom": "vectors", "top": ["factors", "wide"],
               "ranges": [[0, 4], [4, 5]]},)" +
          Simple("Reshape", "factors", "flat", R"("leading_dim": 16)") + "," +
          Simple("Reshape", "wide", "flat_wide", R"("leading_dim": 4)") +
          R"(,{"type": "Slice", "name": "twice", "bottom": "dense", "top": ["dense1", "dense2"],
               "ranges": [[0, 3], [0, 3]]},)" +
          Simple("Multiply", "dense1", "dense_factors", R"("weight_dims": [3, 4])") + "," +
          Simple("Multiply", "dense2", "dense_wide", R"("weight_dims": [3, 1])") +
          R"(,{"type": "Concat", "name": "concat1", "bottom": ["flat", "dense_factors"],
               "top": "concat1"},
             {"type": "Slice", "name": "slice3", "bottom": "concat1", "top": ["deep_in", "fm_in"],
               "ranges": [[0, 28], [0, 28]]},)" +
          FullyConnected("deep_in", "fc1", 8) + "," + Simple("ReLU", "fc1", "relu1") + "," +
          Simple("Dropout", "relu1", "drop1", R"("rate": 0.5)") + "," +
          FullyConnected("drop1", "deep", 1) + "," +
          Simple("FmOrder2", "fm_in", "fm", R"("out_dim": 4)") + "," +
          Simple("ReduceSum", "fm", "fm_sum", R"("axis": 1)") +
          R"(,{"type": "Concat", "name": "concat2", "bottom": ["flat_wide", "dense_wide"],
               "top": "concat2"},)" +
          Simple("ReduceSum", "concat2", "wide_sum", R"("axis": 1)") +
          R"(,{"type": "Add", "name": "logit", "bottom": ["deep", "fm_sum", "wide_sum"],
               "top": "logit"})");
}

// Factors that a tower reads behind a Concat, and a factorization machine by themselves. In the
// backward pass the tower comes first, or with `fm_last` the machine.
inline std::string FmBesideConcatText(bool fm_last = false) {
  const std::string fm = Simple("FmOrder2", "flat", "fm", R"("out_dim": 4)") + "," +
                         Simple("ReduceSum", "fm", "fm_sum", R"("axis": 1)");
  const std::string tower = FullyConnected("all", "fc1", 8) + "," + Simple("ReLU", "fc1", "relu1") +
                            "," + FullyConnected("relu1", "deep", 1);
  return WithSgd(
      OneSparse(),
      Embedding("emb", "data1", 4, "0") + "," +
          Simple("Reshape", "emb", "flat", R"("leading_dim": 16)") + "," +
          FullyConnected("dense", "low", 4) +
          R"(,{"type": "Concat", "name": "all", "bottom": ["low", "flat"], "top": "all"},)" +
          (fm_last ? tower + "," + fm : fm + "," + tower) +
          R"(,{"type": "Add", "name": "logit", "bottom": ["deep", "fm_sum"], "top": "logit"})");
}

// Wide and deep over one sparse input, with tensors that have several readers, overlapping slices,
// an unfused dropout, and a dead layer.
inline std::string TangledText() {
  return WithSgd(
      OneSparse(),
      Embedding("deep", "data1", 3, "1") + "," + Embedding("wide", "data1", 1, "0") + "," +
          Simple("Reshape", "deep", "flat") + "," + Simple("Reshape", "wide", "flat_wide") +
          R"(,{"type": "Concat", "name": "all", "bottom": ["flat", "dense", "flat_wide"],
               "top": "all"},)" +
          FullyConnected("all", "fc1", 7) + "," + FullyConnected("all", "fc2", 7) + "," +
          Simple("ReLU", "fc2", "side") + "," + FullyConnected("side", "side_sum", 1) +
          R"(,{"type": "Add", "name": "sum", "bottom": ["fc1", "fc2", "fc1"], "top": "sum"},)" +
          Simple("BatchNorm", "sum", "bn", R"("bn_param": {"factor": 0.3, "eps": 1e-3})") + "," +
          Simple("Dropout", "bn", "drop", R"("rate": 0.25)") + "," +
          Simple("ReLU", "drop", "relu") +
          R"(,{"type": "Slice", "name": "slices", "bottom": "relu", "top": ["a", "b", "c"],
               "ranges": [[0, 4], [2, 6], [5, 7]]},)" +
          Simple("ReduceSum", "a", "a_sum", R"("axis": 1)") + "," + FullyConnected("b", "fb", 1) +
          "," + FullyConnected("c", "nowhere", 3) + "," +
          Simple("ReduceSum", "flat_wide", "w_sum", R"("axis": 1)") +
          R"(,{"type": "Add", "name": "logit", "bottom": ["a_sum", "fb", "w_sum", "side_sum"],
               "top": "logit"})");
}

// A layer with several bottoms.
inline std::string Joining(const std::string& type, const std::vector<std::string>& bottoms,
                           const std::string& top) {
  return R"({"type": ")" + type + R"(", "name": ")" + top + R"(", "bottom": [")" +
         absl::StrJoin(bottoms, R"(", ")") + R"("], "top": ")" + top + R"("})";
}

// HugeCTR's samples/dlrm, smaller, with fused layers and the interaction of an MLP with all slots.
inline std::string DlrmText() {
  return WithSgd(
      OneSparse(),
      Embedding("emb", "data1", 5, "0") + "," +
          Simple("FusedInnerProduct", "dense", "bottom1", R"("fc_param": {"num_output": 16})") +
          "," + FullyConnected("bottom1", "bottom2", 5) + "," + Simple("ReLU", "bottom2", "mlp") +
          "," + Joining("Interaction", {"mlp", "emb"}, "pairs") + "," +
          Simple("Cast", "pairs", "pairs16") + "," +
          Simple("FusedInnerProduct", "pairs16", "top1", R"("fc_param": {"num_output": 16})") +
          "," + FullyConnected("top1", "top2", 7) + "," + Simple("ReLU", "top2", "top3") + "," +
          FullyConnected("top3", "logit", 1));
}

// HugeCTR's samples/dcn, smaller and without the Slice that duplicates: MultiCross in parallel to
// an MLP. The remaining layer types follow, on tensors with several readers.
inline std::string DcnText() {
  return WithSgd(OneSparse(),
                 Embedding("emb", "data1", 5, "1") + "," + Simple("Reshape", "emb", "flat") + "," +
                     Joining("Concat", {"flat", "dense"}, "all") + "," +
                     Simple("MultiCross", "all", "cross",
                            R"("mc_param": {"num_layers": 3, "bias_init": "Uniform"})") +
                     "," + FullyConnected("all", "fc1", 6) + "," +
                     Simple("ELU", "fc1", "elu", R"("elu_param": {"alpha": 0.7})") + "," +
                     FullyConnected("cross", "fc2", 6) + "," +
                     Joining("DotProduct", {"elu", "fc2", "elu"}, "product") + "," +
                     Simple("Reshape", "emb", "picked", R"("selected": [3, 1, 1])") + "," +
                     Simple("ReduceSum", "picked", "picked_sum", R"("axis": 1)") + "," +
                     FullyConnected("product", "deep", 1) + "," +
                     Joining("Add", {"deep", "picked_sum"}, "logit"));
}

// Layers of HugeCTR 3.x, on tensors of two and three dimensions and with several readers: attention
// over the slots, and the differences of a repeated vector from each slot.
inline std::string AttentionText() {
  return WithSgd(
      OneSparse(),
      Embedding("emb", "data1", 5, "0") + "," +
          Simple("Softmax", "emb", "share", R"("factor": 1.5)") + "," +
          Joining("ElementwiseMultiply", {"emb", "share"}, "weighted") + "," +
          Simple("ReduceMean", "weighted", "mean", R"("axis": 1)") + "," +
          Simple("Reshape", "mean", "pooled") + "," +
          Simple("ReduceMean", "emb", "level", R"("axis": 2)") + "," +
          Simple("Reshape", "level", "levels") + "," + FullyConnected("dense", "fc1", 5) + "," +
          Simple("Sigmoid", "fc1", "gate") + "," + Joining("Sub", {"pooled", "gate"}, "target") +
          "," + Simple("Scale", "target", "wide", R"("scale_param": {"axis": 0, "factor": 3})") +
          "," + Simple("Scale", "target", "tall", R"("scale_param": {"axis": 1, "factor": 4})") +
          "," + Simple("Reshape", "emb", "slots", R"("leading_dim": 5)") + "," +
          Joining("Sub", {"slots", "tall"}, "apart") + "," +
          Simple("Reshape", "apart", "apart_flat", R"("leading_dim": 20)") + "," +
          Simple("Softmax", "apart_flat", "near") + "," +
          Simple("ReduceMean", "near", "offset", R"("axis": 1)") + "," +
          Joining("Concat", {"wide", "near", "levels", "apart_flat"}, "all") + "," +
          FullyConnected("all", "top", 1) + "," + Joining("Sub", {"top", "offset"}, "logit"));
}

// HugeCTR's samples/din, smaller: the history of a user and a target item from two embeddings, and
// the products of the vectors of a history with each other.
inline std::string DinText() {
  return WithSgd(
      OneSparse(),
      Embedding("good", "data1", 3, "0") + "," + Embedding("kind", "data1", 2, "1") + "," +
          Joining("FusedReshapeConcatGeneral", {"good", "kind"}, "rows") + "," +
          Simple("Reshape", "rows", "left", R"("leading_dim": 4, "time_step": 5)") + "," +
          Joining("MatrixMultiply", {"left", "good"}, "mixed") + "," +
          Simple("Reshape", "mixed", "mix", R"("leading_dim": 15)") +
          R"(,{"type": "FusedReshapeConcat", "name": "fused", "bottom": ["good", "kind"],
               "top": ["history", "item"]},
              {"type": "FusedReshapeConcat", "name": "again", "bottom": ["good", "good"],
               "top": ["unread", "twice"]},)" +
          Simple("Scale", "item", "items", R"("scale_param": {"axis": 1, "factor": 3})") + "," +
          Joining("Sub", {"items", "history"}, "apart") + "," +
          Joining("ElementwiseMultiply", {"items", "history"}, "near") + "," +
          Joining("Concat", {"items", "history", "apart", "near"}, "pairs") + "," +
          FullyConnected("pairs", "fc1", 1) + "," +
          Simple("Reshape", "fc1", "scores", R"("leading_dim": 3)") + "," +
          Simple("Softmax", "scores", "softmax") + "," +
          Simple("Reshape", "softmax", "shares", R"("leading_dim": 3, "time_step": 1)") + "," +
          Simple("Reshape", "history", "sequence", R"("leading_dim": 5, "time_step": 3)") + "," +
          Joining("MatrixMultiply", {"shares", "sequence"}, "interest") + "," +
          Simple("Reshape", "interest", "interests", R"("leading_dim": 5)") + "," +
          Simple("Reshape", "rows", "flat", R"("leading_dim": 20)") + "," +
          Joining("Concat", {"interests", "item", "mix", "twice", "flat"}, "all") + "," +
          FullyConnected("all", "logit", 1));
}

// PReLU_Dice before and after a BatchNorm, and on a tensor with several readers.
inline std::string DiceText() {
  return WithSgd(
      OneSparse(),
      Embedding("emb", "data1", 5, "0") + "," + Simple("Reshape", "emb", "flat") + "," +
          FullyConnected("flat", "fc1", 7) + "," +
          Simple("PReLU_Dice", "fc1", "dice1",
                 R"("prelu_dice_param": {"alpha": 0.2, "eps": 1e-3, "factor": 0.3})") +
          "," + FullyConnected("dice1", "fc2", 7) + "," + Simple("BatchNorm", "fc2", "bn") + "," +
          Simple("PReLU_Dice", "bn", "dice2",
                 R"("prelu_dice_param": {"alpha": 0.5, "eps": 1e-2})") +
          "," + Joining("Sub", {"dice2", "bn"}, "apart") + "," +
          Joining("Concat", {"apart", "fc1"}, "all") + "," + FullyConnected("all", "logit", 1));
}

// PReLU of slots, whose rows share the slopes, and between products.
inline std::string PReluText() {
  return WithSgd(
      OneSparse(),
      Embedding("emb", "data1", 5, "0") + "," + Simple("PReLU", "emb", "bent", R"("slope": 0.4)") +
          "," + Simple("Reshape", "bent", "flat") + "," + FullyConnected("flat", "fc1", 7) + "," +
          Simple("PReLU", "fc1", "prelu1") + "," + Joining("Concat", {"prelu1", "fc1"}, "all") +
          "," + FullyConnected("all", "logit", 1));
}

// HugeCTR's samples/bst, smaller: self-attention over the slots, whose lengths a layer computes,
// with a shortcut, a normalization and a network of its own; attention of one query without a mask,
// of one head; and what selects from tensors of two and three dimensions.
inline std::string BstText() {
  return WithSgd(
      OneSparse(),
      Embedding("good", "data1", 3, "0") + "," + Embedding("kind", "data1", 3, "1") +
          R"(,{"type": "Concat", "name": "history", "bottom": ["kind", "good"], "top": "history",
               "axis": 2},
              {"type": "Concat", "name": "both", "bottom": ["good", "kind"], "top": "both",
               "axis": 1},
              {"type": "Slice", "name": "widths", "bottom": "dense", "top": ["first", "second"],
               "ranges": [[0, 1], [1, 3]]},)" +
          FullyConnected("second", "length", 1) + "," +
          R"({"type": "SequenceMask", "name": "mask", "bottom": ["length", "length"],
              "top": "mask", "max_sequence_len_from": 4, "max_sequence_len_to": 4},)" +
          FullyConnected("history", "query", 4) + "," + FullyConnected("history", "key", 4) + "," +
          FullyConnected("history", "value", 4) +
          R"(,{"type": "MultiHeadAttention", "name": "mixed", "top": "mixed",
               "bottom": ["query", "key", "value", "mask"], "num_attention_heads": 2},)" +
          Joining("Add", {"mixed", "query"}, "shortcut") + "," +
          Simple("LayerNorm", "shortcut", "norm", R"("ln_param": {"eps": 1e-2})") + "," +
          FullyConnected("norm", "ffn1", 5) + "," + Simple("ReLU", "ffn1", "ffn_relu") + "," +
          FullyConnected("ffn_relu", "ffn2", 4) + "," + Joining("Add", {"ffn2", "norm"}, "sum") +
          "," + Simple("LayerNorm", "sum", "norm2", R"("ln_param": {"beta_init": "Uniform"})") +
          "," + Simple("Select", "norm2", "few", R"("dim": 1, "index": [3, 1, 2, 1])") + "," +
          Simple("Select", "few", "narrow", R"("dim": 2, "index": [2, 0, 2])") +
          R"(,{"type": "Slice", "name": "columns", "bottom": "few", "top": ["left", "right"],
               "ranges": [[0, 2], [1, 4]]},)" +
          Simple("Select", "both", "one", R"("dim": 1, "index": [5])") + "," +
          Joining("MultiHeadAttention", {"one", "good", "good"}, "interest") + "," +
          Joining("MultiHeadAttention", {"both", "both", "both"}, "alike") + "," +
          Simple("ReduceMean", "alike", "alike_mean", R"("axis": 1)") + "," +
          Simple("Reshape", "alike_mean", "alike_row") + "," +
          Simple("Reshape", "interest", "interest_row") + "," +
          Simple("Reshape", "narrow", "narrow_row", R"("leading_dim": 12)") + "," +
          Simple("Reshape", "right", "right_row", R"("leading_dim": 12)") + "," +
          Simple("ReduceMean", "left", "left_mean", R"("axis": 1)") + "," +
          Simple("Reshape", "left_mean", "left_row") + "," +
          Simple("Reshape", "good", "rows", R"("leading_dim": 3)") + "," +
          Simple("Gather", "rows", "some", R"("indices": [2, 0, 2])") + "," +
          Simple("Reshape", "some", "some_row", R"("leading_dim": 9)") + "," +
          Simple("LayerNorm", "some_row", "some_norm") + "," +
          Simple("Select", "some_norm", "picked", R"("dim": 1, "index": [8, 0, 1])") + "," +
          Joining("Concat",
                  {"alike_row", "interest_row", "narrow_row", "right_row", "left_row", "some_norm",
                   "picked", "first"},
                  "all") +
          "," + FullyConnected("all", "logit", 1));
}

// Two blocks of HSTU over the slots, each with its projections and a shortcut: of two heads with
// the mask of lengths that a layer computes, and of one head that looks in both directions.
inline std::string HstuText() {
  return WithSgd(
      OneSparse(),
      Embedding("emb", "data1", 4, "0") +
          R"(,{"type": "Slice", "name": "widths", "bottom": "dense", "top": ["first", "second"],
               "ranges": [[0, 1], [1, 3]]},)" +
          FullyConnected("second", "length", 1) + "," +
          R"({"type": "SequenceMask", "name": "mask", "bottom": ["length", "length"],
              "top": "mask", "max_sequence_len_from": 4, "max_sequence_len_to": 4},)" +
          FullyConnected("emb", "uvqk1", 24) +
          R"(,{"type": "HSTU", "name": "hstu1", "top": "hstu1", "bottom": ["uvqk1", "mask"],
               "num_attention_heads": 2, "eps": 1e-2},)" +
          FullyConnected("hstu1", "out1", 4) + "," + Joining("Add", {"out1", "emb"}, "block1") +
          "," + FullyConnected("block1", "uvqk2", 12) + "," +
          Simple("HSTU", "uvqk2", "hstu2", R"("causal": false, "eps": 1e-2)") + "," +
          FullyConnected("hstu2", "out2", 4) + "," + Joining("Add", {"out2", "block1"}, "block2") +
          "," + Simple("Reshape", "block2", "row") + "," + Simple("Reshape", "hstu1", "hstu_row") +
          "," + Joining("Concat", {"row", "hstu_row", "first"}, "all") + "," +
          FullyConnected("all", "logit", 1));
}

// A recurrent unit over the slots, one over its outputs, one over a row that holds a sequence, and
// one of a single step.
inline std::string GruText() {
  return WithSgd(
      OneSparse(),
      Embedding("emb", "data1", 5, "0") + "," +
          Simple("GRU", "emb", "gru1",
                 R"("gru_param": {"num_output": 3, "bias_init": "Uniform"})") +
          "," + Simple("GRU", "gru1", "gru2", R"("gru_param": {"num_output": 4})") + "," +
          Simple("GRU", "dense", "gru3",
                 R"("gru_param": {"num_output": 2, "SeqLength": 3, "vector_size": 1})") +
          "," +
          Simple("GRU", "gru3", "gru4",
                 R"("gru_param": {"num_output": 3, "SeqLength": 1, "vector_size": 6})") +
          "," + Joining("MultiHeadAttention", {"gru2", "gru2", "gru2"}, "mixed") + "," +
          Simple("Reshape", "mixed", "mixed_row") + "," + Simple("Reshape", "gru1", "gru1_row") +
          "," + Joining("Concat", {"mixed_row", "gru1_row", "gru3", "gru4"}, "all") + "," +
          FullyConnected("all", "logit", 1));
}

// DLRM-DCNv2 of MLPerf, smaller: low-rank crosses of the slots and of an MLP of the dense features,
// with the names of outputs that HugeCTR's interface gives, and layers without biases.
inline std::string DcnV2Text() {
  return WithSgd(
      OneSparse(),
      Embedding("emb", "data1", 5, "0") + "," +
          R"({"type": "MLP", "name": "mlp1", "bottom": "dense", "top": "mlp1",
              "mlp_param": {"num_outputs": [8, 5], "activation": "Relu"}},)" +
          R"({"type": "Interaction", "name": "pairs", "bottom": ["mlp1", "emb"],
              "top": ["pairs", "pairs_grad"]},)" +
          R"({"type": "MLP", "name": "low", "bottom": ["pairs", "pairs_grad"],
              "top": ["low1", "low2"],
              "mlp_param": {"num_outputs": [7, 3], "activations": ["None", "Relu"],
                            "use_bias": false}},)" +
          Simple("Reshape", "emb", "flat", R"("leading_dim": 20)") + "," +
          Joining("Concat", {"flat", "mlp1"}, "all") + "," +
          Simple("MultiCross", "all", "cross",
                 R"("mc_param": {"num_layers": 3, "projection_dim": 4, "bias_init": "Uniform"})") +
          "," +
          Simple("MultiCross", "dense", "once",
                 R"("mc_param": {"num_layers": 1, "projection_dim": 2})") +
          "," + Joining("Concat", {"cross", "once", "low1", "low2", "all"}, "both") + "," +
          R"({"type": "MLP", "name": "mlp2", "bottom": "both", "top": "logit",
              "mlp_param": {"num_outputs": [16, 6, 1], "activations": ["Relu", "Relu", "None"],
                            "biases": [true, false, true]}})");
}

// The logit of an event that needs two others, one of which is a part of the logit itself (ESMM).
inline std::string ProductLogitText() {
  return WithSgd(OneSparse(), Embedding("emb", "data1", 5, "0") + "," +
                                  Simple("Reshape", "emb", "flat") + "," +
                                  FullyConnected("flat", "click", 1) + "," +
                                  FullyConnected("dense", "after", 1) + "," +
                                  Joining("ProductLogit", {"click", "after"}, "buy") + "," +
                                  Joining("Add", {"buy", "click"}, "logit"));
}

// Returns `text` with `logits` outputs, `labels` labels, and `loss` instead of its loss.
inline std::string WithLoss(const std::string& text, int labels, int logits,
                            const std::string& loss) {
  const std::string binary = R"("type": "BinaryCrossEntropyLoss")";
  return absl::StrReplaceAll(
      text, {{R"("label_dim": 1)", R"("label_dim": )" + std::to_string(labels)},
             {R"(, "top": "logit", "fc_param": {"num_output": 1})",
              R"(, "top": "logit", "fc_param": {"num_output": )" + std::to_string(logits) + "}"},
             {binary, loss}});
}

// A model file under test, with overrides.
struct ModelCase {
  const char* name;
  std::string text;
  std::vector<std::string> overrides;
};

// The architectures above. Their gradients are compared with the reference model's, in floats and
// with 16-bit activations (graph/model_gradient_test.cc, mixed_precision_test.cc).
inline std::vector<ModelCase> Architectures() {
  return {{"Dnn", DnnText(), {}},
          {"DeepFm", DeepFmText(), {}},
          {"FmBesideConcat", FmBesideConcatText(), {}},
          {"FmLast", FmBesideConcatText(/*fm_last=*/true), {}},
          {"Tangled", TangledText(), {}},
          {"Dlrm", DlrmText(), {}},
          {"Dcn", DcnText(), {}},
          {"Attention", AttentionText(), {}},
          {"Din", DinText(), {}},
          {"Dice", DiceText(), {}},
          {"PRelu", PReluText(), {}},
          {"Bst", BstText(), {}},
          {"DcnV2", DcnV2Text(), {}},
          {"Gru", GruText(), {}},
          {"Hstu", HstuText(), {}},
          {"ProductLogit", ProductLogitText(), {}}};
}

// Architectures() and `more`.
inline std::vector<ModelCase> ArchitecturesAnd(const std::vector<ModelCase>& more) {
  std::vector<ModelCase> cases = Architectures();
  cases.insert(cases.end(), more.begin(), more.end());
  return cases;
}

}  // namespace cistern::model
