#include "test/siege/lies.h"

#include <limits>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"

namespace cistern {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;

constexpr int kMaxDepth = 6;
constexpr int kMany = 10000;

const std::vector<std::pair<std::string, std::string>>& Texts() {
  static const std::vector<std::pair<std::string, std::string>> texts = {
      {"empty", ""},
      {"..", ".."},
      {"../x", "../x"},
      {"/etc/passwd", "/etc/passwd"},
      {"state", "state"},
      {"a NUL", std::string("a\0b", 3)},
      {"%s%n", "%s%n%s%n"},
      {"an escape", "\x1b[2J\r\n[fake] line"},
      {"4 kB", std::string(4096, 'x')},
      {"1 MB", std::string(1 << 20, 'y')}};
  return texts;
}

template <class T>
std::vector<T> Integers() {
  using Limits = std::numeric_limits<T>;
  std::vector<T> all = {0, 1, 2, Limits::max(), static_cast<T>(Limits::max() - 1), Limits::min()};
  if (Limits::is_signed) all.push_back(static_cast<T>(-1));
  for (const int bit : {16, 24, 31, 32, 34, 48, 63}) {
    if (bit >= Limits::digits) continue;
    all.push_back(T{1} << bit);
    all.push_back((T{1} << bit) + 1024);
  }
  return all;
}

template <class T>
std::vector<T> Floats() {
  using Limits = std::numeric_limits<T>;
  return {0,
          T{-1},
          Limits::quiet_NaN(),
          Limits::infinity(),
          -Limits::infinity(),
          Limits::max(),
          Limits::denorm_min()};
}

// Walks one message below `root_` and changes one field at a time.
class Liar {
 public:
  using Tell = std::function<void(const std::string&, const Message&)>;
  Liar(Message* root, const Tell& tell) : root_(root), tell_(tell) {}

  void Walk(Message* at, const std::string& path, int depth) {
    const auto* descriptor = at->GetDescriptor();
    for (int i = 0; i < descriptor->field_count(); ++i) {
      const FieldDescriptor* field = descriptor->field(i);
      const std::string name = absl::StrCat(path, path.empty() ? "" : ".", field->name());
      if (field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE) {
        WalkMessage(at, field, name, depth);
      } else {
        WalkScalar(at, field, name);
      }
    }
  }

 private:
  // Applies the change to `at`, calls `tell`, and restores `at`.
  template <class Change>
  void Try(Message* at, const std::string& what, const Change& change) {
    const std::unique_ptr<Message> before(at->New());
    before->CopyFrom(*at);
    change();
    tell_(what, *root_);
    at->CopyFrom(*before);
  }

  void WalkMessage(Message* at, const FieldDescriptor* field, const std::string& name, int depth) {
    const Reflection& of = *at->GetReflection();
    Try(at, name + " unset", [&] { of.ClearField(at, field); });
    const std::unique_ptr<Message> before(at->New());
    before->CopyFrom(*at);
    if (field->is_repeated()) {
      Try(at, absl::StrCat(name, " x ", kMany), [&] {
        for (int i = 0; i < kMany; ++i) {
          Message* added = of.AddMessage(at, field);
          if (i > 0 || of.FieldSize(*at, field) > 1) {
            added->CopyFrom(of.GetRepeatedMessage(*at, field, 0));
          }
        }
      });
      if (of.FieldSize(*at, field) == 0) of.AddMessage(at, field);
      if (depth < kMaxDepth) {
        Walk(of.MutableRepeatedMessage(at, field, 0), name + "[0]", depth + 1);
      }
    } else if (depth < kMaxDepth) {
      Walk(of.MutableMessage(at, field), name, depth + 1);
    }
    at->CopyFrom(*before);
  }

  template <class T, class Set, class Add>
  void Values(Message* at, const FieldDescriptor* field, const std::string& name,
              const std::vector<T>& values, const Set& set, const Add& add) {
    const Reflection& of = *at->GetReflection();
    for (const T& value : values) {
      Try(at, absl::StrCat(name, " = ", value), [&] {
        field->is_repeated() ? (of.*add)(at, field, value) : (of.*set)(at, field, value);
      });
    }
    if (!field->is_repeated()) return;
    Try(at, absl::StrCat(name, " x ", kMany), [&] {
      for (int i = 0; i < kMany; ++i) (of.*add)(at, field, values[i % values.size()]);
    });
  }

  void WalkScalar(Message* at, const FieldDescriptor* field, const std::string& name) {
    const Reflection& of = *at->GetReflection();
    using R = Reflection;
    switch (field->cpp_type()) {
      case FieldDescriptor::CPPTYPE_UINT64:
        return Values(at, field, name, Integers<uint64_t>(), &R::SetUInt64, &R::AddUInt64);
      case FieldDescriptor::CPPTYPE_UINT32:
        return Values(at, field, name, Integers<uint32_t>(), &R::SetUInt32, &R::AddUInt32);
      case FieldDescriptor::CPPTYPE_INT64:
        return Values(at, field, name, Integers<int64_t>(), &R::SetInt64, &R::AddInt64);
      case FieldDescriptor::CPPTYPE_INT32:
        return Values(at, field, name, Integers<int32_t>(), &R::SetInt32, &R::AddInt32);
      case FieldDescriptor::CPPTYPE_FLOAT:
        return Values(at, field, name, Floats<float>(), &R::SetFloat, &R::AddFloat);
      case FieldDescriptor::CPPTYPE_DOUBLE:
        return Values(at, field, name, Floats<double>(), &R::SetDouble, &R::AddDouble);
      case FieldDescriptor::CPPTYPE_ENUM:
        return Values(at, field, name, std::vector<int>{0, 1, 2, 3, 99, -1, 1 << 30},
                      &R::SetEnumValue, &R::AddEnumValue);
      case FieldDescriptor::CPPTYPE_BOOL:
        return Try(at, name + " flipped", [&] { of.SetBool(at, field, !of.GetBool(*at, field)); });
      case FieldDescriptor::CPPTYPE_STRING:
        return WalkText(at, field, name);
      case FieldDescriptor::CPPTYPE_MESSAGE:
        return;
    }
  }

  void WalkText(Message* at, const FieldDescriptor* field, const std::string& name) {
    const Reflection& of = *at->GetReflection();
    for (const auto& [what, text] : Texts()) {
      Try(at, absl::StrCat(name, " = ", what), [&] {
        field->is_repeated() ? of.AddString(at, field, text) : of.SetString(at, field, text);
      });
    }
    if (!field->is_repeated()) return;
    Try(at, absl::StrCat(name, " x ", kMany), [&] {
      for (int i = 0; i < kMany; ++i) of.AddString(at, field, absl::StrCat("name", i % 5000));
    });
  }

  Message* const root_;
  const Tell& tell_;
};

}  // namespace

void ForEachLie(const Message& base,
                const std::function<void(const std::string& what, const Message& lie)>& tell) {
  const std::unique_ptr<Message> root(base.New());
  root->CopyFrom(base);
  Liar(root.get(), tell).Walk(root.get(), "", 0);
}

}  // namespace cistern
