"""HugeCTR's Python interface: its notebooks' programs, with the import changed, on generated data."""

import contextlib
import io
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

import numpy as np

import cistern_ps as cs
from cistern_ps import hugectr
from program import run_cistern
from cistern_ps.hugectr.tools import DataGenerator, DataGeneratorParams

SIZES = [300] + [40] * 5  # a wide slot, and deep ones
DENSE = 3


def generate(folder, format=hugectr.DataReaderType_t.Norm, i64=False, samples=2000):
    os.makedirs(folder, exist_ok=True)
    DataGenerator(DataGeneratorParams(
        format=format, label_dim=1, dense_dim=DENSE, num_slot=len(SIZES), i64_input_key=i64, nnz_array=[1] * len(SIZES),
        num_files=2, eval_num_files=1, num_samples_per_file=samples // 2, source=f"{folder}/file_list.txt",
        eval_source=f"{folder}/file_list_test.txt", slot_size_array=SIZES, check_type=hugectr.Check_t.Sum,
        dist_type=hugectr.Distribution_t.PowerLaw, power_law_type=hugectr.PowerLaw_t.Short)).generate()


def solver(**more):
    return hugectr.CreateSolver(**{"max_eval_batches": 5000, "batchsize_eval": 128, "batchsize": 128, "lr": 0.01, "vvgpu": [[0]],
                                   "i64_input_key": False, "use_mixed_precision": False, "repeat_dataset": False,
                                   "use_cuda_graph": True, **more})


def reader(days, keysets=()):
    return hugectr.DataReaderParams(data_reader_type=hugectr.DataReaderType_t.Norm,
                                    source=[f"{day}/file_list.txt" for day in days], keyset=list(keysets),
                                    eval_source=f"{days[0]}/file_list_test.txt", num_workers=2,
                                    check_type=hugectr.Check_t.Sum)


def cache(name):
    return hugectr.CreateETC(ps_types=[hugectr.TrainPSType_t.Staged, hugectr.TrainPSType_t.Cached],
                             sparse_models=[f"./{name}_0", f"./{name}_1"], local_paths=["./"],
                             hmem_cache_configs=[hugectr.CreateHMemCache(num_blocks=2, target_hit_rate=0.5, max_num_evict=0)])


def add_layers(model, optimizer=None):
    """Wide and deep, as in the notebook continuous_training."""
    deep = len(SIZES) - 1

    def dense(layer, bottoms, top, **parameters):
        model.add(hugectr.DenseLayer(layer_type=layer, bottom_names=bottoms, top_names=[top], **parameters))

    model.add(hugectr.Input(label_dim=1, label_name="label", dense_dim=DENSE, dense_name="dense",
                            data_reader_sparse_param_array=[hugectr.DataReaderSparseParam("wide_data", 1, True, 1),
                                                            hugectr.DataReaderSparseParam("deep_data", 2, False, deep)]))
    for name, bottom, size in (("sparse_embedding2", "wide_data", 1), ("sparse_embedding1", "deep_data", 4)):
        model.add(hugectr.SparseEmbedding(embedding_type=hugectr.Embedding_t.DistributedSlotSparseEmbeddingHash,
                                          workspace_size_per_gpu_in_mb=10, embedding_vec_size=size, combiner="sum",
                                          sparse_embedding_name=name, bottom_name=bottom, optimizer=optimizer))
    layer = hugectr.Layer_t
    dense(layer.Reshape, ["sparse_embedding1"], "reshape1", leading_dim=4 * deep)
    dense(layer.Reshape, ["sparse_embedding2"], "reshape2", leading_dim=1)
    dense(layer.Concat, ["reshape1", "dense"], "concat1")
    dense(layer.InnerProduct, ["concat1"], "fc1", num_output=16)
    dense(layer.ReLU, ["fc1"], "relu1")
    dense(layer.Dropout, ["relu1"], "dropout1", dropout_rate=0.1)
    dense(layer.InnerProduct, ["dropout1"], "fc2", num_output=1)
    dense(layer.Add, ["fc2", "reshape2"], "add1")
    dense(layer.BinaryCrossEntropyLoss, ["add1", "label"], "loss")


def model_of(days, etc=None, optimizer=None, **solver_more):
    optimizer = optimizer or hugectr.CreateOptimizer(optimizer_type=hugectr.Optimizer_t.Adam,
                                                     update_type=hugectr.Update_t.Local)
    model = hugectr.Model(solver(**solver_more), reader(days), optimizer, etc)
    add_layers(model, optimizer)
    model.compile()
    return model


def quietly(function, *arguments, **named):
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        function(*arguments, **named)
    return out.getvalue()


def keys_of(*days):
    """The distinct keys of days, by their keysets."""
    return {int(key) for day in days for key in np.fromfile(f"{day}.keyset", np.uint32)}


def rows_of(folder, dim):
    """A sparse model of HugeCTR 3.x: {key: vector}."""
    keys = np.fromfile(f"{folder}/key", np.int64)
    vectors = np.fromfile(f"{folder}/emb_vector", np.float32).reshape(-1, dim)
    return dict(zip(keys.tolist(), map(bytes, vectors)))


def bst_model(pooled):
    """A model of samples/bst, compiled. pooled: the outputs of the block are averaged, not joined."""
    optimizer = hugectr.CreateOptimizer(optimizer_type=hugectr.Optimizer_t.Adam, update_type=hugectr.Update_t.Global,
                                        beta1=0.9, beta2=0.999, epsilon=1e-9)
    data = hugectr.DataReaderParams(data_reader_type=hugectr.DataReaderType_t.Norm, source=["bst/list.txt"],
                                    eval_source="bst/test.txt", check_type=hugectr.Check_t.Sum, num_workers=1)
    model = hugectr.Model(solver(max_eval_batches=1, batchsize_eval=1000, batchsize=64, lr=0.001, repeat_dataset=True,
                                 i64_input_key=True), data, optimizer)

    def dense(layer, bottoms, top, **parameters):
        model.add(hugectr.DenseLayer(layer_type=layer, bottom_names=bottoms, top_names=[top], **parameters))

    inputs = [("UserID", 1, 18, "user"), ("GoodID", 10, 16, "good"), ("Target_Good", 1, 16, "item_good"),
              ("CateID", 10, 16, "cate"), ("Target_Cate", 1, 16, "item_cate")]
    model.add(hugectr.Input(label_dim=1, label_name="label", dense_dim=1, dense_name="dense", data_reader_sparse_param_array=[
        hugectr.DataReaderSparseParam(name, 1, True, slots) for name, slots, _, _ in inputs]))
    for name, _, size, top in inputs:
        model.add(hugectr.SparseEmbedding(embedding_type=hugectr.Embedding_t.DistributedSlotSparseEmbeddingHash,
                                          workspace_size_per_gpu_in_mb=72, embedding_vec_size=size, combiner="sum",
                                          sparse_embedding_name=f"embedding_{top}", bottom_name=name, optimizer=optimizer))
    layer = hugectr.Layer_t
    dense(layer.SequenceMask, ["dense", "dense"], "mask", max_sequence_len_from=10, max_sequence_len_to=10)
    dense(layer.Concat, ["embedding_cate", "embedding_good"], "history", axis=2)
    for top in ("query", "key", "value"):
        dense(layer.InnerProduct, ["history"], top, num_output=32)
    dense(layer.MultiHeadAttention, ["query", "key", "value", "mask"], "attention", num_attention_heads=4)
    dense(layer.Add, ["attention", "query"], "shortcut")
    dense(layer.LayerNorm, ["shortcut"], "norm", eps=1e-5, gamma_init_type=hugectr.Initializer_t.Default)
    dense(layer.InnerProduct, ["norm"], "ffn1", num_output=128)
    dense(layer.InnerProduct, ["ffn1"], "ffn2", num_output=32)
    dense(layer.Add, ["ffn2", "norm"], "ffn_shortcut")
    dense(layer.LayerNorm, ["ffn_shortcut"], "ffn_norm")
    if pooled:
        dense(layer.ReduceMean, ["ffn_norm"], "ffn_mean", axis=1)
    dense(layer.Reshape, ["ffn_mean" if pooled else "ffn_norm"], "row", leading_dim=32 if pooled else 320)
    for top, size in (("user", 18), ("item_good", 16), ("item_cate", 16)):
        dense(layer.Reshape, [f"embedding_{top}"], f"row_{top}", leading_dim=size)
    dense(layer.Concat, ["row", "row_user", "row_item_good", "row_item_cate"], "dice_0")
    for i, width in enumerate((256, 128, 64), 1):
        dense(layer.InnerProduct, [f"dice_{i - 1}"], f"fc_{i}", num_output=width)
        dense(layer.PReLU_Dice, [f"fc_{i}"], f"dice_{i}", elu_alpha=0.2, eps=1e-8)
    dense(layer.InnerProduct, ["dice_3"], "fc_4", num_output=1)
    dense(layer.BinaryCrossEntropyLoss, ["fc_4", "label"], "loss")
    model.compile()
    return model


def concatenated(lookups, nnz, lists=False, size=4):
    """A model whose input has five slots of up to `nnz` keys, beside one that is not looked up."""
    model = hugectr.Model(solver(repeat_dataset=True), reader(["d0"]))
    model.add(hugectr.Input(label_dim=1, label_name="label", dense_dim=DENSE, dense_name="dense",
                            data_reader_sparse_param_array=[hugectr.DataReaderSparseParam("wide", 1, True, 1),
                                                            hugectr.DataReaderSparseParam(lookups[0][0], nnz, False, 5)]))
    collection = hugectr.EmbeddingCollectionConfig()
    for number, (bottom, combiner) in enumerate(lookups):
        table = hugectr.EmbeddingTableConfig(f"t{number}", 100, size)
        collection.embedding_lookup(*([table], [bottom], "rows", [combiner]) if lists else (table, bottom, "rows", combiner))
    model.add(collection)
    return model


class HugectrInterface(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.addClassCleanup(os.chdir, os.getcwd())
        os.chdir(folder.name)
        for day in ("d0", "d1", "d2"):
            generate(day)
        model = model_of(["d0"])
        model.graph_to_json("wdl.json")
        for day in ("d0", "d1", "d2"):
            run_cistern("data", "keyset", "--model", "wdl.json", "--data", f"{day}/file_list.txt", "--out", f"{day}.keyset")

    def test_an_incremental_model_since_a_commit_that_is_gone_is_all_rows(self):
        model = model_of(["d0"])
        quietly(model.fit, num_epochs=1, display=0, eval_interval=0)
        self.assertEqual(sum(len(keys) for keys, _ in model.get_incremental_model()), len(keys_of("d0")))
        for _ in range(4):
            model.set_source(["d1/file_list.txt"])
            quietly(model.fit, num_epochs=1, display=0, eval_interval=0)
        self.assertEqual(sum(len(keys) for keys, _ in model.get_incremental_model()), len(keys_of("d0", "d1")))
        model.set_source(["d1/file_list.txt"])
        quietly(model.fit, num_epochs=1, display=0, eval_interval=0)
        self.assertEqual(sum(len(keys) for keys, _ in model.get_incremental_model()), len(keys_of("d1")))

    def test_the_keyset_program_has_the_arguments_of_hugectr(self):
        generate("p0", hugectr.DataReaderType_t.Parquet, i64=True)
        words = ["--src_dir_path", "p0/train", "--keyset_path", "p0.keyset", "--slot_size_array", *map(str, SIZES)]
        subprocess.run([sys.executable, "-m", "cistern_ps.hugectr.generate_keyset", *words], check=True, capture_output=True)
        starts, expected = np.cumsum([0, *SIZES]), set()
        for batch in cs.data.parquet(sorted(pathlib.Path("p0/train").glob("*.parquet")), slots=len(SIZES), dense=DENSE):
            expected.update(int(key) + int(starts[i % len(SIZES)]) for i, key in enumerate(batch.keys))
        self.assertEqual(np.fromfile("p0.keyset", "<i8").tolist(), sorted(expected))
        done = subprocess.run([sys.executable, "-m", "cistern_ps.hugectr.generate_keyset", *words[:-1]], capture_output=True, text=True)
        self.assertEqual(done.returncode, 2)
        self.assertIn(f"{len(SIZES) - 1} sizes in slot_size_array for {len(SIZES)} columns\nfix:", done.stderr)

    def test_the_high_level_loop_of_continuous_training(self):
        model = model_of(["d0", "d1"], cache("high"))
        self.assertIn("BinaryCrossEntropyLoss", quietly(model.summary))
        shown = quietly(model.fit, num_epochs=1, display=10, eval_interval=20)
        self.assertIn("loss=", shown)
        self.assertIn("auc=", shown)
        first = model.get_incremental_model()
        self.assertEqual([vectors.shape[1] for _, vectors in first], [1, 4])
        self.assertEqual(sum(len(keys) for keys, _ in first), len(keys_of("d0", "d1")))
        self.assertEqual([len(keys) for keys, _ in model.get_incremental_model()], [0, 0])
        model.set_source(source=["d2/file_list.txt"], keyset=["d2.keyset"], eval_source="d2/file_list_test.txt")
        quietly(model.fit, num_epochs=1, display=0, eval_interval=0)
        second = model.get_incremental_model()
        self.assertEqual(sum(len(keys) for keys, _ in second), len(keys_of("d2")))
        os.makedirs("high_0")
        pathlib.Path("high_0/mine.txt").write_text("mine")
        model.save_params_to_files("high_etc")
        self.assertTrue(pathlib.Path("high_etc_dense_0.model").is_file())
        self.assertTrue(pathlib.Path("high_0/mine.txt").is_file())  # nothing else in the folder was touched
        self.assertTrue(pathlib.Path("high_etc_opt_dense_0.model").is_file())
        for i, dim in enumerate((1, 4)):
            saved = rows_of(f"high_{i}", dim)
            self.assertEqual(set(saved), {*first[i][0].tolist(), *second[i][0].tolist()})
            self.assertEqual([saved[key] for key in second[i][0].tolist()], [bytes(vector) for vector in second[i][1]])
        metrics = dict(model.get_eval_metrics())
        self.assertGreater(metrics["AUC"], 0.55)

        # Another process begins where the sparse models of the cache are.
        other = model_of(["d0"], cache("high"))
        other.load_dense_weights("high_etc_dense_0.model")
        other.get_data_reader_eval().set_source("d2/file_list_test.txt")
        self.assertEqual(dict(other.get_eval_metrics()), metrics)

    def test_the_low_level_loop_of_continuous_training(self):
        model = hugectr.Model(solver(), reader(["d0"]), hugectr.CreateOptimizer(hugectr.Optimizer_t.Adam), cache("low"))
        model.construct_from_json(graph_config_file="wdl.json", include_dense_network=True)
        model.compile()
        scheduler, etc = model.get_learning_rate_scheduler(), model.get_embedding_training_cache()
        training, evaluation = model.get_data_reader_train(), model.get_data_reader_eval()
        evaluation.set_source("d2/file_list_test.txt")
        iteration, losses, aucs = 0, [], []
        for day in ("d0", "d1", "d0"):
            training.set_source(f"{day}/file_list.txt")
            etc.update(f"{day}.keyset")
            while True:
                model.set_learning_rate(scheduler.get_next())
                if not model.train():
                    break
                losses.append(model.get_current_loss())
                if iteration % 10 == 0:
                    batches = 0
                    while model.eval():
                        batches += 1
                    self.assertEqual(batches, 7)  # of 8; the last call says that it was the last
                    aucs.append(dict(model.get_eval_metrics())["AUC"])
                iteration += 1
            self.assertTrue(training.is_eof())
        self.assertEqual(iteration, 3 * 16)
        self.assertLess(np.mean(losses[-8:]), np.mean(losses[:8]))
        self.assertGreater(aucs[-1], aucs[0])
        self.assertEqual(sum(len(keys) for keys, _ in model.get_incremental_model()), len(keys_of("d0", "d1")))
        model.save_params_to_files("low_etc")
        self.assertEqual({*rows_of("low_0", 1), *rows_of("low_1", 4)}, keys_of("d0", "d1"))
        etc.update("d1.keyset")
        with open("short.keyset", "wb") as file:
            file.write(np.arange(5, dtype=np.uint32).tobytes())
        training.set_source("d1/file_list.txt")
        etc.update("short.keyset")
        with self.assertRaisesRegex(cs.DataError, "is not in the keyset short.keyset"):
            model.train()
        etc.update("d1.keyset")
        self.assertTrue(model.train())  # an error leaves what was trained, and can be mended

    def test_steps_have_the_bits_of_fit(self):
        whole, steps = model_of(["d0", "d1"]), model_of(["d0", "d1"])
        quietly(whole.fit, num_epochs=1, display=0, eval_interval=0)
        scheduler = steps.get_learning_rate_scheduler()
        for iteration in range(32):
            steps.set_learning_rate(scheduler.get_next())
            self.assertTrue(steps.train())
            if iteration in (5, 20):
                steps.eval()
            if iteration == 11:
                steps.get_incremental_model()  # a commit in the middle of the data
        self.assertFalse(steps.train())
        self.assertFalse(steps.train())
        for model, prefix in ((whole, "whole"), (steps, "steps")):
            model.save_params_to_files(prefix, 7)
        for name in ("_dense_7.model", "_opt_dense_7.model", "0_sparse_7.model/emb_vector", "1_sparse_7.model/emb_vector",
                     "1_sparse_7.model/key"):
            self.assertEqual(pathlib.Path("whole" + name).read_bytes(), pathlib.Path("steps" + name).read_bytes(), name)

    def test_another_learning_rate_is_taken(self):
        models = [model_of(["d0"], lr=0.01), model_of(["d0"], lr=0.02), model_of(["d0"], lr=0.01)]
        models[2].set_learning_rate(0.02)
        for model in models:
            for _ in range(5):
                model.train()
        losses = [model.get_current_loss() for model in models]
        self.assertNotEqual(losses[0], losses[1])
        self.assertAlmostEqual(losses[1], losses[2], 6)

    def test_data_is_repeated_without_end(self):
        model = model_of(["d0"], repeat_dataset=True)
        model.start_data_reading()
        for _ in range(40):  # of 16 batches
            self.assertTrue(model.train())
        shown = quietly(model_of(["d0"], repeat_dataset=True).fit, max_iter=40, display=20, eval_interval=20)
        self.assertIn("iter=40", shown)

    def test_trainings_that_end_inside_the_data_follow_each_other(self):
        """Each begins with the first batch; the numbers of batches are not multiples of 16, an epoch."""
        model = model_of(["d0"], repeat_dataset=True)
        more = {"display": 0, "eval_interval": 0, "snapshot": 0}
        for iterations in (5, 30, 7):
            quietly(model.fit, max_iter=iterations, **more)
        self.assertTrue(model.train())
        model.get_data_reader_train().set_source()
        self.assertTrue(model.train())
        model.freeze_dense()
        quietly(model.fit, max_iter=3, **more)
        model.unfreeze_dense()
        self.assertTrue(model.train())

    def test_loaded_weights_are_evaluated_before_a_step(self):
        model = model_of(["d0"], repeat_dataset=True)
        quietly(model.fit, max_iter=20, display=0, eval_interval=0, snapshot=0)
        first = model.get_eval_metrics()
        model.save_params_to_files("early", 20)
        quietly(model.fit, max_iter=40, display=0, eval_interval=0, snapshot=0)
        self.assertNotEqual(model.get_eval_metrics(), first)
        for load, name in ((model.load_dense_weights, "none_dense_20.model"), (model.load_sparse_weights, ["", "none"])):
            with self.assertRaisesRegex(cs.UsageError, "there is no file 'none.*to load"):
                load(name)
        model.load_sparse_weights([f"early{i}_sparse_20.model" for i in range(2)])
        model.load_dense_weights("early_dense_20.model")
        self.assertEqual(model.get_eval_metrics(), first)
        self.assertTrue(model.train())

    def test_frozen_parts_stay(self):
        model = model_of(["d0"])
        quietly(model.fit, num_epochs=1, display=0, eval_interval=0)
        model.save_params_to_files("before")
        model.freeze_dense()
        model.freeze_embedding("sparse_embedding2")
        quietly(model.fit, num_epochs=1, display=0, eval_interval=0)
        model.save_params_to_files("frozen")
        files = ("_dense_0.model", "0_sparse_0.model/emb_vector", "1_sparse_0.model/emb_vector")
        same = [pathlib.Path("before" + f).read_bytes() == pathlib.Path("frozen" + f).read_bytes() for f in files]
        self.assertEqual(same, [True, True, False])
        model.unfreeze_dense()
        quietly(model.fit, num_epochs=1, display=0, eval_interval=0)
        model.save_params_to_files("thawed")
        self.assertNotEqual(pathlib.Path("before_dense_0.model").read_bytes(), pathlib.Path("thawed_dense_0.model").read_bytes())

    def test_weights_of_files_replace_those_that_were_trained(self):
        model = model_of(["d0"])
        quietly(model.fit, num_epochs=1, display=0, eval_interval=0)
        model.save_params_to_files("old")
        old = model.get_eval_metrics()
        quietly(model.fit, num_epochs=1, display=0, eval_interval=0)
        self.assertNotEqual(model.get_eval_metrics(), old)
        model.load_sparse_weights({"sparse_embedding1": "old1_sparse_0.model"})
        model.load_dense_weights("old_dense_0.model")
        model.set_source(["d0/file_list.txt"])
        self.assertNotEqual(model.get_eval_metrics(), old)  # the other embedding is as it was
        model.load_sparse_weights(["old0_sparse_0.model", "old1_sparse_0.model"])
        self.assertEqual(model.get_eval_metrics(), old)
        model.set_source(["d1/file_list.txt"])  # what the files held is trained, on whatever data
        self.assertTrue(model.train())
        with self.assertRaisesRegex(cs.UsageError, "no embedding 'other'"):
            model.load_sparse_weights({"other": "x"})

    def test_a_state_folder_outlives_the_process(self):
        days = ["d0"]
        model = hugectr.Model(solver(), reader(days), hugectr.CreateOptimizer(update_type=hugectr.Update_t.Local), None, "kept")
        add_layers(model)
        quietly(model.fit, num_epochs=1, display=0, eval_interval=0)
        metrics = model.get_eval_metrics()
        model._fleet.close()  # as the end of a process does
        again = hugectr.Model(solver(), reader(days), hugectr.CreateOptimizer(update_type=hugectr.Update_t.Local), None, "kept")
        add_layers(again)
        self.assertEqual(again.get_eval_metrics(), metrics)
        self.assertFalse(again.train())  # this data is trained
        again.set_source(["d1/file_list.txt"])
        self.assertTrue(again.train())

    def test_predictions_are_written_a_line_each(self):
        model = model_of(["d0"])
        quietly(model.fit, num_epochs=1, display=0, eval_interval=0)
        model.export_predictions("predictions.txt", "labels.txt")
        predictions, labels = np.loadtxt("predictions.txt"), np.loadtxt("labels.txt")
        self.assertEqual(predictions.shape, (1000,))
        self.assertAlmostEqual(cs.metrics.auc(labels, predictions), dict(model.get_eval_metrics())["AUC"], 6)

    def test_every_metric_is_measured(self):
        kinds = hugectr.MetricsType
        model = model_of(["d0"], metrics_spec={kinds.HitRate: 0.8, kinds.NDCG: 1.0, kinds.SMAPE: 0.0, kinds.AverageLoss: 0.0,
                                               kinds.AUC: 1.0}, lr=0.1)
        quietly(model.fit, num_epochs=1, display=0, eval_interval=0)
        found = model.get_eval_metrics()
        self.assertEqual([name for name, _ in found], ["HitRate", "NDCG", "SMAPE", "AverageLoss", "AUC"])
        model.export_predictions("measured.txt", "measured_labels.txt")
        predictions, labels = np.loadtxt("measured.txt"), np.loadtxt("measured_labels.txt")
        self.assertAlmostEqual(dict(found)["HitRate"], labels[predictions > 0.8].mean(), 6)
        self.assertAlmostEqual(dict(found)["SMAPE"], (2 * abs(predictions - labels) / (predictions + labels)).mean(), 6)

    def test_a_session_of_hugectr_2_3(self):
        content = json.loads(pathlib.Path("wdl.json").read_text())
        content["solver"] = {"lr_policy": "fixed", "display": 200, "max_iter": 100, "gpu": [0], "batchsize": 2048,
                             "snapshot": 10000000, "snapshot_prefix": "./", "eval_interval": 1000, "eval_batches": 20}
        content["optimizer"] = {"type": "Adam", "update_type": "Global",
                                "adam_hparam": {"learning_rate": 0.01, "beta1": 0.9, "beta2": 0.999, "epsilon": 1e-7}}
        pathlib.Path("wdl23.json").write_text(json.dumps(content))

        def session(**more):
            config = hugectr.solver_parser_helper(seed=0, batchsize=128, batchsize_eval=128, vvgpu=[[0]], use_mixed_precision=False,
                                                  scaler=1.0, i64_input_key=False, use_algorithm_search=True,
                                                  use_cuda_graph=True, repeat_dataset=False, **more)
            return hugectr.Session(config, "wdl23.json", True, "./temp_embedding")

        first = session(model_file="", embedding_files=[])
        first.get_data_reader_eval().set_file_list_source("d2/file_list_test.txt")
        iteration = 0
        for day in ("d0", "d1"):
            first.get_data_reader_train().set_file_list_source(f"{day}/file_list.txt")
            first.get_model_oversubscriber().update(f"{day}.keyset")
            while first.train():
                iteration += 1
        (name, auc), = first.evaluation()
        self.assertEqual((name, iteration), ("AUC", 32))
        self.assertGreater(auc, 0.55)
        first.download_params_to_files("./", iteration)
        stored = session(model_file="_dense_32.model", embedding_files=["0_sparse_32.model", "1_sparse_32.model"])
        stored.get_data_reader_eval().set_file_list_source("d2/file_list_test.txt")
        self.assertEqual(stored.evaluation(), [("AUC", auc)])

    def test_every_format_is_generated_and_read(self):
        kinds = hugectr.DataReaderType_t
        for kind, i64 in ((kinds.Norm, True), (kinds.Parquet, True), (kinds.Raw, False)):
            with self.subTest(kind):
                folder = f"of_{kind.name}"
                try:
                    generate(folder, kind, i64, samples=600)
                except cs.Error as error:
                    if kind is kinds.Parquet and "Parquet" in str(error):
                        continue  # a build without it
                    raise
                data = hugectr.DataReaderParams(kind, f"{folder}/file_list.txt", eval_source=f"{folder}/file_list_test.txt",
                                                check_type=hugectr.Check_t.Sum, slot_size_array=SIZES if kind is not kinds.Norm
                                                else [])
                model = hugectr.Model(solver(i64_input_key=i64), data, hugectr.CreateOptimizer(update_type=hugectr.Update_t.Local))
                add_layers(model)
                model.compile()
                steps = 0
                while steps < 5 and model.train():
                    steps += 1
                self.assertEqual(steps, 5)

    def test_several_labels_have_a_loss_each(self):
        os.makedirs("two", exist_ok=True)
        DataGenerator(DataGeneratorParams(
            format=hugectr.DataReaderType_t.Norm, label_dim=2, dense_dim=DENSE, num_slot=3, i64_input_key=False, num_files=1,
            eval_num_files=1, num_samples_per_file=2000, source="two/list.txt", eval_source="two/test.txt",
            slot_size_array=[50] * 3, check_type=hugectr.Check_t.Sum)).generate()
        saved = {}
        for weights in ((1.0, 1.0), (1.0, 0.0)):
            data = hugectr.DataReaderParams(hugectr.DataReaderType_t.Norm, ["two/list.txt"], eval_source="two/test.txt",
                                            check_type=hugectr.Check_t.Sum)
            model = hugectr.Model(solver(), data, hugectr.CreateOptimizer(update_type=hugectr.Update_t.Local))
            layer = hugectr.Layer_t
            model.add(hugectr.Input(label_dims=[1, 1], label_names=["click", "buy"], dense_dim=DENSE, dense_name="dense",
                                    data_reader_sparse_param_array=[hugectr.DataReaderSparseParam("data", 1, True, 3)]))
            model.add(hugectr.SparseEmbedding(hugectr.Embedding_t.DistributedSlotSparseEmbeddingHash, 10, 4, "sum", "rows", "data"))
            for name in ("click", "buy"):
                tops = [f"{name}_in", f"{name}_logit"]
                model.add(hugectr.DenseLayer(layer.Reshape, ["rows"], tops[:1], leading_dim=12))
                model.add(hugectr.DenseLayer(layer.InnerProduct, tops[:1], tops[1:], num_output=1))
                model.add(hugectr.DenseLayer(layer.BinaryCrossEntropyLoss, [tops[1], name], [f"{name}_loss"]))
            model.compile(["click", "buy"], weights)
            quietly(model.summary)
            shown = quietly(model.fit, num_epochs=2, display=10, eval_interval=16)
            self.assertIn("auc[buy]=", shown)
            model.save_params_to_files(f"two{weights[1]:.0f}")
            saved[weights] = np.fromfile(f"two{weights[1]:.0f}_dense_0.model", np.float32)
        self.assertFalse(np.array_equal(saved[(1.0, 1.0)], saved[(1.0, 0.0)]))

    def test_an_mlp_is_a_layer_of_the_file(self):
        activation = hugectr.Activation_t
        layer = hugectr.DenseLayer(hugectr.Layer_t.MLP, ["x", "x_gradient"], ["mlp"], num_outputs=[8, 1], use_bias=False,
                                   activations=[activation.Relu, activation.Non],
                                   compute_config=hugectr.DenseLayerComputeConfig(async_wgrad=True)).to_dict()
        self.assertEqual(layer, {"name": "mlp", "type": "MLP", "bottom": ["x", "x_gradient"], "top": "mlp", "mlp_param": {
            "num_outputs": [8, 1], "use_bias": False, "activations": ["Relu", "None"]}})
        group = hugectr.GroupDenseLayer(hugectr.GroupLayer_t.GroupFusedInnerProduct, ["x"], ["a", "b", "c"], [8, 4, 1],
                                        activation.Non).to_dict()
        self.assertEqual((group["type"], group["top"]), ("MLP", ["a", "b", "c"]))
        self.assertEqual(group["mlp_param"]["activations"], ["Relu", "Relu", "None"])

    def test_the_mlps_of_dlrm_with_a_gradient_beside(self):
        """Interaction passes a second output on to the layer after it, as HugeCTR's DLRM scripts write it."""
        for grouped in (False, True):
            with self.subTest(grouped=grouped):
                model = hugectr.Model(solver(), reader(["d0"]), hugectr.CreateOptimizer(update_type=hugectr.Update_t.Local))
                model.add(hugectr.Input(label_dim=1, label_name="label", dense_dim=DENSE, dense_name="dense",
                                        data_reader_sparse_param_array=[hugectr.DataReaderSparseParam("data", 1, True, len(SIZES))]))
                model.add(hugectr.SparseEmbedding(hugectr.Embedding_t.DistributedSlotSparseEmbeddingHash, 10, 4, "sum", "rows", "data"))
                parts = (["dense"], "low", [8, 4], hugectr.Activation_t.Relu), (["pairs", "pairs_grad"], "top", [8, 1],
                                                                               hugectr.Activation_t.Non)
                for i, (bottoms, top, widths, last) in enumerate(parts):
                    if i == 1:
                        model.add(hugectr.DenseLayer(hugectr.Layer_t.Interaction, ["low", "rows"], bottoms))
                    if grouped:
                        model.add(hugectr.GroupDenseLayer(hugectr.GroupLayer_t.GroupFusedInnerProduct, bottoms,
                                                          [f"{top}_first", top], widths, last))
                    else:
                        model.add(hugectr.DenseLayer(hugectr.Layer_t.MLP, bottoms, [top], num_outputs=widths,
                                                     activations=[hugectr.Activation_t.Relu, last]))
                model.add(hugectr.DenseLayer(hugectr.Layer_t.BinaryCrossEntropyLoss, ["top", "label"], ["loss"]))
                model.compile()
                quietly(model.fit, num_epochs=2, display=0, eval_interval=0)
                self.assertGreater(dict(model.get_eval_metrics())["AUC"], 0.55)

    def test_the_model_of_mlperf_in_small(self):
        """DLRM-DCNv2: an embedding collection, low-rank crosses and MLPs, as samples/dlrm/train.py builds it."""
        model = hugectr.Model(solver(repeat_dataset=True, use_embedding_collection=True), reader(["d0"]),
                              hugectr.CreateOptimizer(hugectr.Optimizer_t.AdaGrad, update_type=hugectr.Update_t.Local,
                                                      initial_accu_value=0.1))
        model.add(hugectr.Input(label_dim=1, label_name="label", dense_dim=DENSE, dense_name="dense",
                                data_reader_sparse_param_array=[hugectr.DataReaderSparseParam(f"data{i}", 2, False, 1)
                                                                for i in range(len(SIZES))]))
        tables = [hugectr.EmbeddingTableConfig(name=str(i), max_vocabulary_size=size, ev_size=4 if i else 8)
                  for i, size in enumerate(SIZES)]
        collection = hugectr.EmbeddingCollectionConfig(use_exclusive_keys=True,
                                                       comm_strategy=hugectr.CommunicationStrategy.Uniform)
        collection.embedding_lookup(table_config=tables, bottom_name=[f"data{i}" for i in range(len(SIZES))],
                                    top_name="sparse_embedding", combiner=["sum"] * len(SIZES))
        collection.shard(shard_matrix=[[t.name for t in tables]], shard_strategy=[("mp", [t.name for t in tables])])
        model.add(collection)
        config = hugectr.DenseLayerComputeConfig(async_wgrad=True, fuse_wb=False)
        for layer, bottoms, top, parameters in (
                ("MLP", ["dense"], "mlp1", {"num_outputs": [16, 8], "act_type": hugectr.Activation_t.Relu}),
                ("Concat", ["sparse_embedding", "mlp1"], "concat1", {}),
                ("MultiCross", ["concat1"], "interaction1", {"projection_dim": 3, "num_layers": 2}),
                ("MLP", ["interaction1"], "mlp2", {"num_outputs": [16, 1], "activations": [hugectr.Activation_t.Relu,
                                                                                          hugectr.Activation_t.Non]})):
            parameters = {**parameters, **({} if layer == "Concat" else {"compute_config": config})}
            model.add(hugectr.DenseLayer(layer_type=getattr(hugectr.Layer_t, layer), bottom_names=bottoms, top_names=[top],
                                         **parameters))
        model.add(hugectr.DenseLayer(layer_type=hugectr.Layer_t.BinaryCrossEntropyLoss, bottom_names=["mlp2", "label"],
                                     top_names=["loss"]))
        model.compile()
        model.graph_to_json("dcnv2.json")
        layers = json.loads(pathlib.Path("dcnv2.json").read_text())["layers"]
        self.assertEqual([layer["type"] for layer in layers if layer["name"] in ("mlp1", "interaction1", "mlp2")],
                         ["MLP", "MultiCross", "MLP"])
        losses = []
        for _ in range(60):
            self.assertTrue(model.train())
            losses.append(model.get_current_loss())
        self.assertLess(np.mean(losses[-10:]), np.mean(losses[:10]))
        self.assertEqual([vectors.shape[1] for _, vectors in model.get_incremental_model()], [8, 4, 4, 4, 4, 4])

    def test_callbacks_see_a_training_and_may_end_it(self):
        class Recorder(hugectr.TrainingCallback):
            def __init__(self, stops_at):
                super().__init__()
                self.stops_at, self.calls = stops_at, []

            def on_training_start(self):
                self.calls.append("start")

            def on_training_end(self, current_iter):
                self.calls.append(f"end {current_iter}")

            def on_eval_start(self, current_iter):
                self.calls.append(f"eval {current_iter}")
                return False

            def on_eval_end(self, current_iter, eval_results):
                self.calls.append(f"AUC {current_iter}")
                self.auc = eval_results["AUC"]
                return current_iter == self.stops_at

        for stops_at, last, evaluated in ((None, 21, (8, 16)), (8, 7, (8,))):
            with self.subTest(stops_at=stops_at):
                recorder = Recorder(stops_at)
                model = model_of(["d0"], repeat_dataset=True, training_callbacks=[recorder])
                quietly(model.fit, max_iter=22, eval_interval=8, display=0)
                self.assertEqual(recorder.calls, ["start", *(f"{what} {i}" for i in evaluated for what in ("eval", "AUC")),
                                                  f"end {last}"])
                plain = model_of(["d0"], repeat_dataset=True)
                shown = quietly(plain.fit, max_iter=22, eval_interval=8, display=0)
                found = re.search(rf" iter={evaluated[-1]} .* auc=([0-9.]+)", shown)
                self.assertAlmostEqual(float(found[1]), recorder.auc, 6, shown)
        epochs = Recorder(None)
        model = model_of(["d0"], training_callbacks=[epochs])
        quietly(model.fit, num_epochs=2, eval_interval=0, display=0, snapshot=20, snapshot_prefix="seen")
        self.assertEqual(epochs.calls, ["start", "end 31"])  # 2,000 samples in batches of 128
        self.assertTrue(os.path.isfile("seen_dense_20.model"))

    def test_concat_gives_each_key_its_vector(self):
        """In a row of the top: the vectors of a slot's keys, in order, and zeros after them."""
        for lists, top in ((True, "[b, 40]"), (False, "[b, 5, 8]")):
            with self.subTest(lists=lists):
                model = concatenated([("data", "concat")], 2, lists)
                model.add(hugectr.DenseLayer(hugectr.Layer_t.Reshape, ["rows"], ["flat"], leading_dim=40))
                model.add(hugectr.DenseLayer(hugectr.Layer_t.Concat, ["flat", "dense"], ["all"]))
                model.add(hugectr.DenseLayer(hugectr.Layer_t.InnerProduct, ["all"], ["logit"], num_output=1))
                model.add(hugectr.DenseLayer(hugectr.Layer_t.BinaryCrossEntropyLoss, ["logit", "label"], ["loss"]))
                model.compile()
                model.graph_to_json("concat.json")
                content = json.loads(pathlib.Path("concat.json").read_text())
                self.assertEqual(content["layers"][0]["sparse"][1]["sequence_lengths"], 2)
                layers = json.loads(run_cistern("train", "concat.json", "--dry-run", "--json"))["layers"]
                self.assertEqual(next(layer["shape"] for layer in layers if "rows" in layer["top"]), [top])
                self.assertTrue(all(model.train() for _ in range(3)))

    def test_the_samples_bst(self):
        """HugeCTR's samples/bst, of both kinds: a Transformer block over ten items before a target."""
        os.makedirs("bst", exist_ok=True)
        DataGenerator(DataGeneratorParams(
            format=hugectr.DataReaderType_t.Norm, label_dim=1, dense_dim=1, num_slot=23, i64_input_key=True, num_files=1,
            eval_num_files=1, num_samples_per_file=1000, source="bst/list.txt", eval_source="bst/test.txt",
            slot_size_array=[50] * 23, check_type=hugectr.Check_t.Sum)).generate()
        for pooled in (True, False):
            with self.subTest(pooled=pooled):
                model = bst_model(pooled)
                quietly(model.summary)
                shown = quietly(model.fit, max_iter=40, display=20, eval_interval=20, snapshot=1000000, snapshot_prefix="bst")
                self.assertIn("loss=", shown)
                before = model.get_eval_metrics()
                model.save_params_to_files("bst_saved", 40)
                model.load_dense_weights("bst_saved_dense_40.model")
                model.load_sparse_weights([f"bst_saved{i}_sparse_40.model" for i in range(5)])
                model.set_source(["bst/list.txt"])
                self.assertEqual(model.get_eval_metrics(), before)
                self.assertTrue(model.train())

    def test_wrong_arguments_are_named(self):
        table = hugectr.EmbeddingTableConfig("t", 10, 4)
        twice = hugectr.EmbeddingCollectionConfig()
        twice.embedding_lookup(table, "a", "x", "sum")
        for pattern, wrong in (
                ("1 ps_types, but 2 sparse_models", lambda: hugectr.CreateETC([hugectr.TrainPSType_t.Staged], ["a", "b"])),
                ("2 hmem_cache_configs for 1", lambda: hugectr.CreateETC([hugectr.TrainPSType_t.Cached], ["a"], ["."],
                                                                        [hugectr.CreateHMemCache(1, 0.5, 0)] * 2)),
                ("from 0 to 1, not 5", lambda: hugectr.CreateHMemCache(1, 5, 0)),
                ("num_blocks=0: expected at least 1", lambda: hugectr.CreateHMemCache(0, 0.5, 0)),
                ("max_num_evict=-1: expected at least 0", lambda: hugectr.CreateHMemCache(1, 0.5, -1)),
                ("sizes for 3 slots", lambda: DataGeneratorParams(hugectr.DataReaderType_t.Norm, 1, 1, 3, False, "a", "b", [1])),
                ("num_epochs is missing", lambda: model_of(["d0"]).fit()),
                ("2 top_name_list, but 1 num_outputs", lambda: hugectr.GroupDenseLayer(
                    hugectr.GroupLayer_t.GroupFusedInnerProduct, ["x"], ["a", "b"], [1])),
                ("no Input", lambda: hugectr.Model(solver(), reader(["d0"])).compile()),
                ("not int", lambda: hugectr.Model(solver(), reader(["d0"])).add(3)),
                ("table 't' is looked up twice", lambda: twice.embedding_lookup(table, "b", "y", "sum")),
                ("combiner 'max' is not supported\nfix: use sum, mean, concat",
                 lambda: hugectr.EmbeddingCollectionConfig().embedding_lookup(table, "a", "x", "max")),
                ("looked up with concat and without", lambda: concatenated([("a", "sum"), ("a", "concat")], 2)),
                (r"nnz_per_slot of 'a' is \[2, 3\]", lambda: concatenated([("a", "concat")], [2, 3])),
                ("2 tables, 1 inputs", lambda: hugectr.EmbeddingCollectionConfig().embedding_lookup([table] * 2, "a", "x", "sum")),
                ("1 names for 2 labels", lambda: hugectr.Input(label_dims=[1, 1], label_names=["a"])),
                ("no loss has the label 'x'", lambda: model_of(["d0"]).compile(["x"], [1.0])),
                ("nothing to save", lambda: model_of(["d0"]).save_params_to_files("x")),
                ("no embedding 'x'", lambda: model_of(["d0"]).freeze_embedding("x")),
                ("no argument 'batch_size'\nfix: is it batchsize", lambda: solver(batch_size=64)),
                ("end_lr is nan", lambda: solver(end_lr=float("nan"))),
                (r"^the model: layers\[1\]\.sparse_embedding_hparam\.embedding_vec_size", lambda: concatenated([("a", "sum")], 2, size=0).compile()),
                ("init_param is not supported", lambda: hugectr.EmbeddingTableConfig("t", 10, 4, init_param=1)),
                ("2 sparse_models, and the model has 0", lambda: hugectr.Model(solver(), reader(["d0"]), None, cache("x")).compile())):
            with self.subTest(pattern), self.assertRaisesRegex(cs.UsageError, pattern):
                wrong()
        for name, fix in (("inference", "cs.serve.open"), ("NoSuchName", "docs/hugectr.md lists what is")):
            with self.assertRaisesRegex(AttributeError, f"cistern_ps.hugectr has no {name}: .*{fix}"):
                getattr(hugectr, name)
        self.assertEqual(solver(use_embedding_collection=True, a_word_of_next_year=1).batchsize, 128)


if __name__ == "__main__":
    unittest.main()
