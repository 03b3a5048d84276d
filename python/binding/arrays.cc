#include "python/binding/arrays.h"

#include <nanobind/stl/string.h>

#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace cistern::python {
namespace {

std::string TypeName(nb::handle object) {
  return nb::cast<std::string>(nb::str(nb::handle(object.type()).attr("__name__")));
}

std::string DtypeName(nb::dlpack::dtype type) {
  const char* kinds[] = {"int", "uint", "float", "handle", "bfloat", "complex", "bool"};
  const char* kind = type.code < std::size(kinds) ? kinds[type.code] : "type";
  return absl::StrCat(kind, static_cast<int>(type.bits));
}

// An argument that must be an array: its name, what is expected of it, and the type of its
// elements.
struct Argument {
  nb::handle object;
  const char* name;
  std::string expected;
  const char* element;  // a type of numpy
};

// The fix comes from cistern_ps/arguments.py, which knows the libraries that make arrays.
[[noreturn]] void Refuse(const Argument& argument, const std::string& got) {
  const nb::object fix = nb::module_::import_("cistern_ps.arguments")
                             .attr("array_fix")(argument.object, argument.element);
  const auto text = nb::cast<std::string>(fix);
  throw nb::type_error(absl::StrCat(argument.name, ": expected ", argument.expected, "; got ", got,
                                    text.empty() ? "" : ": ", text)
                           .c_str());
}

// JAX's and TensorFlow's arrays never change, but DLPack of theirs does not say so.
bool IsImmutable(nb::handle object) {
  const auto module = nb::cast<std::string>(object.type().attr("__module__"));
  if (module == "numpy" || module == "torch") return false;  // asked by nanobind; never so
  try {
    return nb::cast<bool>(
        nb::module_::import_("builtins").attr("memoryview")(object).attr("readonly"));
  } catch (const nb::python_error&) {
    return true;
  }
}

// Imports an array without a copy.
nb::ndarray<> Import(const Argument& argument, bool writes) {
  const nb::handle object = argument.object;
  // numpy's masked arrays would be read without their mask.
  if (nb::hasattr(object, "mask")) Refuse(argument, TypeName(object));
  nb::ndarray<> array;
  bool ok = nb::try_cast(object, array, /*convert=*/false);
  if (!ok && !writes) {
    nb::ndarray<nb::ro> fixed;
    ok = nb::try_cast(object, fixed, /*convert=*/false);
    if (ok) array = nb::ndarray<>(fixed.handle());
  }
  if (!ok) {
    PyErr_Clear();
    const bool is_array = nb::hasattr(object, "__dlpack__") || nb::hasattr(object, "__array__");
    Refuse(argument,
           absl::StrCat(TypeName(object),
                        is_array && writes ? " that is read-only or of another kind" : ""));
  }
  if (writes && IsImmutable(object)) Refuse(argument, TypeName(object) + " that is read-only");
  if (array.device_type() != nb::device::cpu::value) {
    Refuse(argument, TypeName(object) + " on a device");
  }
  return array;
}

bool IsContiguous(const nb::ndarray<>& array) {
  int64_t stride = 1;
  for (size_t i = array.ndim(); i-- > 0;) {
    if (array.shape(i) != 1 && array.stride(i) != stride && array.size() > 0) return false;
    stride *= static_cast<int64_t>(array.shape(i));
  }
  return true;
}

template <class T>
ArrayView<T> ViewOf(nb::ndarray<> array) {
  ArrayView<T> view;
  for (size_t i = 0; i < array.ndim(); ++i) {
    view.shape.push_back(static_cast<int64_t>(array.shape(i)));
  }
  view.span = absl::Span<T>(static_cast<T*>(array.data()), array.size());
  view.owner = std::move(array);
  return view;
}

void CheckContiguous(const nb::ndarray<>& array, const Argument& argument) {
  if (!IsContiguous(array)) Refuse(argument, "one with strides");
}

std::string ShapeText(const std::vector<int64_t>& shape) {
  return absl::StrCat("[", absl::StrJoin(shape, ", "), "]");
}

template <class T>
ArrayView<const T> Integers(nb::handle object, const char* name, int bits) {
  const Argument argument = {
      object, name, absl::StrCat("int", bits, " or uint", bits, " of one dimension, contiguous"),
      bits == 64 ? "int64" : "int32"};
  nb::ndarray<> array = Import(argument, /*writes=*/false);
  const nb::dlpack::dtype type = array.dtype();
  const bool is_integer = type.code == static_cast<uint8_t>(nb::dlpack::dtype_code::Int) ||
                          type.code == static_cast<uint8_t>(nb::dlpack::dtype_code::UInt);
  if (!is_integer || type.bits != bits || type.lanes != 1) Refuse(argument, DtypeName(type));
  if (array.ndim() != 1) {
    Refuse(argument, absl::StrCat(static_cast<int>(array.ndim()), " dimensions"));
  }
  CheckContiguous(array, argument);
  return ViewOf<const T>(std::move(array));
}

nb::ndarray<> Floats(nb::handle object, const char* name, bool writes) {
  const Argument argument = {object, name, "float32, contiguous", "float32"};
  nb::ndarray<> array = Import(argument, writes);
  if (array.dtype() != nb::dtype<float>()) Refuse(argument, DtypeName(array.dtype()));
  CheckContiguous(array, argument);
  return array;
}

// The capsule that frees `owner`.
template <class T>
nb::capsule Owner(std::unique_ptr<T> owner) {
  return nb::capsule(owner.release(), [](void* p) noexcept { delete static_cast<T*>(p); });
}

template <class Array, class T>
Array Adopt(std::vector<T> values, const std::vector<size_t>& shape) {
  auto owner = std::make_unique<std::vector<T>>(std::move(values));
  void* data = owner->data();
  const nb::capsule capsule = Owner(std::move(owner));
  return Array(data, shape.size(), shape.data(), capsule);
}

}  // namespace

ArrayView<const Key> KeysOf(nb::handle object, const char* name) {
  return Integers<Key>(object, name, 64);
}

ArrayView<const uint32_t> CountsOf(nb::handle object, const char* name) {
  return Integers<uint32_t>(object, name, 32);
}

ArrayView<const float> FloatsOf(nb::handle object, const char* name, size_t columns) {
  ArrayView<const float> view = ViewOf<const float>(Floats(object, name, /*writes=*/false));
  if (columns == 0) return view;
  if (view.shape.size() == 2 && view.shape[1] == static_cast<int64_t>(columns)) return view;
  throw nb::value_error(
      absl::StrCat(name, ": expected the shape [n, ", columns, "]; got ", ShapeText(view.shape))
          .c_str());
}

ArrayView<float> FloatsOut(nb::handle object, const char* name, size_t rows, size_t columns) {
  ArrayView<float> view = ViewOf<float>(Floats(object, name, /*writes=*/true));
  const std::vector<int64_t> shape = {static_cast<int64_t>(rows), static_cast<int64_t>(columns)};
  if (view.shape == shape) return view;
  throw nb::value_error(
      absl::StrCat(name, ": expected the shape ", ShapeText(shape), "; got ", ShapeText(view.shape))
          .c_str());
}

NumpyFloats NewFloats(std::vector<size_t> shape) {
  size_t size = 1;
  for (const size_t n : shape) size *= n;
  std::unique_ptr<float[]> memory(new float[size]);  // not cleared: the caller fills it
  float* data = memory.get();
  const nb::capsule owner(memory.release(),
                          [](void* p) noexcept { delete[] static_cast<float*>(p); });
  return NumpyFloats(data, shape.size(), shape.data(), owner);
}

NumpyFloats ToNumpy(std::vector<float> values, std::vector<size_t> shape) {
  return Adopt<NumpyFloats>(std::move(values), shape);
}

NumpyKeys ToNumpy(std::vector<Key> keys) {
  const std::vector<size_t> shape = {keys.size()};
  return Adopt<NumpyKeys>(std::move(keys), shape);
}

NumpyCounts ToNumpy(std::vector<uint32_t> counts) {
  const std::vector<size_t> shape = {counts.size()};
  return Adopt<NumpyCounts>(std::move(counts), shape);
}

}  // namespace cistern::python
