"""Model files like those of HugeCTR users, and data in the shape that each declares.

Each is a new model file with the layers, keys and sizes of one of HugeCTR's samples or unit tests. Like
users' own files, they contain oddities (see `oddities` in hugectr_configs_test.py).
"""

import random
import struct

from programs import Samples, wrapped

CRITEO_SLOT_SIZES = [1459, 583, 63733, 19774, 305, 24, 12513, 633, 3, 92719, 5681, 56662, 3193, 27,
                     14986, 42093, 10, 5652, 2173, 4, 50585, 18, 15, 28206, 105, 14159]


def layer(kind, top, bottom, **keys):
    return {"name": top if isinstance(top, str) else kind.lower(), "type": kind, "bottom": bottom,
            "top": top, **keys}


def fc(top, bottom, width, kind="InnerProduct"):
    return layer(kind, top, bottom, fc_param={"num_output": width})


def mlp(bottom, widths, first=1, dropout=False):
    """[InnerProduct, ReLU, Dropout] for each width. Returns the layers and the name of the last top."""
    layers = []
    for number, width in enumerate(widths, first):
        layers += [fc(f"fc{number}", bottom, width), layer("ReLU", f"relu{number}", f"fc{number}")]
        bottom = f"relu{number}"
        if dropout:
            layers.append(layer("Dropout", f"dropout{number}", bottom, rate=0.5))
            bottom = f"dropout{number}"
    return layers, bottom


def fused_mlp(bottom, widths, first=1):
    layers = []
    for number, width in enumerate(widths, first):
        layers.append(fc(f"fc{number}", bottom, width, "FusedInnerProduct"))
        bottom = f"fc{number}"
    return layers, bottom


def sparse(top, slots, most, kind="DistributedSlot", **keys):
    return {"top": top, "type": kind, "max_feature_num_per_sample": most, "slot_num": slots, **keys}


def data(dense, inputs, check="Sum", **keys):
    return {"name": "data", "type": "Data", "source": "./file_list.txt",
            "eval_source": "./file_list_test.txt", "check": check,
            "label": {"top": "label", "label_dim": 1},
            "dense": {"top": "dense", "dense_dim": dense}, "sparse": inputs, **keys}


def embedding(top, bottom, width, combiner=0, kind="DistributedSlotSparseEmbeddingHash", **keys):
    sizes = {"max_vocabulary_size_per_gpu": 1737709} if "Hash" in kind else {
        "slot_size_array": CRITEO_SLOT_SIZES}
    return {"name": top, "type": kind, "bottom": bottom, "top": top,
            "sparse_embedding_hparam": {**sizes, "embedding_vec_size": width,
                                        "combiner": combiner}, **keys}


def loss(logit, kind="BinaryCrossEntropyLoss", **keys):
    return {"name": "loss", "type": kind, "bottom": [logit, "label"], "top": "loss", **keys}


def adam(update_type, rate=0.001):
    return {"type": "Adam", "update_type": update_type,
            "adam_hparam": {"learning_rate": rate, "beta1": 0.9, "beta2": 0.999,
                            "epsilon": 0.0000001}}


def sgd(rate, warmup):
    return {"type": "SGD", "update_type": "Local",
            "sgd_hparam": {"learning_rate": rate, "atomic_update": True, "warmup_steps": warmup}}


def model(optimizer, layers, **solver):
    return {"solver": {"lr_policy": "fixed", "display": 1000, "max_iter": 10000, "gpu": [0],
                       "batchsize": 512, "snapshot": 10000000, "snapshot_prefix": "./",
                       "eval_interval": 1000, "eval_batches": 60, **solver},
            "optimizer": optimizer, "layers": layers}


def criteo():
    layers, top = mlp("reshape1", [200, 200, 200])
    return model(adam("Local"), [
        data(0, [sparse("data1", 1, 100)]), embedding("sparse_embedding1", "data1", 64),
        layer("Reshape", "reshape1", "sparse_embedding1", leading_dim=64), *layers,
        fc("fc4", top, 1), loss("fc4")], gpu=[0, 1], batchsize=40960)


def dcn(**of_data):
    layers, top = mlp("slice12", [1024, 1024], dropout=True)
    return model(adam("Global"), [
        data(13, [sparse("data1", 26, 30)], **of_data),
        embedding("sparse_embedding1", "data1", 16),
        layer("Reshape", "reshape1", "sparse_embedding1", leading_dim=416),
        layer("Concat", "concat1", ["reshape1", "dense"]),
        layer("Slice", ["slice11", "slice12"], "concat1", ranges=[[0, 429], [0, 429]]),
        layer("MultiCross", "multicross1", "slice11", mc_param={"num_layers": 6}), *layers,
        layer("Concat", "concat2", [top, "multicross1"]), fc("fc4", "concat2", 1), loss("fc4")],
                 max_iter=71000, gpu=[0, 1, 2, 3], snapshot=70999, eval_interval=2000,
                 eval_batches=8000)


def dcn_parquet():
    content = dcn(format="Parquet", slot_size_array=CRITEO_SLOT_SIZES, check="None")
    content["solver"]["input_key_type"] = "I64"
    return content


def deepfm():
    layers, top = mlp("slice31", [400, 400, 400], dropout=True)
    return model(adam("Global"), [
        data(13, [sparse("data1", 26, 30)]), embedding("sparse_embedding1", "data1", 11),
        layer("Reshape", "reshape1", "sparse_embedding1", leading_dim=11),
        layer("Slice", ["slice11", "slice12"], "reshape1", ranges=[[0, 10], [10, 11]]),
        layer("Reshape", "reshape2", "slice11", leading_dim=260),
        layer("Reshape", "reshape3", "slice12", leading_dim=26),
        layer("Slice", ["slice21", "slice22"], "dense", ranges=[[0, 13], [0, 13]]),
        layer("Multiply", "multiply1", "slice21", weight_dims=[13, 10]),
        layer("Multiply", "multiply2", "slice22", weight_dims=[13, 1]),
        layer("Concat", "concat1", ["reshape2", "multiply1"]),
        layer("Slice", ["slice31", "slice32"], "concat1", ranges=[[0, 390], [0, 390]]), *layers,
        fc("fc4", top, 1), layer("FmOrder2", "fmorder2", "slice32", out_dim=10),
        layer("ReduceSum", "reducesum1", "fmorder2", axis=1),
        layer("Concat", "concat2", ["reshape3", "multiply2"]),
        layer("ReduceSum", "reducesum2", "concat2", axis=1),
        layer("Add", "add", ["fc4", "reducesum1", "reducesum2"]), loss("add")])


def raw_data():
    return data(13, [sparse("data1", 26, 26, "LocalizedSlot", max_nnz=1)], check="None",
                format="Raw", num_samples=36634624, eval_num_samples=4584062,
                slot_size_array=CRITEO_SLOT_SIZES, source="./train_data.bin",
                eval_source="./test_data.bin")


ONE_HOT = "LocalizedSlotSparseEmbeddingOneHot"


def dlrm():
    bottom, low = mlp("dense", [512, 256, 128])
    top, high = mlp("interaction1", [1024, 1024, 512, 256], first=4)
    return model(sgd(8.0, 1000), [
        raw_data(), embedding("sparse_embedding1", "data1", 128, kind=ONE_HOT), *bottom,
        layer("Interaction", "interaction1", [low, "sparse_embedding1"]), *top,
        fc("fc8", high, 1), loss("fc8")],
                 max_iter=256054, gpu=list(range(8)), batchsize=16384, eval_interval=5000,
                 eval_batches=5441, eval_metrics=["AUC:0.8025"])


def dlrm_fp16():
    bottom, low = fused_mlp("dense", [512, 256, 128])
    top, high = fused_mlp("interaction1", [1024, 1024, 512, 256], first=4)
    return model(sgd(1, 300), [
        {**raw_data(), "cache_eval_data": 70},
        embedding("sparse_embedding1", "data1", 128, kind=ONE_HOT), *bottom,
        layer("Interaction", "interaction1", [low, "sparse_embedding1"]), *top,
        fc("fc8", high, 1), loss("fc8")],
                 max_iter=559, gpu=list(range(8)), batchsize=65536, eval_interval=34,
                 eval_batches=70, mixed_precision=1024, eval_metrics=["AUC:0.8025"])


def two_embeddings():
    """HugeCTR's unit test: most layers, tensors with several readers, tops that lead nowhere."""
    localized = "LocalizedSlotSparseEmbeddingHash"
    return model(adam("Global", 0.005), [
        data(64, [sparse("data1", 10, 100), sparse("data2", 10, 100, "LocalizedSlot")]),
        embedding("sparse_embedding1", "data1", 64, 1),
        embedding("sparse_embedding2", "data2", 64, 1, localized, plan_file="./plan.json"),
        layer("Reshape", "reshape1", "sparse_embedding1", leading_dim=640),
        layer("Reshape", "reshape2", "sparse_embedding2", leading_dim=640),
        layer("Concat", "concat1", ["reshape1", "reshape2", "dense"]), fc("fc1", "concat1", 200),
        layer("ReLU", "relu1", "fc1"), layer("Multiply", "multiply1", "relu1",
                                             weight_dims=[200, 10]),
        layer("FmOrder2", "fmorder2_1", "reshape1", out_dim=64),
        layer("ReduceSum", "reducesum1", "fmorder2_1", axis=1),
        layer("Slice", ["slice11", "slice12"], "concat1", ranges=[[0, 200], [300, 400]]),
        fc("fc2", "slice11", 200), layer("ReLU", "relu2", "fc2"),
        layer("MultiCross", "multicross1", "relu2", mc_param={"num_layers": 2}),
        fc("fc3", "multicross1", 200), layer("ReLU", "relu3", "fc3"), fc("fc4", "relu3", 1),
        layer("Add", "add", ["fc4", "reducesum1"]),
        loss("add", regularizer="L2", **{"lambda": 0.0005})],
                 display=200, max_iter=50000, gpu=[0, 1], batchsize=40960, snapshot=10000)


def wdl():
    layers, top = mlp("concat1", [1024, 1024], dropout=True)
    return model(adam("Global"), [
        data(13, [sparse("wide_data", 1, 30), sparse("deep_data", 26, 30)]),
        embedding("sparse_embedding2", "wide_data", 1),
        embedding("sparse_embedding1", "deep_data", 16),
        layer("Reshape", "reshape1", "sparse_embedding1", leading_dim=416),
        layer("Reshape", "reshape2", "sparse_embedding2", leading_dim=1),
        layer("Concat", "concat1", ["reshape1", "dense"]), *layers, fc("fc4", top, 1),
        layer("Add", "add1", ["fc4", "reshape2"]), loss("add1")],
                 display=200, batchsize=16384, eval_batches=20)


def several_labels():
    """Not one of HugeCTR's samples: three labels, some masked, and layers that the samples lack."""
    content = model(adam("Local"), [
        data(5, [sparse("data1", 6, 30)]), embedding("sparse_embedding1", "data1", 8),
        layer("Reshape", "picked", "sparse_embedding1", selected=[4, 0, 5]),
        layer("Concat", "concat1", ["picked", "dense"]), fc("fc1", "concat1", 29),
        layer("BatchNorm", "bn1", "fc1", bn_param={"factor": 0.1, "eps": 0.00001}),
        layer("ELU", "elu1", "bn1", elu_param={"alpha": 1.0}),
        layer("DotProduct", "product1", ["elu1", "concat1"]), layer("Cast", "cast1", "product1"),
        fc("fc2", "cast1", 3),
        loss("fc2", "MultiCrossEntropyLoss", target_weight=[1, 0.5, 2], regularizer="L1",
             **{"lambda": 0.0001})])
    content["layers"][0]["label"]["label_dim"] = 3
    return content


def two_classes():
    layers, top = mlp("concat1", [16])
    return model(adam("Local"), [
        data(5, [sparse("data1", 6, 30)]), embedding("sparse_embedding1", "data1", 8, 1),
        layer("Reshape", "reshape1", "sparse_embedding1"),
        layer("Concat", "concat1", ["reshape1", "dense"]), *layers, fc("fc2", top, 2),
        loss("fc2", "CrossEntropyLoss")])


def mixed_inputs():
    """Not a sample either: three inputs with different optimizers, a decaying schedule, settings of
    HugeCTR 3.x, and layer options that no sample uses."""
    rates = {"warmup_steps": 5, "decay_start": 20, "decay_steps": 30, "decay_power": 1, "end_lr": 0.001}
    return model({"type": "Nesterov", "update_type": "LazyGlobal",
                  "nesterov_hparam": {"learning_rate": 0.02, "momentum_factor": 0.9, **rates}}, [
        data(4, [sparse("wide", 1, 3), sparse("deep", 5, 20, "LocalizedSlot", max_nnz=4),
                 {"top": "fixed", "slot_num": 2, "is_fixed_length": False, "nnz_per_slot": [2, 3],
                  "max_feature_num_per_sample": 5}], cache_eval_data=True),
        embedding("wide1", "wide", 1, optimizer={"type": "Ftrl", "ftrl_hparam": {"learning_rate": 0.1}}),
        embedding("deep1", "deep", 8, 1, "LocalizedSlotSparseEmbeddingHash", optimizer={
            "type": "AdaGrad", "adagrad_hparam": {"learning_rate": 0.05, "initial_accu_value": 0.1,
                                                  "epsilon": 1e-6}}),
        embedding("fixed1", "fixed", 8, "mean"),
        fc("low", "dense", 8, "FusedInnerProduct"), layer("Interaction", "pairs", ["low", "deep1"]),
        layer("ReduceSum", "sums", "deep1", axis=2), layer("Reshape", "flat", "sums", leading_dim=5),
        layer("Reshape", "whole", "fixed1"), layer("Reshape", "bias", "wide1", leading_dim=1),
        layer("Concat", "all", ["pairs", "flat", "whole", "dense"]),
        layer("Slice", ["a", "b", "c"], "all", ranges=[[0, 20], [10, 40], [10, 49]]),
        {**fc("a1", "a", 6), "fc_param": {"num_output": 6, "weight_init": "XavierUniform",
                                          "bias_init": "Zero"}},
        layer("BatchNorm", "a2", "a1", bn_param={"factor": 1.0, "eps": 0.001, "beta_init": "Uniform"}),
        fc("b1", "b", 6), layer("ELU", "b2", "b1", elu_param={"alpha": 0.5}), fc("c1", "c", 6),
        layer("DotProduct", "product", ["a2", "b2", "c1"]),
        layer("MultiCross", "cross", "a2", mc_param={"num_layers": 3, "weight_init": "XavierNorm",
                                                     "bias_init": "Uniform"}),
        layer("Multiply", "wider", "dense", weight_dims=[4, 3], weight_init="Uniform"),
        layer("FmOrder2", "second", "wider", out_dim=3), layer("ReduceSum", "one", "second", axis=1),
        layer("Concat", "last", ["product", "cross"]), layer("Dropout", "drop", "last", rate=0.1),
        fc("top", "drop", 1), layer("Add", "logit", ["top", "bias", "one"]), loss("logit")],
                 enable_overlap=True, gpu=[[0, 1], [2, 3]], eval_metrics=["AUC:0.9999", "AverageLoss"],
                 mixed_precision=256)


def dlrm_dcnv2():
    """DLRM-DCNv2 of MLPerf, in small: 26 slots of several keys, low-rank crosses, MLPs. The published
    sizes are 128 floats a row, MLPs of 512-256-128 and 1024-1024-512-256-1, and rank 512."""
    def mlp(top, bottom, widths, activations):
        return layer("MLP", top, bottom, mlp_param={"num_outputs": widths, "activations": activations,
                                                    "use_bias": True})

    return model({"type": "AdaGrad", "update_type": "Local", "adagrad_hparam": {
        "learning_rate": 0.05, "initial_accu_value": 0.1, "epsilon": 1e-8}}, [
        data(13, [sparse("data1", 26, 26 * 3)]), embedding("rows", "data1", 16),
        mlp("mlp1", "dense", [64, 32, 16], ["Relu"] * 3),
        layer("Reshape", "flat", "rows", leading_dim=26 * 16),
        layer("Concat", "features", ["flat", "mlp1"]),
        layer("MultiCross", "crossed", "features", mc_param={"num_layers": 3, "projection_dim": 32}),
        mlp("mlp2", "crossed", [128, 128, 64, 32, 1], ["Relu"] * 4 + ["None"]), loss("mlp2")])


def din():
    """HugeCTR 3.x's samples/din: attention of a target item over the ten items before it."""
    def copies(bottom, count):
        tops = [f"{bottom}_{i}" for i in range(count)]
        return {**layer("Slice", tops, bottom, ranges=[[0, 36]] * count), "name": f"{bottom}_copies"}

    def dice(top, bottom):
        return layer("PReLU_Dice", top, bottom, prelu_dice_param={"alpha": 0.2, "eps": 1e-8})

    return model(adam("Global"), [
        data(0, [sparse("UserID", 1, 1), sparse("GoodID", 11, 11), sparse("CateID", 11, 11)]),
        embedding("user", "UserID", 18), embedding("good", "GoodID", 18),
        embedding("cate", "CateID", 18),
        {**layer("FusedReshapeConcat", ["history", "item"], ["good", "cate"]), "name": "fused"},
        copies("item", 2), copies("history", 5),
        layer("Scale", "items", "item_0", scale_param={"axis": 1, "factor": 10}), copies("items", 3),
        layer("Sub", "apart", ["items_0", "history_0"]),
        layer("ElementwiseMultiply", "near", ["items_1", "history_1"]),
        layer("Concat", "pairs", ["items_2", "history_2", "apart", "near"]),
        fc("att1", "pairs", 40), fc("att2", "att1", 1),
        layer("Reshape", "scores", "att2", leading_dim=10, time_step=1),
        layer("Softmax", "shares", "scores"),
        layer("Reshape", "sequence", "history_3", leading_dim=36, time_step=10),
        layer("MatrixMultiply", "interest", ["shares", "sequence"]),
        layer("Reshape", "interest_row", "interest", leading_dim=36),
        layer("Reshape", "past", "history_4", leading_dim=36, time_step=10),
        layer("ReduceMean", "mean", "past", axis=1), layer("Reshape", "mean_row", "mean", leading_dim=36),
        layer("Reshape", "user_row", "user", leading_dim=18),
        layer("Concat", "all", ["user_row", "mean_row", "interest_row", "item_1"]),
        fc("fc1", "all", 200), dice("dice1", "fc1"), fc("fc2", "dice1", 80), dice("dice2", "fc2"),
        fc("fc3", "dice2", 1), loss("fc3")], input_key_type="I64")


def bst():
    """HugeCTR 3.x's samples/bst: a Transformer block over the ten items before a target."""
    def dice(top, bottom):
        return layer("PReLU_Dice", top, bottom, prelu_dice_param={"alpha": 0.2, "eps": 1e-8})

    return model(adam("Global"), [
        data(1, [sparse("UserID", 1, 1), sparse("GoodID", 10, 10), sparse("Target_Good", 1, 1),
                 sparse("CateID", 10, 10), sparse("Target_Cate", 1, 1)]),
        embedding("user", "UserID", 18), embedding("good", "GoodID", 16),
        embedding("item_good", "Target_Good", 16), embedding("cate", "CateID", 16),
        embedding("item_cate", "Target_Cate", 16),
        layer("SequenceMask", "mask", ["dense", "dense"], max_sequence_len_from=10,
              max_sequence_len_to=10),
        layer("Concat", "history", ["cate", "good"], axis=2),
        fc("query", "history", 32), fc("key", "history", 32), fc("value", "history", 32),
        layer("MultiHeadAttention", "attention", ["query", "key", "value", "mask"],
              num_attention_heads=4, transpose_b=True),
        layer("Add", "shortcut", ["attention", "query"]),
        layer("LayerNorm", "norm", "shortcut", ln_param={"eps": 1e-5}),
        fc("ffn1", "norm", 128), fc("ffn2", "ffn1", 32), layer("Add", "ffn_shortcut", ["ffn2", "norm"]),
        layer("LayerNorm", "ffn_norm", "ffn_shortcut", ln_param={"eps": 1e-5}),
        layer("ReduceMean", "mean", "ffn_norm", axis=1),
        layer("Reshape", "interest", "mean", leading_dim=32),
        layer("Reshape", "user_row", "user", leading_dim=18),
        layer("Reshape", "good_row", "item_good", leading_dim=16),
        layer("Reshape", "cate_row", "item_cate", leading_dim=16),
        layer("Concat", "all", ["interest", "user_row", "good_row", "cate_row"]),
        fc("fc1", "all", 256), dice("dice1", "fc1"), fc("fc2", "dice1", 128), dice("dice2", "fc2"),
        fc("fc3", "dice2", 64), dice("dice3", "fc3"), fc("fc4", "dice3", 1), loss("fc4")],
                 input_key_type="I64")


ALL = {make.__name__: make for make in (bst, criteo, dcn, dcn_parquet, deepfm, din, dlrm, dlrm_dcnv2, dlrm_fp16, mixed_inputs,
                                        two_embeddings, wdl, several_labels, two_classes)}


def write_norm(path, content, samples, seed):
    """Writes samples in the shape that `content` declares as one Norm file; labels depend on the keys."""
    draw = random.Random(seed)
    shape = content["layers"][0]
    labels, dense = shape["label"]["label_dim"], shape["dense"]["dense_dim"]
    slots = sum(one["slot_num"] for one in shape["sparse"])
    key = "q" if content["solver"].get("input_key_type") == "I64" else "I"
    masks = content["layers"][-1]["type"] == "MultiCrossEntropyLoss"
    # Dense features of a SequenceMask are lengths.
    most = max([1] + [one["max_sequence_len_to"] + 1 for one in content["layers"]
                      if one["type"] == "SequenceMask"])
    with open(path, "wb") as file:
        file.write(wrapped(struct.pack("<8q", 1, samples, labels, dense, slots, 0, 0, 0), "Sum"))
        for _ in range(samples):
            likely = draw.randrange(2)
            label = [float(draw.random() < (0.8 if likely else 0.2)) for _ in range(labels)]
            if masks and draw.random() < 0.2:
                label[draw.randrange(labels)] = -1.0
            record = struct.pack(f"<{labels + dense}f", *label,
                                 *(draw.random() * most for _ in range(dense)))
            first = 0
            for one in shape["sparse"]:
                spare = one["max_feature_num_per_sample"] - one["slot_num"]
                for slot in range(first, first + one["slot_num"]):
                    count = 1 + (spare > 0 and draw.random() < 0.1)
                    spare -= count - 1
                    keys = [slot * 40 + 2 * draw.randrange(20) + likely for _ in range(count)]
                    record += struct.pack(f"<i{count}{key}", count, *keys)
                first += one["slot_num"]
            file.write(wrapped(record, "Sum"))


def write_raw(path, content, samples, seed):
    """The same as a Raw file: one key per slot, numbered from 0 in each slot."""
    draw = random.Random(seed)
    shape = content["layers"][0]
    dense = shape["dense"]["dense_dim"]
    with open(path, "wb") as file:
        for _ in range(samples):
            likely = draw.randrange(2)
            label = int(draw.random() < (0.8 if likely else 0.2))
            keys = [(2 * draw.randrange(20) + likely) % size for size in shape["slot_size_array"]]
            file.write(struct.pack(f"<{1 + dense + len(keys)}i", label,
                                   *(draw.randrange(100) for _ in range(dense)), *keys))


# A model of two embeddings, one of each kind, with every layer that has weights.
DIM, WIDTH = 4, 3
KINDS = {"first": "DistributedSlotSparseEmbeddingHash", "second": "LocalizedSlotSparseEmbeddingHash"}


def two_embeddings(content):
    """Changes the model of programs.py: [4 slots of 4 floats, twice][dense 2] -> Concat -> all layers with weights."""
    content["solver"].update(num_epochs=0, max_iter=12, snapshot=6, eval_interval=0, display=6)
    data, rest = content["layers"][0], content["layers"][-1]
    columns = 2 * DIM * Samples.SLOTS
    layers = [data]
    for name, kind in KINDS.items():
        layers.append({"name": name, "type": kind, "bottom": "data1", "top": name,
                       "sparse_embedding_hparam": {"max_vocabulary_size_per_gpu": 1000,
                                                   "embedding_vec_size": DIM, "combiner": 0}})
    layers += [
        {"name": "r1", "type": "Reshape", "bottom": "first", "top": "r1",
         "leading_dim": columns // 2},
        {"name": "r2", "type": "Reshape", "bottom": "second", "top": "r2",
         "leading_dim": columns // 2},
        {"name": "multiply", "type": "Multiply", "bottom": "dense", "top": "multiply",
         "weight_dims": [Samples.DENSE, 2]},
        {"name": "concat", "type": "Concat", "bottom": ["r1", "r2", "multiply"],
         "top": "concat"},
        {"name": "cross", "type": "MultiCross", "bottom": "concat", "top": "cross",
         "mc_param": {"num_layers": 2}},
        {"name": "fc1", "type": "InnerProduct", "bottom": "cross", "top": "fc1",
         "fc_param": {"num_output": WIDTH}},
        {"name": "bn", "type": "BatchNorm", "bottom": "fc1", "top": "bn",
         "bn_param": {"factor": 0.5, "eps": 0.001}},
        {"name": "fc2", "type": "InnerProduct", "bottom": "bn", "top": "fc2",
         "fc_param": {"num_output": 1}},
        {**rest, "bottom": ["fc2", "label"]}]
    content["layers"] = layers
