// SPDX-License-Identifier: Apache-2.0
// A Value is a value of a running template: a scalar, or a pointer to an object that the render's Heap owns. Cheap to
// copy; valid as long as the Heap.
//
// Strings are valid UTF-8. Lists and dicts are immutable; only namespaces change.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

namespace baton::jinja {

struct BoundMethod;
struct Dict;
struct Function;
struct List;
struct Loop;
struct Macro;

enum class Kind : uint8_t {
  kUndefined,
  kNone,
  kBool,
  kInt,
  kFloat,
  kString,
  kList,  // lists and tuples
  kDict,
  kNamespace,
  kLoop,
  kFunction,
  kMethod,
  kMacro,
};

// Returns Python's name of the type.
std::string_view TypeName(Kind kind);

class Value {
 public:
  Value() = default;  // undefined

  static Value None() { return Value(Kind::kNone); }
  static Value Bool(bool value) { return Value(value); }
  static Value Int(int64_t value) { return Value(value); }
  static Value Float(double value) { return Value(value); }
  // The heap, the template or the inputs must own `text`.
  static Value String(std::string_view text) {
    Value result(Kind::kString);
    result.text_ = text.data();
    result.size_ = text.size();
    return result;
  }
  // The value of a missing variable `name`, or of a missing attribute `name` of a value of kind `owner`. Error messages
  // use `name` and `owner`.
  static Value Undefined(std::string_view name, Kind owner = Kind::kUndefined) {
    Value result = String(name);
    result.kind_ = Kind::kUndefined;
    result.owner_ = owner;
    return result;
  }
  static Value Of(const List* list) { return Value(Kind::kList, list); }
  static Value Of(const Dict* dict) { return Value(Kind::kDict, dict); }
  static Value OfNamespace(const Dict* attributes) { return Value(Kind::kNamespace, attributes); }
  static Value Of(const Loop* loop) { return Value(Kind::kLoop, loop); }
  static Value Of(const Function* function) { return Value(Kind::kFunction, function); }
  static Value Of(const BoundMethod* method) { return Value(Kind::kMethod, method); }
  static Value Of(const Macro* macro) { return Value(Kind::kMacro, macro); }

  Kind kind() const { return kind_; }
  bool is(Kind kind) const { return kind_ == kind; }
  bool IsNumber() const { return is(Kind::kInt) || is(Kind::kFloat) || is(Kind::kBool); }
  bool IsInteger() const { return is(Kind::kInt) || is(Kind::kBool); }  // in Python, a bool is an integer

  // The kind must match.
  bool AsBool() const { return bool_; }
  std::string_view AsString() const { return {text_, size_}; }
  const List& AsList() const { return *static_cast<const List*>(object_); }
  const Dict& AsDict() const { return *static_cast<const Dict*>(object_); }  // kDict or kNamespace
  const Loop& AsLoop() const { return *static_cast<const Loop*>(object_); }
  const Function& AsFunction() const { return *static_cast<const Function*>(object_); }
  const BoundMethod& AsMethod() const { return *static_cast<const BoundMethod*>(object_); }
  const Macro& AsMacro() const { return *static_cast<const Macro*>(object_); }
  int64_t AsInt() const { return is(Kind::kBool) ? static_cast<int64_t>(bool_) : int_; }       // needs IsInteger()
  double AsFloat() const { return is(Kind::kFloat) ? float_ : static_cast<double>(AsInt()); }  // needs IsNumber()
  const void* identity() const { return object_; }                                             // objects only
  Kind owner() const { return owner_; }                                                        // kUndefined only

 private:
  explicit Value(Kind kind) : kind_(kind) {}
  explicit Value(bool value) : kind_(Kind::kBool), bool_(value) {}
  explicit Value(int64_t value) : kind_(Kind::kInt), int_(value) {}
  explicit Value(double value) : kind_(Kind::kFloat), float_(value) {}
  Value(Kind kind, const void* object) : kind_(kind), object_(object) {}

  Kind kind_ = Kind::kUndefined;
  Kind owner_ = Kind::kUndefined;
  union {
    bool bool_;
    int64_t int_;
    double float_;
    const char* text_;
    const void* object_ = nullptr;
  };
  size_t size_ = 0;  // length of text_
};

struct List {
  std::vector<Value> items;
  bool is_tuple = false;
};

struct Dict {
  std::vector<std::pair<Value, Value>> entries;  // in order of insertion

  // Returns the value of a string key, or null.
  const Value* Find(std::string_view key) const {
    for (const auto& [name, value] : entries) {
      if (name.is(Kind::kString) && name.AsString() == key) return &value;
    }
    return nullptr;
  }
};

// The variable `loop` in a for statement.
struct Loop {
  std::vector<Value> items;
  size_t index0 = 0;
};

struct BoundMethod {
  Value receiver;
  std::string_view name;
};

}  // namespace baton::jinja
