"""Writes reference_values.json: small models computed by another program, in double.

    python3 -m venv venv && venv/bin/pip install numpy autograd
    venv/bin/python test/worker/model/make_reference_values.py > test/worker/model/reference_values.json

Each case has a model file, weights, a batch, and the results of NumPy: predictions, the loss of a
training step, and its derivatives, which autograd derives from the forward pass. The program shares
nothing with Cistern except the names of HugeCTR 2.3's layers and the order of their weights. Dropout is
left out, because its random draws are specific to Cistern.
"""

import json
import sys

import autograd
import autograd.numpy as np

SAMPLES, ROWS, SLOTS, DENSE = 6, 9, 3, 4


def relu(x):
    return np.where(x > 0, x, 0.0)


class Weights:
    """The flat dense parameters, handed out in the order of the layers."""

    def __init__(self, flat):
        self.flat, self.place = flat, 0

    def take(self, *shape):
        count = int(np.prod(shape))
        self.place += count
        return self.flat[self.place - count:self.place].reshape(shape)


def inner_product(x, one, weights):
    return linear(x, one["fc_param"]["num_output"], True, weights)


def linear(x, width, has_bias, weights):
    y = x @ weights.take(x.shape[-1], width)
    return y + weights.take(width) if has_bias else y


def mlp(x, one, weights):
    """The outputs of all layers, or of the last one if it alone has a name."""
    constants, outputs = one["mlp_param"], []
    widths = constants["num_outputs"]
    activations = constants.get("activations", [constants.get("activation", "Relu")] * len(widths))
    biases = constants.get("biases", [constants.get("use_bias", True)] * len(widths))
    for width, activation, bias in zip(widths, activations, biases):
        x = linear(x, width, bias, weights)
        x = relu(x) if activation == "Relu" else x
        outputs.append(x)
    return outputs if isinstance(one["top"], list) else outputs[-1:]


def batch_norm(x, one, weights):
    gamma, beta = weights.take(x.shape[1]), weights.take(x.shape[1])
    mean = np.mean(x, axis=0)
    variance = np.mean((x - mean) ** 2, axis=0)
    return (x - mean) / np.sqrt(variance + one["bn_param"]["eps"]) * gamma + beta


def multi_cross(x0, one, weights):
    x, rank = x0, one["mc_param"].get("projection_dim", 0)
    for _ in range(one["mc_param"]["num_layers"]):
        if rank:
            product = x @ weights.take(x0.shape[1], rank) @ weights.take(rank, x0.shape[1])
            x = x0 * (product + weights.take(x0.shape[1])) + x
            continue
        w = weights.take(x0.shape[1])
        x = x0 * (x @ w)[:, None] + x + weights.take(x0.shape[1])
    return x


def interaction(mlp, embedding):
    t = np.concatenate([mlp[:, None, :], embedding], axis=1)
    products = np.einsum("bie,bje->bij", t, t)
    lower, column = np.tril_indices(t.shape[1], -1)
    return np.concatenate([mlp, products[:, lower, column], np.zeros((len(mlp), 1))], axis=1)


def multiply(x, one, weights):
    w = weights.take(*one["weight_dims"])
    return (x[:, :, None] * w[None]).reshape(len(x), -1)


def fm_order2(x, one):
    v = x.reshape(len(x), -1, one["out_dim"])
    return (np.sum(v, axis=1) ** 2 - np.sum(v ** 2, axis=1)) / 2


def reshape(x, one):
    if "selected" in one:
        return x[:, np.array(one["selected"])].reshape(len(x), -1)
    if "time_step" in one:
        return x.reshape(-1, one["time_step"], one["leading_dim"])
    return x.reshape(-1, one["leading_dim"]) if "leading_dim" in one else x.reshape(len(x), -1)


def product(factors):
    y = factors[0]
    for factor in factors[1:]:
        y = y * factor
    return y


def dice(x, one):
    constants = one["prelu_dice_param"]
    mean = np.mean(x, axis=0)
    variance = np.mean((x - mean) ** 2, axis=0)
    p = 1 / (1 + np.exp(-(x - mean) / np.sqrt(variance + constants["eps"])))
    return p * x + (1 - p) * constants["alpha"] * x


def prelu(x, weights):
    return np.maximum(x, 0) + weights.take(x.shape[-1]) * np.minimum(x, 0)


def softmax(x, one):
    e = np.exp(one.get("factor", 1) * x)
    return e / np.sum(e, axis=-1, keepdims=True)


def layer_norm(x, one, weights):
    gamma, beta = weights.take(x.shape[-1]), weights.take(x.shape[-1])
    mean = np.mean(x, axis=-1, keepdims=True)
    variance = np.mean((x - mean) ** 2, axis=-1, keepdims=True)
    return (x - mean) / np.sqrt(variance + one["ln_param"]["eps"]) * gamma + beta


def sequence_mask(ins, one):
    within = [np.arange(one[f"max_sequence_len_{end}"])[None] < np.floor(length)
              for end, length in zip(("from", "to"), ins)]
    return (within[0][:, None, :, None] & within[1][:, None, None, :]).astype(float)


def attention(ins, one):
    """[b, length, heads * dim] each."""
    heads = one["num_attention_heads"]
    q, k, v = [np.transpose(x.reshape(x.shape[0], x.shape[1], heads, -1), (0, 2, 1, 3))
               for x in ins[:3]]
    scores = np.matmul(q, np.transpose(k, (0, 1, 3, 2))) / np.sqrt(q.shape[3])
    if len(ins) == 4:
        scores = scores - 10000 * (1 - ins[3])
    e = np.exp(scores - np.max(scores, axis=-1, keepdims=True))
    mixed = np.matmul(e / np.sum(e, axis=-1, keepdims=True), v)
    return np.transpose(mixed, (0, 2, 1, 3)).reshape(ins[0].shape)


def silu(x):
    return x / (1 + np.exp(-x))


def hstu(ins, one, weights):
    """U, V, Q and K side by side: [b, n, 4 h]; equations 1 to 3 of arXiv 2402.17152 without the projections."""
    b, n, width = ins[0].shape
    heads = one.get("num_attention_heads", 1)
    u, *by_head = [silu(ins[0])[..., i * width // 4:(i + 1) * width // 4] for i in range(4)]
    v, q, k = [np.transpose(x.reshape(b, n, heads, -1), (0, 2, 1, 3)) for x in by_head]
    apart = np.arange(n)[:, None] - np.arange(n)[None]
    bias = weights.take(heads, 2 * n - 1)[:, apart + n - 1]
    shares = silu(np.matmul(q, np.transpose(k, (0, 1, 3, 2))) + bias) / n
    if one.get("causal", True):
        shares = shares * (apart >= 0)
    if len(ins) == 2:
        shares = shares * ins[1]
    mixed = np.transpose(np.matmul(shares, v), (0, 2, 1, 3)).reshape(u.shape)
    return layer_norm(mixed, {"ln_param": {"eps": one["eps"]}}, weights) * u


def gru(x, one, weights):
    """x: [b, steps, in], or a row for each sequence."""
    sizes = one["gru_param"]
    width = sizes["num_output"]
    sequences = x if x.ndim == 3 else x.reshape(-1, sizes["SeqLength"], sizes["vector_size"])
    w = [weights.take(rows, 3 * width) for rows in (sequences.shape[2], width, 1)]
    h, outputs = np.zeros((len(sequences), width)), []
    for t in range(sequences.shape[1]):
        new, old = sequences[:, t] @ w[0] + w[2], h @ w[1]
        reset, update = [1 / (1 + np.exp(-(new + old)[:, part * width:(part + 1) * width]))
                         for part in (0, 1)]
        memory = np.tanh(new[:, 2 * width:] + reset * old[:, 2 * width:])
        h = (1 - update) * memory + update * h
        outputs.append(h)
    joined = np.stack(outputs, axis=1)
    return joined if x.ndim == 3 else joined.reshape(len(x), -1)


def gather(x, one):
    samples = x.reshape(SAMPLES, -1, x.shape[1])
    return samples[:, np.array(one["indices"])].reshape(-1, x.shape[1])


def product_logit(a, b):
    p = 1 / (1 + np.exp(-a)) / (1 + np.exp(-b))
    return np.log(p / (1 - p))


def scale(x, one):
    axis, factor = one["scale_param"]["axis"], one["scale_param"]["factor"]
    return np.repeat(x, factor, axis=1 - axis)


def compute(one, ins, weights):
    """The outputs of a layer."""
    kind, x = one["type"], ins[0]
    if kind == "FusedReshapeConcat":
        vectors = np.concatenate(ins, axis=2)
        return [vectors[:, :-1].reshape(-1, vectors.shape[2]), vectors[:, -1]]
    if kind == "MLP":
        return mlp(x, one, weights)
    if kind == "Slice":
        return [x[..., lo:hi] for lo, hi in one["ranges"]]
    return [{
        "InnerProduct": lambda: inner_product(x, one, weights),
        "FusedInnerProduct": lambda: relu(inner_product(x, one, weights)),
        "BatchNorm": lambda: batch_norm(x, one, weights),
        "MultiCross": lambda: multi_cross(x, one, weights),
        "Multiply": lambda: multiply(x, one, weights),
        "Interaction": lambda: interaction(*ins),
        "FmOrder2": lambda: fm_order2(x, one),
        "ReduceSum": lambda: np.sum(x, axis=one["axis"], keepdims=True),
        "Reshape": lambda: reshape(x, one),
        "Concat": lambda: np.concatenate(ins, axis=one.get("axis", 1)),
        "LayerNorm": lambda: layer_norm(x, one, weights),
        "SequenceMask": lambda: sequence_mask(ins, one),
        "MultiHeadAttention": lambda: attention(ins, one),
        "Gather": lambda: gather(x, one),
        "GRU": lambda: gru(x, one, weights),
        "HSTU": lambda: hstu(ins, one, weights),
        "Select": lambda: x[(slice(None),) * one["dim"] + (np.array(one["index"]),)],
        "Add": lambda: sum(ins[1:], ins[0]),
        "DotProduct": lambda: product(ins),
        "ElementwiseMultiply": lambda: product(ins),
        "FusedReshapeConcatGeneral": lambda: np.concatenate(ins, axis=2).reshape(
            -1, sum(one_in.shape[2] for one_in in ins)),
        "MatrixMultiply": lambda: np.matmul(*ins),
        "Sub": lambda: ins[0] - ins[1],
        "ProductLogit": lambda: product_logit(*ins),
        "Sigmoid": lambda: 1 / (1 + np.exp(-x)),
        "PReLU_Dice": lambda: dice(x, one),
        "PReLU": lambda: prelu(x, weights),
        "Softmax": lambda: softmax(x, one),
        "ReduceMean": lambda: np.mean(x, axis=one["axis"], keepdims=True),
        "Scale": lambda: scale(x, one),
        "ReLU": lambda: relu(x),
        "ELU": lambda: np.where(x < 0, one["elu_param"]["alpha"] * (np.exp(np.minimum(x, 0)) - 1),
                                x),
        "Cast": lambda: x,
    }[kind]()]


def pool(table, keys, mean):
    """[samples, slots, width] from the keys of each sample and slot."""
    return np.stack([np.stack([
        np.sum(table[np.array(slot, dtype=int)], axis=0) / (max(1, len(slot)) if mean else 1)
        for slot in sample]) for sample in keys])


def bce(logit, label):
    return -(label * np.log(1 / (1 + np.exp(-logit))) +
             (1 - label) * np.log(1 / (1 + np.exp(logit))))


def loss_of(one, logit, label):
    """Returns the loss without regularizer, and the predictions."""
    if one["type"] == "CrossEntropyLoss":
        p = np.exp(logit) / np.sum(np.exp(logit), axis=1, keepdims=True)
        chosen = np.where(label[:, 0] < 0.5, p[:, 0], p[:, 1])
        return -np.mean(np.log(chosen)), p[:, 1:]
    p = 1 / (1 + np.exp(-logit))
    if one["type"] == "MultiCrossEntropyLoss":
        terms = bce(logit, label) * np.array(one["target_weight"], dtype=float)
        return np.mean(np.where(label < -0.5, 0.0, terms)), p
    return np.mean(bce(logit, label)), p


def forward(case, flat, tables, batch):
    """Returns the loss with regularizer, the predictions, and the number of dense parameters used."""
    tensors = {"label": np.array(batch["label"]), "dense": np.array(batch["dense"])}
    weights, loss, predictions = Weights(flat), None, None
    embeddings = [one for one in case["layers"] if "sparse_embedding_hparam" in one]
    for table, one in zip(tables, embeddings):
        tensors[one["top"]] = pool(table, batch["keys"],
                                   one["sparse_embedding_hparam"]["combiner"] == 1)
    for one in case["layers"]:
        if one["type"] == "Data" or one in embeddings:
            continue
        if one["type"].endswith("Loss"):
            loss, predictions = loss_of(one, tensors[one["bottom"][0]], tensors["label"])
            share = one.get("lambda", 0) / SAMPLES
            if one.get("regularizer") == "L1":
                loss = loss + share * np.sum(np.abs(flat))
            if one.get("regularizer") == "L2":
                loss = loss + share / 2 * np.sum(flat ** 2)
            continue
        bottoms = one["bottom"] if isinstance(one["bottom"], list) else [one["bottom"]]
        tops = one["top"] if isinstance(one["top"], list) else [one["top"]]
        for top, value in zip(tops, compute(one, [tensors[b] for b in bottoms], weights)):
            tensors[top] = value
    return loss, predictions, weights.place


def layer(kind, bottom, top, **keys):
    return {"type": kind, "name": top if isinstance(top, str) else kind, "bottom": bottom,
            "top": top, **keys}


def fc(bottom, top, width, kind="InnerProduct"):
    return layer(kind, bottom, top, fc_param={"num_output": width})


def embedding(top, width, combiner=0):
    return layer("DistributedSlotSparseEmbeddingHash", "data1", top,
                 sparse_embedding_hparam={"embedding_vec_size": width, "combiner": combiner})


def case(name, *layers, labels=1, loss="BinaryCrossEntropyLoss", lengths=False, **keys):
    """lengths: the first dense feature of a sample is the length of a sequence, 0 to SLOTS."""
    data = {"type": "Data", "source": "none", "label": {"top": "label", "label_dim": labels},
            "dense": {"top": "dense", "dense_dim": DENSE},
            "sparse": [{"top": "data1", "type": "DistributedSlot", "slot_num": SLOTS}]}
    end = layer(loss, ["logit", "label"], "loss", **keys)
    return {"name": name, "layers": [data, *layers, end], "lengths": lengths}


def cases():
    flat = [embedding("emb", 2), layer("Reshape", "emb", "flat"),
            layer("Concat", ["flat", "dense"], "all")]
    small = [*flat, fc("all", "logit", 1)]
    yield case("inner_product", *small)
    yield case("l1", *small, regularizer="L1", **{"lambda": 0.7})
    yield case("l2", *small, regularizer="L2", **{"lambda": 0.7})
    yield case("mean", embedding("emb", 2, 1), layer("Reshape", "emb", "flat"),
               fc("flat", "logit", 1))
    yield case("relu", *flat, fc("all", "fc1", 5), layer("ReLU", "fc1", "relu1"),
               fc("relu1", "logit", 1))
    yield case("fused", *flat, fc("all", "fc1", 5, "FusedInnerProduct"),
               layer("Cast", "fc1", "cast"), fc("cast", "logit", 1))
    yield case("elu", *flat, fc("all", "fc1", 5),
               layer("ELU", "fc1", "elu1", elu_param={"alpha": 0.6}), fc("elu1", "logit", 1))
    yield case("batch_norm", *flat,
               layer("BatchNorm", "all", "bn", bn_param={"factor": 0.1, "eps": 0.01}),
               fc("bn", "logit", 1))
    yield case("multi_cross", *flat, layer("MultiCross", "all", "x", mc_param={"num_layers": 3}),
               fc("x", "logit", 1))
    yield case("interaction", embedding("emb", 3), fc("dense", "mlp", 3),
               layer("Interaction", ["mlp", "emb"], "pairs"), fc("pairs", "logit", 1))
    yield case("fm", embedding("emb", 3), layer("Reshape", "emb", "vectors", leading_dim=3),
               layer("Slice", "vectors", ["factors", "wide"], ranges=[[0, 2], [2, 3]]),
               layer("Reshape", "factors", "flat", leading_dim=2 * SLOTS),
               layer("Reshape", "wide", "flat_wide", leading_dim=SLOTS),
               layer("Multiply", "dense", "dense_factors", weight_dims=[DENSE, 2]),
               layer("Concat", ["flat", "dense_factors"], "all"),
               layer("FmOrder2", "all", "fm", out_dim=2),
               layer("ReduceSum", "fm", "fm_sum", axis=1),
               layer("ReduceSum", "flat_wide", "wide_sum", axis=1),
               layer("Add", ["fm_sum", "wide_sum"], "logit"))
    yield case("dot_product", *flat, fc("all", "a", 3), fc("all", "b", 3),
               layer("DotProduct", ["a", "b", "a"], "product"), fc("product", "logit", 1))
    yield case("selected", embedding("emb", 2),
               layer("Reshape", "emb", "picked", selected=[2, 0, 2]), fc("picked", "logit", 1))
    yield case("reduce_sum_of_slots", embedding("emb", 2),
               layer("ReduceSum", "emb", "slots", axis=1), layer("Reshape", "slots", "flat"),
               fc("flat", "logit", 1))
    yield case("overlapping_slices", *flat,
               layer("Slice", "all", ["a", "b", "c"], ranges=[[0, 5], [3, 8], [0, 10]]),
               layer("Add", ["a", "b"], "ab"), fc("ab", "x", 1), fc("c", "y", 1),
               layer("Add", ["x", "y"], "logit"))
    yield case("several_labels", *flat, fc("all", "logit", 3), labels=3)
    yield case("two_classes", *flat, fc("all", "logit", 2), loss="CrossEntropyLoss")
    yield case("masked_labels", *flat, fc("all", "logit", 3), labels=3,
               loss="MultiCrossEntropyLoss", target_weight=[1, 0.25, 3])
    # HugeCTR 3.x. New cases come last, so that the random numbers of the others stay.
    yield case("sigmoid_and_sub", *flat, fc("all", "a", 3), layer("Sigmoid", "a", "s"),
               fc("all", "c", 3), layer("Sub", ["s", "c"], "d"),
               layer("ElementwiseMultiply", ["d", "s"], "product"), fc("product", "logit", 1))
    yield case("softmax_of_slots", embedding("emb", 2), layer("Softmax", "emb", "p", factor=0.7),
               layer("ReduceMean", "emb", "m", axis=1), layer("Reshape", "m", "means"),
               layer("ReduceMean", "emb", "l", axis=2), layer("Reshape", "l", "levels"),
               layer("Reshape", "p", "flat"), layer("Softmax", "dense", "q"),
               layer("Concat", ["flat", "means", "levels", "q"], "all"), fc("all", "logit", 1))
    yield case("scale", embedding("emb", DENSE), layer("Reshape", "emb", "rows", leading_dim=DENSE),
               layer("Scale", "dense", "tall", scale_param={"axis": 1, "factor": SLOTS}),
               layer("Scale", "dense", "wide", scale_param={"axis": 0, "factor": 2}),
               fc("wide", "low", 2),
               layer("Scale", "low", "lows", scale_param={"axis": 0, "factor": 3}),
               layer("Scale", "low", "highs", scale_param={"axis": 1, "factor": 3}),
               layer("Reshape", "highs", "highs6", leading_dim=6),
               layer("Sub", ["lows", "highs6"], "apart"),
               layer("ElementwiseMultiply", ["rows", "tall"], "pairs"),
               layer("Reshape", "pairs", "flat", leading_dim=SLOTS * DENSE),
               layer("Concat", ["flat", "apart", "low"], "all"), fc("all", "logit", 1))
    yield case("fused_reshape_concat", embedding("good", 2), embedding("kind", 3, 1),
               layer("FusedReshapeConcat", ["good", "kind"], ["history", "item"]),
               layer("FusedReshapeConcatGeneral", ["kind", "good"], "rows"),
               layer("Reshape", "history", "flat", leading_dim=5 * (SLOTS - 1)),
               layer("Reshape", "rows", "slots", leading_dim=5 * SLOTS),
               layer("Concat", ["flat", "item", "slots"], "all"), fc("all", "logit", 1))
    yield case("matrix_multiply", embedding("emb", 2), fc("dense", "a", 4 * SLOTS),
               layer("Reshape", "a", "queries", leading_dim=SLOTS, time_step=4),
               layer("MatrixMultiply", ["queries", "emb"], "values"),
               layer("Reshape", "values", "flat", leading_dim=8), fc("flat", "logit", 1))
    yield case("prelu_dice", *flat, fc("all", "fc1", 5),
               layer("PReLU_Dice", "fc1", "d", prelu_dice_param={"alpha": 0.2, "eps": 0.001}),
               fc("d", "logit", 1))
    yield case("layer_norm", *flat, fc("all", "fc1", 5),
               layer("LayerNorm", "fc1", "flat_norm", ln_param={"eps": 0.001}),
               layer("LayerNorm", "emb", "norm", ln_param={"eps": 0.01}),
               layer("Reshape", "norm", "rows", leading_dim=2 * SLOTS),
               layer("Concat", ["flat_norm", "rows"], "both"), fc("both", "logit", 1))
    yield case("select_and_gather", embedding("emb", 3),
               layer("Select", "emb", "slots", dim=1, index=[2, 0, 2]),
               layer("Select", "slots", "columns", dim=2, index=[1, 2]),
               layer("Slice", "slots", ["left", "right"], ranges=[[0, 2], [1, 3]]),
               layer("Concat", ["left", "columns"], "wide", axis=2),
               layer("Concat", ["right", "columns"], "long", axis=1),
               layer("Reshape", "emb", "vectors", leading_dim=3),
               layer("Gather", "vectors", "some", indices=[1, 1, 0, 2]),
               layer("Select", "dense", "few", dim=1, index=[3, 0]),
               layer("Reshape", "some", "a", leading_dim=12),
               layer("Reshape", "wide", "b", leading_dim=12),
               layer("Reshape", "long", "c", leading_dim=12),
               layer("Concat", ["a", "b", "c", "few"], "all"), fc("all", "logit", 1))
    # The lengths are 0 to SLOTS: there are samples of which all is masked.
    yield case("attention", embedding("emb", 3), embedding("other", 2),
               layer("Slice", "dense", ["length", "rest"], ranges=[[0, 1], [1, DENSE]]),
               layer("SequenceMask", ["length", "length"], "mask",
                     max_sequence_len_from=SLOTS, max_sequence_len_to=SLOTS),
               layer("Concat", ["emb", "other"], "history", axis=2),
               fc("history", "q", 4), fc("history", "k", 4), fc("history", "v", 4),
               layer("MultiHeadAttention", ["q", "k", "v", "mask"], "mixed",
                     num_attention_heads=2),
               layer("Select", "v", "two", dim=1, index=[2, 0]),
               layer("MultiHeadAttention", ["two", "k", "k"], "free", num_attention_heads=4),
               layer("MultiHeadAttention", ["mixed", "mixed", "mixed", "mask"], "alone",
                     num_attention_heads=1),
               layer("Reshape", "alone", "a", leading_dim=4 * SLOTS),
               layer("Reshape", "free", "f", leading_dim=8),
               layer("Concat", ["a", "f", "rest"], "all"), fc("all", "logit", 1), lengths=True)
    yield case("low_rank_crosses", *flat,
               layer("MultiCross", "all", "x", mc_param={"num_layers": 3, "projection_dim": 2}),
               layer("MultiCross", "dense", "d", mc_param={"num_layers": 1, "projection_dim": 5}),
               layer("Concat", ["x", "d"], "both"), fc("both", "logit", 1))
    yield case("mlp", *flat,
               layer("MLP", "all", "m", mlp_param={"num_outputs": [6, 4]}),
               layer("MLP", "all", ["n1", "n2"],
                     mlp_param={"num_outputs": [5, 3], "activations": ["None", "Relu"],
                                "use_bias": False}),
               layer("Concat", ["m", "n1", "n2"], "both"),
               layer("MLP", "both", "logit",
                     mlp_param={"num_outputs": [4, 1], "activations": ["Relu", "None"],
                                "biases": [False, True]}))
    yield case("gru", embedding("emb", 3),
               layer("GRU", "emb", "a", gru_param={"num_output": 4}),
               layer("GRU", "dense", "b",
                     gru_param={"num_output": 2, "SeqLength": DENSE, "vector_size": 1}),
               layer("GRU", "a", "c", gru_param={"num_output": 2, "SeqLength": SLOTS,
                                                 "vector_size": 4}),
               layer("Reshape", "c", "row", leading_dim=2 * SLOTS),
               layer("Concat", ["row", "b"], "all"), fc("all", "logit", 1))
    yield case("product_logit", *flat, fc("all", "click", 1), fc("all", "after", 1),
               layer("ProductLogit", ["click", "after"], "buy"),
               layer("Concat", ["click", "buy"], "logit"), labels=2, loss="MultiCrossEntropyLoss",
               target_weight=[1, 0.5])
    yield case("hstu", embedding("emb", 3),
               layer("Slice", "dense", ["length", "rest"], ranges=[[0, 1], [1, DENSE]]),
               layer("SequenceMask", ["length", "length"], "mask",
                     max_sequence_len_from=SLOTS, max_sequence_len_to=SLOTS),
               fc("emb", "uvqk", 24),
               layer("HSTU", ["uvqk", "mask"], "masked", num_attention_heads=3, eps=0.01),
               fc("masked", "again", 8),
               layer("HSTU", "again", "both_ways", causal=False, eps=0.01),
               layer("Reshape", "masked", "a", leading_dim=6 * SLOTS),
               layer("Reshape", "both_ways", "b", leading_dim=2 * SLOTS),
               layer("Concat", ["a", "b", "rest"], "all"), fc("all", "logit", 1), lengths=True)
    yield case("prelu", embedding("emb", 2), layer("PReLU", "emb", "bent"), layer("Reshape", "bent", "flat"),
               fc("flat", "fc1", 5), layer("PReLU", "fc1", "p", slope=0.5), fc("p", "logit", 1))


def make_batch(draw, labels, masked, lengths):
    label = draw.integers(0, 2, size=(SAMPLES, labels)).astype(float)
    if masked:
        label[draw.random(label.shape) < 0.3] = -1
    keys = [[[int(k) for k in draw.integers(0, ROWS, size=draw.integers(0, 4))]
             for _ in range(SLOTS)] for _ in range(SAMPLES)]
    dense = float32(draw.uniform(-1, 1, size=(SAMPLES, DENSE)))
    if lengths:
        dense[:, 0] = np.arange(SAMPLES) % (SLOTS + 1)
    return {"label": label.tolist(), "keys": keys, "dense": dense.tolist()}


def float32(x):
    """Rounds to doubles that a float holds exactly, so that both programs start from the same numbers."""
    return x.astype("float32").astype("float64")


def rounded(x):
    """Rounds to 9 digits: more than the comparison needs, fewer than a double has."""
    return [float(f"{v:.9g}") for v in np.ravel(x)]


def solve(one, draw):
    loss_layer = one["layers"][-1]
    labels = one["layers"][0]["label"]["label_dim"]
    batch = make_batch(draw, labels, loss_layer["type"] == "MultiCrossEntropyLoss", one["lengths"])
    widths = [each["sparse_embedding_hparam"]["embedding_vec_size"] for each in one["layers"]
              if "sparse_embedding_hparam" in each]
    tables = [float32(draw.uniform(-1, 1, size=(ROWS, width))) for width in widths]
    count = forward(one, np.zeros(1000), tables, batch)[2]
    flat = float32(draw.uniform(-1, 1, size=count))
    loss, predictions, _ = forward(one, flat, tables, batch)
    dense_grad, table_grads = autograd.grad(
        lambda both: forward(one, both[0], both[1], batch)[0])((flat, tables))
    batch["keys"] = [slot for sample in batch["keys"] for slot in sample]
    batch["label"], batch["dense"] = rounded(batch["label"]), rounded(batch["dense"])
    return {"name": one["name"], "layers": one["layers"], "batch": batch,
            "weights": rounded(flat), "tables": [rounded(table) for table in tables],
            "loss": rounded(loss)[0], "predictions": rounded(predictions),
            "weight_gradients": rounded(dense_grad),
            "table_gradients": [rounded(grad) for grad in table_grads]}


def main():
    # Each case draws its own numbers, so that a new one changes no other.
    lines = [json.dumps(solve(one, np.random.default_rng(list(one["name"].encode())))) for one in cases()]
    sys.stdout.write("[\n" + ",\n".join(lines) + "\n]\n")


if __name__ == "__main__":
    main()
