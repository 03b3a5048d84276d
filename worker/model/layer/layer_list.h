// The list of dense layer types, in the order of docs/configuration.md. A new one is a file in this
// folder, which defines DescribeNAME, and a line here.
#pragma once

#include <vector>

#include "worker/model/config/grammar.h"

#define CISTERN_DENSE_LAYERS(LAYER) \
  LAYER(Reshape)                    \
  LAYER(Concat)                     \
  LAYER(Slice)                      \
  LAYER(Select)                     \
  LAYER(Gather)                     \
  LAYER(FusedReshapeConcat)         \
  LAYER(FusedReshapeConcatGeneral)  \
  LAYER(InnerProduct)               \
  LAYER(FusedInnerProduct)          \
  LAYER(Mlp)                        \
  LAYER(BatchNorm)                  \
  LAYER(LayerNorm)                  \
  LAYER(Relu)                       \
  LAYER(Elu)                        \
  LAYER(Dice)                       \
  LAYER(Prelu)                      \
  LAYER(Sigmoid)                    \
  LAYER(Softmax)                    \
  LAYER(Dropout)                    \
  LAYER(Multiply)                   \
  LAYER(FmOrder2)                   \
  LAYER(ReduceSum)                  \
  LAYER(ReduceMean)                 \
  LAYER(Add)                        \
  LAYER(Sub)                        \
  LAYER(DotProduct)                 \
  LAYER(ElementwiseMultiply)        \
  LAYER(ProductLogit)               \
  LAYER(Scale)                      \
  LAYER(MatrixMultiply)             \
  LAYER(SequenceMask)               \
  LAYER(MultiHeadAttention)         \
  LAYER(Hstu)                       \
  LAYER(Gru)                        \
  LAYER(MultiCross)                 \
  LAYER(Interaction)                \
  LAYER(Cast)

namespace cistern::model {

// DescribeReshape(), DescribeConcat() ...: name, keys, reader and maker of the type.
#define CISTERN_LAYER(Name) LayerGrammar Describe##Name();
CISTERN_DENSE_LAYERS(CISTERN_LAYER)
#undef CISTERN_LAYER

std::vector<LayerGrammar> DenseLayers();

// Every layer type that a model file may have.
const std::vector<LayerGrammar>& LayerGrammars();

}  // namespace cistern::model
