"""Writes training_values.json: MMoE with two labels, trained for 100 steps by another program, in double.

    python3 -m venv venv && venv/bin/pip install torch numpy
    venv/bin/python test/worker/model/make_training_values.py > test/worker/model/training_values.json

PyTorch holds the same first weights as the test of Cistern and sees the same batches; SGD moves dense weights and rows.
Labels of a generated task, some of which are not known. The layers are those of the template mmoe: a click and a purchase,
each with a gate over shared experts and a network of its own.
"""

import json

import numpy as np
import torch

SAMPLES, BATCHES, STEPS, ROWS, SLOTS, DENSE, WIDTH = 32, 10, 100, 20, 3, 4, 4
EXPERTS, EXPERT, TOWER, RATE = 4, 6, 5, 0.3
LABELS = ("click", "buy")


def layer(kind, bottom, top, **keys):
    return {"type": kind, "name": top, "bottom": bottom, "top": top, **keys}


def fc(bottom, top, width):
    return layer("InnerProduct", bottom, top, fc_param={"num_output": width})


def layers():
    """The model file. Weights are taken in the order of its layers."""
    yield {"type": "Data", "name": "data", "source": "none", "label": {"top": list(LABELS), "label_dim": [1, 1]},
           "dense": {"top": "dense", "dense_dim": DENSE},
           "sparse": [{"top": "data1", "type": "DistributedSlot", "slot_num": SLOTS}]}
    yield layer("DistributedSlotSparseEmbeddingHash", "data1", "emb",
                sparse_embedding_hparam={"embedding_vec_size": WIDTH, "combiner": 0})
    yield layer("Reshape", "emb", "flat", leading_dim=SLOTS * WIDTH)
    yield layer("Concat", ["flat", "dense"], "inputs")
    yield fc("inputs", "experts", EXPERTS * EXPERT)
    yield layer("ReLU", "experts", "experts_relu")
    yield layer("Reshape", "experts_relu", "rows", leading_dim=EXPERT, time_step=EXPERTS)
    for label in LABELS:
        yield fc("inputs", f"{label}_gate", EXPERTS)
        yield layer("Softmax", f"{label}_gate", f"{label}_shares")
        yield layer("Reshape", f"{label}_shares", f"{label}_row", leading_dim=EXPERTS, time_step=1)
        yield layer("MatrixMultiply", [f"{label}_row", "rows"], f"{label}_mixed")
        yield layer("Reshape", f"{label}_mixed", f"{label}_mixture", leading_dim=EXPERT)
        yield fc(f"{label}_mixture", f"{label}_fc", TOWER)
        yield layer("ReLU", f"{label}_fc", f"{label}_relu")
        yield fc(f"{label}_relu", f"{label}_logit", 1)
        yield layer("BinaryCrossEntropyLoss", [f"{label}_logit", label], f"{label}_loss", loss_weight=LOSS_WEIGHTS[label])


LOSS_WEIGHTS = {"click": 1.0, "buy": 0.5}


def float32(x):
    return np.asarray(x, "float32").astype("float64")


class Mmoe(torch.nn.Module):
    def __init__(self, draw):
        super().__init__()
        inputs = SLOTS * WIDTH + DENSE
        self.rows = torch.nn.Parameter(torch.tensor(float32(draw.uniform(-0.5, 0.5, (ROWS, WIDTH)))))
        self.experts = torch.nn.Linear(inputs, EXPERTS * EXPERT, dtype=torch.float64)
        self.gates = torch.nn.ModuleList(torch.nn.Linear(inputs, EXPERTS, dtype=torch.float64) for _ in LABELS)
        self.towers = torch.nn.ModuleList(torch.nn.Sequential(
            torch.nn.Linear(EXPERT, TOWER, dtype=torch.float64), torch.nn.ReLU(),
            torch.nn.Linear(TOWER, 1, dtype=torch.float64)) for _ in LABELS)
        with torch.no_grad():
            for one in self.linears():
                for weights in (one.weight, one.bias):
                    weights.copy_(torch.tensor(float32(draw.uniform(-0.5, 0.5, tuple(weights.shape)))))

    def linears(self):
        yield self.experts
        for gate, tower in zip(self.gates, self.towers):
            yield from (gate, tower[0], tower[2])

    def flat(self):
        """Weights as Cistern orders them: [in, out] and then the bias of each layer."""
        return np.concatenate([part.detach().numpy().ravel() for one in self.linears() for part in (one.weight.T, one.bias)])

    def forward(self, batch):
        pooled = torch.stack([self.rows[keys].sum(0) for keys in batch["keys"]]).reshape(-1, SLOTS * WIDTH)
        x = torch.cat([pooled, torch.tensor(batch["dense"], dtype=torch.float64).reshape(-1, DENSE)], 1)
        experts = torch.relu(self.experts(x)).reshape(-1, EXPERTS, EXPERT)
        return torch.cat([tower((torch.softmax(gate(x), 1)[:, :, None] * experts).sum(1))
                          for gate, tower in zip(self.gates, self.towers)], 1)


def make_batch(draw):
    """A click depends on a key and a number, a purchase on another key; a tenth of the purchases is not known."""
    keys = [[int(k) for k in draw.integers(0, ROWS, size=draw.integers(1, 3))] for _ in range(SAMPLES * SLOTS)]
    dense = float32(draw.uniform(-1, 1, (SAMPLES, DENSE)))
    first, second = (np.array([keys[i * SLOTS + s][0] for i in range(SAMPLES)]) for s in (0, 1))
    chance = np.stack([1 / (1 + np.exp(-2 * np.sin(first) - dense[:, 0])), 1 / (1 + np.exp(1 - 2 * np.cos(second)))], 1)
    label = (draw.random(chance.shape) < chance).astype(float)
    label[draw.random(SAMPLES) < 0.1, 1] = -1
    return {"label": label.ravel().tolist(), "keys": keys, "dense": dense.ravel().tolist()}


def loss_of(logits, batch):
    """The sum over labels of weight * mean loss, in which a label that is not known counts 0 of the batch."""
    label = torch.tensor(batch["label"], dtype=torch.float64).reshape(-1, 2)
    losses = torch.nn.functional.binary_cross_entropy_with_logits(logits, label.clamp(min=0), reduction="none")
    weights = torch.tensor([LOSS_WEIGHTS[name] for name in LABELS], dtype=torch.float64)
    return (torch.where(label < -0.5, 0.0, losses) * weights).sum(1).mean()


def main():
    draw = np.random.default_rng(5)
    model = Mmoe(draw)
    batches = [make_batch(draw) for _ in range(BATCHES)]
    held_out = make_batch(draw)
    first = {"weights": model.flat().tolist(), "table": model.rows.detach().numpy().ravel().tolist()}
    before = torch.sigmoid(model(held_out)).detach().numpy()
    optimizer = torch.optim.SGD(model.parameters(), lr=RATE)
    losses = []
    for step in range(STEPS):
        optimizer.zero_grad()
        loss = loss_of(model(batches[step % BATCHES]), batches[step % BATCHES])
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    after = torch.sigmoid(model(held_out)).detach().numpy()
    print(json.dumps({"layers": list(layers()), "learning_rate": RATE, "steps": STEPS, **first, "batches": batches,
                      "held_out": held_out, "losses": losses, "predictions_before": before.ravel().tolist(),
                      "predictions": after.ravel().tolist()}))


main()
