// SPDX-License-Identifier: Apache-2.0
#include "text/chat/template_dialect.h"

#include <gtest/gtest.h>

#include <string>

namespace baton {
namespace {

TemplateDialect Of(const std::string& source) { return FindDialect(**ChatTemplate::Parse(source)); }

// The dialect of a template that outputs each message's content `c` with the expression `write`.
TemplateDialect OfContent(const std::string& write) {
  return Of("{% for m in messages %}{% set c = m.content %}<{{ m.role }}>" + write + "{% endfor %}");
}

TEST(TemplateDialectTest, FindsTheContentForm) {
  const std::string parts = "{% for p in c %}{{ p.text }}{% endfor %}";
  for (const char* role : {"user", "system", "developer", "assistant", "tool"}) {
    const auto form = [&](const std::string& write) { return OfContent(write).ContentOf(role); };
    EXPECT_EQ(form("{{ c }}"), ContentForm::kText) << role << ": a list would print as a Python list";
    EXPECT_EQ(form("{{ c|tojson }}"), ContentForm::kText) << role;
    EXPECT_EQ(form("{{ c|trim }}"), ContentForm::kText) << role;
    EXPECT_EQ(form("{{ '' + c }}"), ContentForm::kText) << role << ": a list would fail";
    EXPECT_EQ(form("{% if c is string %}{{ c }}{% else %}" + parts + "{% endif %}"), ContentForm::kTextOrParts) << role;
    EXPECT_EQ(form(parts), ContentForm::kParts) << role << ": a string would print nothing";
    EXPECT_EQ(form("{{ c[0].text }}"), ContentForm::kOnePart) << role << ": a second part would be lost";
    EXPECT_EQ(form("{% if c is string %}{{ c }}{% else %}{{ c[0].text }}{% endif %}"), ContentForm::kText) << role;
    EXPECT_EQ(form("no content"), ContentForm::kText) << role;
    EXPECT_EQ(form("{{ raise_exception('never') }}"), ContentForm::kText) << role;
  }
}

TEST(TemplateDialectTest, OtherRolesUseTheUsersForm) {
  const std::string parts = "{% for p in c %}{{ p.text }}{% endfor %}";
  const auto form = [](const std::string& write) { return OfContent(write).ContentOf("critic"); };
  EXPECT_EQ(form(parts), ContentForm::kParts) << "a string would print nothing";
  EXPECT_EQ(form("{{ c[0].text }}"), ContentForm::kOnePart);
  EXPECT_EQ(form("{{ c }}"), ContentForm::kText);
  EXPECT_EQ(form("{% if c is string %}{{ c }}{% else %}" + parts + "{% endif %}"), ContentForm::kText)
      << "kText is safe for every template that accepts strings";
  EXPECT_EQ(TemplateDialect().ContentOf("critic"), ContentForm::kText);
}

TEST(TemplateDialectTest, FormsMayDifferByRole) {
  // FindDialect tries the role `tool` in a conversation with a user message, which must be in parts here.
  const TemplateDialect dialect =
      Of("{% for m in messages %}{% if m.role == 'user' %}{{ m.content[0].text + '' }}{% elif m.role != 'assistant' %}"
         "{{ '' + m.content }}{% endif %}{% endfor %}");
  EXPECT_EQ(dialect.ContentOf("user"), ContentForm::kOnePart);
  EXPECT_EQ(dialect.ContentOf("system"), ContentForm::kText);
  EXPECT_EQ(dialect.ContentOf("tool"), ContentForm::kText);
}

TEST(TemplateDialectTest, FindsTheFormOfToolCallArguments) {
  const auto as_text = [](const std::string& write) {
    return Of("{% for m in messages %}{% for c in m.tool_calls or [] %}" + write + "{% endfor %}{% endfor %}")
        .arguments_as_text;
  };
  EXPECT_FALSE(as_text("{{ c.function.arguments|tojson }}"));
  EXPECT_FALSE(as_text("{{ c.function.name }}"));
  EXPECT_TRUE(as_text("{{ c.function.arguments }}"));
  EXPECT_TRUE(as_text("{{ '' + c.function.arguments }}"));
}

}  // namespace
}  // namespace baton
