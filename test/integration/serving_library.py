"""libcistern_serve through ctypes, and the samples of a model as its arguments."""

import ctypes
import json
import pathlib

from programs import BIN, Samples


class Input(ctypes.Structure):
    _fields_ = [("keys", ctypes.POINTER(ctypes.c_uint64)), ("key_num", ctypes.c_size_t),
                ("offsets", ctypes.POINTER(ctypes.c_uint32)), ("offset_num", ctypes.c_size_t)]


class Batch(ctypes.Structure):
    _fields_ = [("samples", ctypes.c_size_t), ("dense", ctypes.POINTER(ctypes.c_float)),
                ("dense_num", ctypes.c_size_t), ("inputs", ctypes.POINTER(Input)),
                ("input_num", ctypes.c_size_t)]


class Weights(ctypes.Structure):
    _fields_ = [("weights", ctypes.POINTER(ctypes.c_float)), ("weight_num", ctypes.c_size_t)]


def _library():
    library = ctypes.CDLL(str(pathlib.Path(BIN).parent / "lib/libcistern_serve.so"))
    library.cistern_open.restype = ctypes.c_void_p
    library.cistern_open.argtypes = [ctypes.c_char_p, ctypes.c_char_p, ctypes.c_char_p,
                                     ctypes.c_size_t]
    library.cistern_predict.argtypes = [
        ctypes.c_void_p, ctypes.POINTER(Batch), ctypes.POINTER(ctypes.c_float), ctypes.c_size_t,
        ctypes.POINTER(ctypes.c_uint64), ctypes.c_char_p, ctypes.c_size_t]
    library.cistern_predict_weighted.argtypes = [
        ctypes.c_void_p, ctypes.POINTER(Batch), ctypes.POINTER(Weights), ctypes.POINTER(ctypes.c_float),
        ctypes.c_size_t, ctypes.POINTER(ctypes.c_uint64), ctypes.c_char_p, ctypes.c_size_t]
    library.cistern_follow.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_size_t]
    for name in ("cistern_describe", "cistern_stats"):
        getattr(library, name).argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_size_t]
        getattr(library, name).restype = ctypes.c_size_t
    library.cistern_close.argtypes = [ctypes.c_void_p]
    return library


class ServeError(Exception):
    def __init__(self, code, message):
        super().__init__(f"{code}: {message}")
        self.code, self.message = code, message


class Model:
    """An open serving folder, for a `with` statement."""

    def __init__(self, folder, options=""):
        self.library = _library()
        self.error = ctypes.create_string_buffer(512)
        self.model = self.library.cistern_open(str(folder).encode(), options.encode(), self.error,
                                               512)
        if not self.model:
            raise ServeError(None, self.error.value.decode())

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.library.cistern_close(self.model)

    def describe(self):
        return self._json(self.library.cistern_describe)

    def stats(self):
        return self._json(self.library.cistern_stats)

    def _json(self, call):
        text = ctypes.create_string_buffer(call(self.model, None, 0) + 64)
        call(self.model, text, len(text))
        return json.loads(text.value)

    def follow(self):
        code = self.library.cistern_follow(self.model, self.error, 512)
        if code < 0:
            raise ServeError(code, self.error.value.decode())
        return code == 1

    def predict(self, samples):
        """samples: rows of programs.Samples. Returns (predictions, commit)."""
        keys, offsets, dense = [], [0], []
        for _, features, slots in samples:
            dense += features
            for slot in slots:
                keys += slot
                offsets.append(len(keys))
        return self.predict_arrays(len(samples), dense, keys, offsets)

    def predict_arrays(self, samples, dense, keys, offsets, outputs=None, weights=None):
        return self.predict_inputs(samples, dense, [(keys, offsets, weights)], outputs)

    def predict_inputs(self, samples, dense, inputs, outputs=None):
        """inputs: (keys, offsets, weights) of each; if no weights are given, by cistern_predict."""
        def array(kind, values):
            return (kind * max(1, len(values)))(*values)

        given = (Input * len(inputs))(*(Input(array(ctypes.c_uint64, keys), len(keys), array(ctypes.c_uint32, offsets), len(offsets))
                                        for keys, offsets, _ in inputs))
        weights = (Weights * len(inputs))(*(Weights(array(ctypes.c_float, w or []), len(w or [])) for *_, w in inputs))
        batch = Batch(samples, array(ctypes.c_float, dense), len(dense), given, len(inputs))
        outputs = samples if outputs is None else outputs
        out = (ctypes.c_float * max(1, outputs))()
        commit = ctypes.c_uint64()
        after = (out, outputs, ctypes.byref(commit), self.error, 512)
        if all(w is None for *_, w in inputs):
            code = self.library.cistern_predict(self.model, ctypes.byref(batch), *after)
        else:
            code = self.library.cistern_predict_weighted(self.model, ctypes.byref(batch), weights, *after)
        if code != 0:
            raise ServeError(code, self.error.value.decode())
        return list(out)[:outputs], commit.value


def predictions_of(file):
    """The predictions of a file that `cistern predict` wrote."""
    return [float(line.split("\t")[1]) for line in file.read_text().splitlines()]


def text_of(prediction):
    return f"{prediction:.9g}"


__all__ = ["Model", "ServeError", "Samples", "predictions_of", "text_of"]
