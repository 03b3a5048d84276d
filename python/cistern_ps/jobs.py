"""The trainer of JSON models, exports, and commits on disk: what the program `cistern` does, from Python.

They run in this process, by the code of the program, so they give the same bits as it.
"""

from __future__ import annotations

import contextlib
import json
import os
import pathlib
import sys
import tempfile
from typing import TYPE_CHECKING, Any, Callable, Dict, Iterator, List, Optional, Sequence, Union

from . import _native
from .arguments import instance, integer
from .errors import Error, UsageError
from .fleet import Fleet
from .frames import Data, Frame, files_of, is_frame

if TYPE_CHECKING:
    import pandas as pd

    from .model import Model

Path = Union[str, "os.PathLike[str]"]
Config = Union[Path, Dict[str, Any], "Model"]
Settings = Optional[Dict[str, Any]]
Progress = Union[bool, Callable[[str], None], None]


@contextlib.contextmanager
def _model_file(config: Config) -> Iterator[str]:
    """The path of a model file, written for the time of a call if the model is an object."""
    if isinstance(config, (str, os.PathLike)):
        yield os.fspath(config)
        return
    if not isinstance(config, dict) and not hasattr(config, "to_dict"):
        instance("config", config, str, "the path of a model file, its content as a dict, or a cs.model.Model")
    content = config if isinstance(config, dict) else config.to_dict()
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder, (getattr(config, "name", None) or "model") + ".json")
        path.write_text(json.dumps(content, indent=2))
        try:
            yield str(path)
        except Error as error:  # the file is not the user's
            raise error.in_words_of(str(path), "the model") from None


@contextlib.contextmanager
def _table_or_model(config: Any) -> Iterator[str]:
    """The path of a table or of a model file; what is in memory is in a file for the time of the block."""
    if is_frame(config):
        with files_of("config", config) as files:
            yield files[0]
    else:
        with _model_file(config) as path:
            yield path


def _set_list(settings: Settings) -> List[str]:
    return [f"{k}={json.dumps(v)}" for k, v in (settings or {}).items()]


class Run:
    """A training that has ended: its summary, its metrics, and where its model is.

    Attributes:
        config, settings: what was trained.
        summary: a dict: iterations, samples, loss, auc ...; also readable as attributes (`run.auc`).
        out: the folder; None for a fleet of this process without one.
    """

    def __init__(self, config: Config, settings: Settings, summary: Dict[str, Any], out: Optional[Path]):
        self.config = config
        self.settings = dict(settings or {})
        self.summary = summary
        self.out = None if out is None else pathlib.Path(out)

    @property
    def metrics(self) -> "pd.DataFrame":
        """metrics.jsonl as a DataFrame: one row an event (train, pass, eval, final)."""
        import pandas as pd

        return pd.DataFrame(self.events)

    @property
    def events(self) -> List[Dict[str, Any]]:
        """The lines of metrics.jsonl."""
        if self.out is None:
            raise UsageError("this run has no folder", "train with out=...")
        return [json.loads(line) for line in (self.out / "metrics.jsonl").read_text().splitlines()]

    @property
    def state(self) -> pathlib.Path:
        """The folder of the run's commits, for `commits`, `diff`, `verify` and `export`."""
        if self.out is None:
            raise UsageError("this run has no folder", "train with out=...")
        return self.out / "state"

    def plot(self, ax: Any = None) -> Any:
        """Loss and AUC over samples (needs matplotlib). Returns the axes."""
        import matplotlib.pyplot as plt

        frame = self.metrics
        ax = ax or plt.subplots()[1]
        train = frame[frame.event == "train"]
        ax.plot(train["samples"], train["loss"], label="loss")
        ax.set_xlabel("samples")
        ax.set_ylabel("training loss")
        if "auc" in frame and frame.auc.notna().any():
            scored = frame[(frame.event == "eval") & frame.auc.notna()]
            right = ax.twinx()
            right.plot(scored["samples"], scored["auc"], "o-", color="tab:orange", label="AUC")
            right.set_ylabel("AUC")
        return ax

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or name not in self.__dict__.get("summary", {}):
            raise AttributeError(f"a run has no {name!r}; it has {', '.join(self.__dict__.get('summary', {}))}")
        return self.summary[name]

    def __repr__(self) -> str:
        s = self.summary
        auc = f", AUC {s['auc']:.6f}" if s.get("auc") is not None else ""
        where = f", {self.out}" if self.out else ""
        return f"<Run: {s['iterations']} iterations, {s['samples']} samples, loss {s['loss']:.6f}{auc}{where}>"


@contextlib.contextmanager
def _lines(shown: Progress) -> "Iterator[Optional[Callable[[str], None]]]":
    """What gets a job's lines. True: one line that is written over, in terminals and notebooks."""
    if callable(shown) or not shown:
        yield shown or None
        return
    width = 0

    def write(line: str) -> None:
        nonlocal width
        sys.stderr.write("\r" + line[:160].ljust(width))
        sys.stderr.flush()
        width = min(len(line), 160)

    try:
        yield write
    finally:
        if width:
            sys.stderr.write("\n")


def train(
    config: Union[Config, Run, Sequence[Path], Frame],
    out: Optional[Path] = None,
    set: Settings = None,
    fleet: Optional[Fleet] = None,
    servers: Optional[str] = None,
    embedded_servers: int = 1,
    memory_limit_mb: float = 0,
    resume: bool = False,
    overwrite: bool = False,
    threads: int = 0,
    device: str = "cpu",
    progress: Progress = False,
    further: bool = False,
    stream: Optional[Path] = None,
    once: bool = False,
    publish: Optional[Path] = None,
    more: Union[Path, Sequence[Path], Frame, None] = None,
    table: Settings = None,
) -> Run:
    """Trains a JSON model, or a table of text: the bits of `cistern train`.

    config: a table (*.csv, *.tsv, *.jsonl, *.parquet, a folder or pattern of such files, a list of them, or a data frame
    of pandas, polars or Arrow), of which model, recipe and data are made in `out`; or a model file, its content as a dict, a `cistern_ps.model.Model`, or an
    earlier run, as a `Run` or its folder, which is then also the default of `out`. set: values that replace those of the
    model, by path: {"solver.num_epochs": 2}. out: the run's folder. Servers: those of this process's `fleet`, those at
    `servers` ("host:port,..."), or `embedded_servers` in the training's process, which keep their commits in
    out/state. memory_limit_mb: memory of each of these for rows and the pushes of a pass, in MiB; rows that few passes
    need stay in the files of out/state; 0: every row is in memory. progress: True for a line in the terminal or notebook, or a function that gets each line.

    further: trains rows that the servers at `servers` already hold (`cistern train --continue`); without it such
    servers are refused.

    stream: trains on data that never ends: each file that appears in a folder, once, or the messages of
    "kafka://HOST:PORT/TOPIC". If `out` holds a run, continues it. once: ends once all data that is there is trained.

    more: data sets or tables with which a finished run continues, such as the next day's (`cistern train --more`).

    table: options of a table, as the flags of `cistern train TABLE`, with underscores: {"label": "click", "dense": ["age"],
    "negative_rate": 0.1, "model": "dcnv2", "test": "test.csv"} ... With `more`: valid, test, negative_rate, add_column of its tables.

    publish: a serving folder that is kept at the newest commit, while the training runs and at its end. Not for servers
    elsewhere, and not with `fleet`.

    Ctrl-C stops the training with its state saved; `resume=True` continues it, and `stream` does so by itself.
    """
    if isinstance(config, Run):
        config, set = (config.config, {**config.settings, **(set or {})}) if config.out is None else (config.out, set)
    source, serving = _place("stream", stream), _place("publish", publish)
    files: List[str] = []
    if isinstance(config, (list, tuple)):
        if not config:
            raise UsageError("config: an empty list", "name a model file, the folder of a run, or tables")
        config, *files = _paths(config)
    with _table_or_model(config) as path, files_of("more", more) as new, _lines(progress) as on_line:
        is_table = _native.is_table(path)
        if fleet is not None:
            if is_table or table or more is not None:
                raise UsageError("text becomes data in the folder of a run (fleet=)",
                                 "train with out=... in place of fleet=..., or cs.init and cs.data.convert it first")
            if serving:
                raise UsageError("publishing follows the commits that a run keeps in its own folder (publish=, fleet=)",
                                 "train with out=... in place of fleet=..., or export the fleet's rows: cs.export(fleet, ...)")
            try:
                text = _native.train(fleet.native, path, _set_list(set), "" if out is None else os.fspath(out), threads,
                                     resume, False, False, source, once, on_line)
            finally:
                fleet.refresh()  # also after Ctrl-C: the tables are there
            return Run(config, set, json.loads(text), out)
        if out is None and os.path.isdir(path) and not is_table:
            out = path
        if out is None:
            raise UsageError("train needs out, the folder of the run", 'cs.train("model.json", out="runs/a")')
        text = _native.train_run(path, _set_list(set), os.fspath(out), servers or "", embedded_servers, memory_limit_mb,
                                 resume or more is not None, overwrite, further, threads, device, source, once, serving, files,
                                 new, dict(table or {}), on_line)
        if is_table or os.path.isdir(path):
            config = pathlib.Path(out, "model.json")
    return Run(config, set, json.loads(text), out)


def init(table: Union[Path, Sequence[Path], Frame], out: Path = ".", overwrite: bool = False, progress: Progress = False,
         **options: Any) -> Dict[str, Any]:
    """Inspects a table of text, and writes OUT/model.json and OUT/recipe.json for it: `cistern init`.

    table: a file, a folder or pattern, several files, or a data frame. options: as those of a table in `train`. Returns what the
    columns hold and what becomes of them; `cs.data.convert(table, OUT + "/data/train", recipe=OUT, part="train")` and
    the same for "test" make the data of the model.
    """
    with files_of("table", table) as files, _lines(progress) as on_line:
        return json.loads(_native.init_run(files, os.fspath(out), overwrite, options, on_line))


def _place(name: str, value: Optional[Path]) -> str:
    """A path or URL as text; "" for None."""
    if value is None:
        return ""
    return os.fspath(value if isinstance(value, os.PathLike) else instance(name, value, str, "a path"))


def _folder(model: Union[Run, Path, None]) -> str:
    """The folder of a trained model; "" for none."""
    if isinstance(model, Run):
        model = model.out
    return "" if model is None else os.fspath(model)


def _paths(data: Union[Path, Sequence[Path], None]) -> List[str]:
    if data is None:
        return []
    return [os.fspath(d) for d in ([data] if isinstance(data, (str, os.PathLike)) else data)]


def _names(given: Union[str, Sequence[str]]) -> List[str]:
    return [given] if isinstance(given, str) else list(given)


def _of_run(config: Union[Config, Run], settings: Settings, model: Any) -> "tuple[Config, Dict[str, Any], Any]":
    if isinstance(config, Run):
        return config.config, {**config.settings, **(settings or {})}, model if model is not None else config
    return config, dict(settings or {}), model


def evaluate(config: Union[Config, Run], model: Union[Run, Path, None] = None, data: Data = None,
             set: Settings = None, fleet: Optional[Fleet] = None, servers: Optional[str] = None,
             threads: int = 0, add_column: Union[str, Sequence[str]] = ()) -> Dict[str, Any]:
    """AUC, log loss and the model's metrics on data, as a dict.

    config: the model, or a `Run`, which also says where its rows are. model: a run's folder or a saved model; or
    `fleet`, or `servers`. data: file lists or data files; or rows with labels, which the recipe of the run encodes: tables
    (*.csv, *.parquet ...), a data frame of pandas, polars or Arrow, or dicts; None: the model's eval_source. add_column:
    columns that the model reads and that such rows lack; they are empty in all of them.
    """
    config, settings, model = _of_run(config, set, model)
    with _model_file(config) as path, files_of("data", data) as files:
        if fleet is not None:
            return json.loads(_native.evaluate(fleet.native, path, _set_list(settings), threads, files, ""))
        return json.loads(_native.evaluate_run(path, _set_list(settings), _folder(model), servers or "", files,
                                               _names(add_column), threads))


def predict(config: Union[Config, Run], model: Union[Run, Path, None] = None, data: Data = None,
            output: Optional[Path] = None, set: Settings = None, servers: Optional[str] = None,
            threads: int = 0, keep: Union[str, Sequence[str]] = (), add_column: Union[str, Sequence[str]] = ()) -> Any:
    """Probabilities of every sample of `data`, in its order: float32 arrays (label, prediction).

    data: as in `evaluate`, with or without labels: without any, label is None; where a row has none, it is -1. output: a
    file for the predictions, as of `cistern predict`: lines label<TAB>prediction, or, of rows of text, a table (*.csv,
    *.tsv, *.parquet) of the columns in `keep` and the prediction. Other arguments as in `evaluate`.
    """
    config, settings, model = _of_run(config, set, model)
    if data is None:
        raise UsageError("predict needs data, the samples to predict", 'cs.predict(run, data="test.csv")')
    with _model_file(config) as path, files_of("data", data) as files:
        labels, predictions = _native.predict_run(path, _set_list(settings), _folder(model), servers or "", files,
                                                  _names(add_column), "" if output is None else os.fspath(output),
                                                  _names(keep), threads)
    if predictions.shape[1] > 1:
        return labels, predictions
    return None if labels is None else labels[:, 0], predictions[:, 0]


def plan(config: Config, set: Settings = None, rows: Optional[Dict[str, int]] = None, servers: int = 1, workers: int = 1,
         memory_limit_mb: int = 0, progress: Progress = False) -> Dict[str, Any]:
    """What a model will need: rows, memory of servers and workers, disk.

    rows: expected, by table; of the others: what the model declares, or the keys of its training data. servers,
    workers: how many there will be. memory_limit_mb: for rows on each server; 0: every row is in memory. progress: as in
    `train`.
    """
    counts = {name: integer(f"rows[{name!r}]", _whole(count)) for name, count in (rows or {}).items()}
    with _model_file(config) as path, _lines(progress) as on_line:
        return json.loads(_native.plan_run(path, _set_list(set), counts, integer("servers", servers),
                                           integer("workers", workers),
                                           integer("memory_limit_mb", memory_limit_mb), on_line))


def _whole(count: Any) -> Any:
    return int(count) if isinstance(count, float) and count.is_integer() else count  # 1e9


def export(source: Union[Run, Path, Fleet], out: Path, form: str = "serving", config: Optional[Config] = None,
           set: Settings = None, rows: Optional[str] = None, check: Union[Path, Sequence[Path], None] = None,
           max_auc_loss: Optional[float] = None, progress: Progress = False, **options: Any) -> Dict[str, Any]:
    """Writes a trained model in another form, for serving without servers or for other programs.

    source: a `Run` or its folder; a state folder, or one commit of it ("runs/b/state@3"); or a fleet: one made by `connect`, or by
    `local` with a folder. config: the model; a `Run` brings its own; otherwise the default is the model.json beside the
    state. form: "serving" (for `cistern_ps.serve` and `cistern serve`), "hugectr", "onnx", "xbox", "cache" or
    "dnn_plugin". rows: precision of rows in the form serving: "float32", "float16", "bfloat16" or "int8". check,
    max_auc_loss: data on which the export must not lose more AUC. progress: as in `train`. Other options are the flags
    of `cistern export FORM`, with underscores; version="v3" is `--form v3` of the form hugectr.

    Ctrl-C ends it, and what is half written is removed.
    """
    if isinstance(source, Run):
        config, set = config or source.config, {**source.settings, **(set or {})}
        source = source.state
    state, servers = "", ""
    if isinstance(source, Fleet) and source.servers:
        servers = source.servers
    else:
        state = source.state if isinstance(source, Fleet) else os.fspath(source)
        if os.path.isfile(os.path.join(state, "metrics.jsonl")):  # the folder of a run
            state = os.path.join(state, "state")
        beside = os.path.join(os.path.dirname(os.path.abspath(state)), "model.json")
        if config is None and os.path.isfile(beside):
            config = beside
    if config is None:
        raise UsageError("export needs config, the model", "cs.export(source, out, config='model.json')")
    given = {"out": out, "precision": rows, "check_data": check, "max_auc_loss": max_auc_loss}
    options.update({name: value for name, value in given.items() if value is not None})
    with _model_file(config) as path, _lines(progress) as on_line:
        return json.loads(_native.export_run("serving" if form == "cistern" else form, path, _set_list(set), state, servers,
                                             options, on_line))


def commits(folder: Union[Path, Fleet]) -> List[Dict[str, Any]]:
    """The commits in a state folder, oldest first: number, pass, rows and digest of each table, and whether it is whole."""
    path = folder.state if isinstance(folder, Fleet) else folder
    return json.loads(_native.commits_run(os.fspath(path)))["commits"]


def diff(a: Path, b: Path, rows: int = 5, threads: int = 0, progress: Progress = False) -> Dict[str, Any]:
    """What differs between two commits ("runs/b/state@2") or saved models: rows added, removed, changed, by table.

    rows: how many keys of each kind to show. progress: as in `train`. Its "same" is whether nothing differs.
    """
    with _lines(progress) as on_line:
        return json.loads(_native.diff_run(os.fspath(a), os.fspath(b), integer("rows", rows), integer("threads", threads),
                                           on_line))


def _places(places: Union[Path, int, Sequence[Path]]) -> List[str]:
    if isinstance(places, (str, int, os.PathLike)):
        places = [str(places) if isinstance(places, int) else places]
    return [os.fspath(place) for place in places]


def save_changes(state: Path, since: Union[int, Path, Sequence[Path]], out: Path, format: str = "text",
                 gzip: bool = False, progress: Progress = False) -> Dict[str, Any]:
    """Saves what a model has changed since an earlier state into a new folder: an increment.

    state: a folder of commits ("runs/b/state", "runs/b/state@12") or a saved model: the new state. since: a commit of
    `state`; or the folder of a saved model, followed by its increments; or the last increment. format: "text" or
    "binary". Reads row files only: a training or servers go on. Returns the rows, keys removed, and both states.
    """
    with _lines(progress) as on_line:
        return json.loads(_native.save_changes_run(os.fspath(state), _places(since), os.fspath(out), format, bool(gzip),
                                                   on_line))


def apply_changes(base: Path, increments: Union[Path, Sequence[Path]], out: Path,
                  progress: Progress = False) -> Dict[str, Any]:
    """Writes the saved model that `base`, a saved model or a commit, is after its increments, in order.

    Increments that the base has are left out; a gap or another base raises. The rows are checked against digests.
    """
    with _lines(progress) as on_line:
        return json.loads(_native.apply_changes_run(os.fspath(base), _places(increments), os.fspath(out), on_line))


def read_changes(folder: Path) -> Dict[str, Any]:
    """The rows of an increment: {table: (keys int64 [n], weights float32 [n, dim], removed keys int64 [m])}.

    Keys of 2^63 and above are negative, as int64. Optimizer state is left out. Of a ctr table, the weights are its embedx,
    zeros where a row has none; statistics and embed_w are left out.
    """
    return dict(_native.read_changes(os.fspath(folder)))


def verify(folder: Path, commit: Optional[int] = None, all: bool = False, threads: int = 0,
           progress: Progress = False) -> Dict[str, Any]:
    """Reads every byte of a commit (the newest), of all commits, or of a saved model, and compares the digests.

    progress: as in `train`. Raises CheckpointError if something is damaged; its `report` is what was found.
    """
    with _lines(progress) as on_line:
        return json.loads(_native.verify_run(os.fspath(folder), integer("commit", commit or 0), all,
                                             integer("threads", threads), on_line))


def status(servers: str, digest: bool = False) -> Dict[str, Any]:
    """The state and the contents of each server of a fleet. digest: also the digests of its tables; reads every row.

    An error, of a server that is down or of servers that are not one fleet, has the status in its `report`.
    """
    return json.loads(_native.status_run(servers, digest))
