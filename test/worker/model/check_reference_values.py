"""Computes the models of reference_values.json again with PyTorch, in double.

    python3 test/worker/model/check_reference_values.py

Needs torch. The values come from NumPy and autograd (make_reference_values.py), and a test compares Cistern's with them. Here
PyTorch's own layers and losses compute the same, wherever it has them: its batch and layer norm, attention's softmax, GRU, ELU,
SiLU, cross entropies, embedding bags. Predictions and losses must agree within 1e-6, gradients within 1e-5, each relative to
the largest number of its array or to 1.
"""

import json
import pathlib
import sys

import torch
import torch.nn.functional as F

torch.set_default_dtype(torch.float64)
SAMPLES, SLOTS = 6, 3
FORWARD, GRADIENT = 1e-6, 1e-5


class Weights:
    """The flat dense parameters, handed out in the order of the layers."""

    def __init__(self, flat):
        self.flat, self.place = flat, 0

    def take(self, *shape):
        count = 1
        for size in shape:
            count *= size
        self.place += count
        return self.flat[self.place - count:self.place].reshape(shape)


def linear(x, width, bias, weights):
    matrix = weights.take(x.shape[-1], width)
    return F.linear(x, matrix.T, weights.take(width) if bias else None)


def mlp(x, one, weights):
    constants, outputs = one["mlp_param"], []
    widths = constants["num_outputs"]
    activations = constants.get("activations", [constants.get("activation", "Relu")] * len(widths))
    biases = constants.get("biases", [constants.get("use_bias", True)] * len(widths))
    for width, activation, bias in zip(widths, activations, biases):
        x = linear(x, width, bias, weights)
        x = F.relu(x) if activation == "Relu" else x
        outputs.append(x)
    return outputs if isinstance(one["top"], list) else outputs[-1:]


def multi_cross(x0, one, weights):
    x, rank = x0, one["mc_param"].get("projection_dim", 0)
    for _ in range(one["mc_param"]["num_layers"]):
        if rank:
            down, up = weights.take(x0.shape[1], rank), weights.take(rank, x0.shape[1])
            x = torch.addcmul(x, x0, F.linear(F.linear(x, down.T), up.T, weights.take(x0.shape[1])))
        else:
            w = weights.take(x0.shape[1])
            x = x0 * torch.mv(x, w)[:, None] + x + weights.take(x0.shape[1])
    return x


def interaction(bottom, vectors):
    every = torch.cat([bottom[:, None], vectors], dim=1)
    rows, columns = torch.tril_indices(every.shape[1], every.shape[1], offset=-1)
    return torch.cat([bottom, torch.bmm(every, every.transpose(1, 2))[:, rows, columns], bottom.new_zeros(len(bottom), 1)], dim=1)


def by_head(x, heads):
    return x.reshape(x.shape[0], x.shape[1], heads, -1).transpose(1, 2)


def attention(ins, one):
    q, k, v = (by_head(x, one["num_attention_heads"]) for x in ins[:3])
    scores = q @ k.transpose(2, 3) / q.shape[3] ** 0.5
    if len(ins) == 4:
        scores = scores - 10000 * (1 - ins[3])
    return (F.softmax(scores, dim=-1) @ v).transpose(1, 2).reshape(ins[0].shape)


def hstu(ins, one, weights):
    n, heads = ins[0].shape[1], one.get("num_attention_heads", 1)
    u, v, q, k = torch.chunk(F.silu(ins[0]), 4, dim=2)
    apart = torch.arange(n)[:, None] - torch.arange(n)[None]
    bias = weights.take(heads, 2 * n - 1)[:, apart + n - 1]
    shares = F.silu(by_head(q, heads) @ by_head(k, heads).transpose(2, 3) + bias) / n
    shares = torch.tril(shares) if one.get("causal", True) else shares
    shares = shares * ins[1] if len(ins) == 2 else shares
    mixed = (shares @ by_head(v, heads)).transpose(1, 2).reshape(u.shape)
    gamma, beta = weights.take(u.shape[2]), weights.take(u.shape[2])
    return F.layer_norm(mixed, u.shape[2:], gamma, beta, one["eps"]) * u


def gru(x, one, weights):
    """By torch.nn.GRUCell. The three parts have one bias each here, that of the input."""
    sizes = one["gru_param"]
    width = sizes["num_output"]
    steps = x if x.ndim == 3 else x.reshape(-1, sizes["SeqLength"], sizes["vector_size"])
    w_in, w_state, bias = (weights.take(rows, 3 * width) for rows in (steps.shape[2], width, 1))
    cell = torch.nn.GRUCell(steps.shape[2], width)
    parts = {"weight_ih": w_in.T, "weight_hh": w_state.T, "bias_ih": bias[0], "bias_hh": torch.zeros(3 * width)}
    h, outputs = torch.zeros(len(steps), width), []
    for step in steps.unbind(1):
        h = torch.nn.utils.stateless.functional_call(cell, parts, (step, h))
        outputs.append(h)
    joined = torch.stack(outputs, dim=1)
    return joined if x.ndim == 3 else joined.reshape(len(x), -1)


def dice(x, one):
    constants = one["prelu_dice_param"]
    p = torch.sigmoid(F.batch_norm(x, None, None, training=True, eps=constants["eps"]))
    return p * x + (1 - p) * constants["alpha"] * x


def sequence_mask(ins, one):
    within = [torch.arange(one[f"max_sequence_len_{end}"])[None] < torch.floor(length) for end, length in zip(("from", "to"), ins)]
    return (within[0][:, None, :, None] & within[1][:, None, None, :]).to(torch.float64)


def reshape(x, one):
    if "selected" in one:
        return x[:, one["selected"]].reshape(len(x), -1)
    if "time_step" in one:
        return x.reshape(-1, one["time_step"], one["leading_dim"])
    return x.reshape(-1, one["leading_dim"]) if "leading_dim" in one else x.reshape(len(x), -1)


def fm_order2(x, one):
    v = x.reshape(len(x), -1, one["out_dim"])
    return (v.sum(1) ** 2 - (v ** 2).sum(1)) / 2


def normalized(x, one, weights):
    key = "bn_param" if one["type"] == "BatchNorm" else "ln_param"
    gamma, beta = weights.take(x.shape[-1]), weights.take(x.shape[-1])
    if key == "bn_param":
        return F.batch_norm(x, None, None, gamma, beta, training=True, eps=one[key]["eps"])
    return F.layer_norm(x, x.shape[-1:], gamma, beta, one[key]["eps"])


def product(factors):
    return torch.stack(factors).prod(0)


def compute(one, ins, weights):
    kind, x = one["type"], ins[0]
    if kind == "MLP":
        return mlp(x, one, weights)
    if kind == "Slice":
        return [x[..., low:high] for low, high in one["ranges"]]
    if kind == "FusedReshapeConcat":
        vectors = torch.cat(ins, dim=2)
        return [vectors[:, :-1].reshape(-1, vectors.shape[2]), vectors[:, -1]]
    outputs = {
        "InnerProduct": lambda: linear(x, one["fc_param"]["num_output"], True, weights),
        "FusedInnerProduct": lambda: F.relu(linear(x, one["fc_param"]["num_output"], True, weights)),
        "BatchNorm": lambda: normalized(x, one, weights), "LayerNorm": lambda: normalized(x, one, weights),
        "MultiCross": lambda: multi_cross(x, one, weights), "Interaction": lambda: interaction(*ins),
        "Multiply": lambda: torch.einsum("bi,ij->bij", x, weights.take(*one["weight_dims"])).reshape(len(x), -1),
        "FmOrder2": lambda: fm_order2(x, one), "Reshape": lambda: reshape(x, one),
        "ReduceSum": lambda: x.sum(one["axis"], keepdim=True), "ReduceMean": lambda: x.mean(one["axis"], keepdim=True),
        "Concat": lambda: torch.cat(ins, dim=one.get("axis", 1)), "SequenceMask": lambda: sequence_mask(ins, one),
        "FusedReshapeConcatGeneral": lambda: torch.cat(ins, dim=2).flatten(0, 1),
        "MultiHeadAttention": lambda: attention(ins, one), "HSTU": lambda: hstu(ins, one, weights),
        "GRU": lambda: gru(x, one, weights), "PReLU_Dice": lambda: dice(x, one),
        "Gather": lambda: x.reshape(SAMPLES, -1, x.shape[1])[:, one["indices"]].reshape(-1, x.shape[1]),
        "Select": lambda: torch.index_select(x, one["dim"], torch.tensor(one["index"])),
        "Add": lambda: torch.stack(ins).sum(0), "Sub": lambda: torch.sub(*ins),
        "DotProduct": lambda: product(ins), "ElementwiseMultiply": lambda: product(ins),
        "MatrixMultiply": lambda: torch.matmul(*ins), "Sigmoid": lambda: torch.sigmoid(x),
        "ProductLogit": lambda: torch.logit(torch.sigmoid(ins[0]) * torch.sigmoid(ins[1])),
        "Softmax": lambda: F.softmax(one.get("factor", 1) * x, dim=-1),
        "Scale": lambda: torch.repeat_interleave(x, one["scale_param"]["factor"], dim=1 - one["scale_param"]["axis"]),
        "ReLU": lambda: F.relu(x), "Cast": lambda: x,
        "PReLU": lambda: F.prelu(x.movedim(-1, 1), weights.take(x.shape[-1])).movedim(1, -1),
        "ELU": lambda: F.elu(x, one["elu_param"]["alpha"]),
    }
    return [outputs[kind]()]


def loss_of(one, logit, label):
    if one["type"] == "CrossEntropyLoss":
        return F.cross_entropy(logit, (label[:, 0] >= 0.5).long()), F.softmax(logit, dim=1)[:, 1:]
    predictions = torch.sigmoid(logit)
    if one["type"] == "MultiCrossEntropyLoss":
        known = label >= -0.5
        terms = F.binary_cross_entropy_with_logits(logit, torch.where(known, label, torch.zeros_like(label)), reduction="none")
        return torch.where(known, terms * torch.tensor(one["target_weight"], dtype=torch.float64), 0.0).mean(), predictions
    return F.binary_cross_entropy_with_logits(logit, label), predictions


def pooled(table, keys, mean):
    """[samples, slots, width] by torch's embedding bag, which reads zeros where a slot has no key."""
    flat = torch.tensor([key for slot in keys for key in slot], dtype=torch.long)
    offsets = torch.tensor([0] + [len(slot) for slot in keys]).cumsum(0)[:-1]
    bags = F.embedding_bag(flat, table, offsets, mode="mean" if mean else "sum")
    return bags.reshape(-1, SLOTS, table.shape[1])


def solve(case):
    batch = case["batch"]
    layers = case["layers"]
    label_dim = layers[0]["label"]["label_dim"]
    label = torch.tensor(batch["label"]).reshape(SAMPLES, label_dim)
    flat = torch.tensor(case["weights"], requires_grad=True)
    embeddings = [one for one in layers if "sparse_embedding_hparam" in one]
    tables = [torch.tensor(numbers).reshape(-1, one["sparse_embedding_hparam"]["embedding_vec_size"]).requires_grad_()
              for numbers, one in zip(case["tables"], embeddings)]
    tensors = {"dense": torch.tensor(batch["dense"]).reshape(SAMPLES, -1)}
    for table, one in zip(tables, embeddings):
        tensors[one["top"]] = pooled(table, batch["keys"], one["sparse_embedding_hparam"]["combiner"] == 1)
    weights = Weights(flat)
    for one in layers:
        if one["type"] == "Data" or one in embeddings:
            continue
        if one["type"].endswith("Loss"):
            loss, predictions = loss_of(one, tensors[one["bottom"][0]], label)
            share = one.get("lambda", 0) / SAMPLES
            if one.get("regularizer") == "L1":
                loss = loss + share * flat.abs().sum()
            if one.get("regularizer") == "L2":
                loss = loss + share / 2 * (flat ** 2).sum()
            continue
        bottoms = one["bottom"] if isinstance(one["bottom"], list) else [one["bottom"]]
        tops = one["top"] if isinstance(one["top"], list) else [one["top"]]
        tensors.update(zip(tops, compute(one, [tensors[name] for name in bottoms], weights)))
    loss.backward()
    return loss, predictions, flat.grad, [table.grad for table in tables]


def differs(found, expected):
    expected = torch.tensor(expected).flatten()
    if expected.numel() == 0:
        return 0.0
    size = max(1.0, expected.abs().max().item())
    return (found.detach().flatten() - expected).abs().max().item() / size


def main():
    failed = 0
    for case in json.loads((pathlib.Path(__file__).parent / "reference_values.json").read_text(encoding="utf-8")):
        loss, predictions, dense, tables = solve(case)
        forward = max(differs(loss, [case["loss"]]), differs(predictions, case["predictions"]))
        gradient = max([differs(dense, case["weight_gradients"])] + [differs(*pair) for pair in zip(tables, case["table_gradients"])])
        is_good = forward <= FORWARD and gradient <= GRADIENT
        failed += not is_good
        print(f"{case['name']:24} forward {forward:.1e} gradient {gradient:.1e}{'' if is_good else ' DIFFERS'}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
