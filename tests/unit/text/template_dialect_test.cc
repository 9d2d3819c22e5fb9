#include "text/chat/template_dialect.h"

#include <gtest/gtest.h>

#include <string>

namespace baton {
namespace {

TemplateDialect Of(const std::string& source) { return FindDialect(**ChatTemplate::Parse(source)); }

// A template that writes every message's content by `write`, which speaks of `c`.
TemplateDialect OfContent(const std::string& write) {
  return Of("{% for m in messages %}{% set c = m.content %}<{{ m.role }}>" + write + "{% endfor %}");
}

TEST(TemplateDialectTest, ContentThatIsATextOrParts) {
  const std::string parts = "{% for p in c %}{{ p.text }}{% endfor %}";
  for (const char* role : {"user", "system", "developer", "assistant", "tool"}) {
    const auto form = [&](const std::string& write) { return OfContent(write).ContentOf(role); };
    EXPECT_EQ(form("{{ c }}"), ContentForm::kText) << role << ": it would write a list as Python does";
    EXPECT_EQ(form("{{ c|tojson }}"), ContentForm::kText) << role;
    EXPECT_EQ(form("{{ c|trim }}"), ContentForm::kText) << role;
    EXPECT_EQ(form("{{ '' + c }}"), ContentForm::kText) << role << ": with a list it would fail";
    EXPECT_EQ(form("{% if c is string %}{{ c }}{% else %}" + parts + "{% endif %}"), ContentForm::kTextOrParts) << role;
    EXPECT_EQ(form(parts), ContentForm::kParts) << role << ": it goes through a text's letters, which have no text";
    EXPECT_EQ(form("{{ c[0].text }}"), ContentForm::kOnePart) << role << ": it would lose the second";
    EXPECT_EQ(form("{% if c is string %}{{ c }}{% else %}{{ c[0].text }}{% endif %}"), ContentForm::kText) << role;
    EXPECT_EQ(form("no content"), ContentForm::kText) << role;
    EXPECT_EQ(form("{{ raise_exception('never') }}"), ContentForm::kText) << role;
  }
}

TEST(TemplateDialectTest, RolesThatWereNotTriedAreLikeTheUsers) {
  const std::string parts = "{% for p in c %}{{ p.text }}{% endfor %}";
  const auto form = [](const std::string& write) { return OfContent(write).ContentOf("critic"); };
  EXPECT_EQ(form(parts), ContentForm::kParts) << "a text would be lost";
  EXPECT_EQ(form("{{ c[0].text }}"), ContentForm::kOnePart);
  EXPECT_EQ(form("{{ c }}"), ContentForm::kText);
  EXPECT_EQ(form("{% if c is string %}{{ c }}{% else %}" + parts + "{% endif %}"), ContentForm::kText)
      << "the safer of the two";
  EXPECT_EQ(TemplateDialect().ContentOf("critic"), ContentForm::kText);
}

TEST(TemplateDialectTest, RolesMayDiffer) {
  // The conversation in which the tool's answer is tried has a user's message, which must be in parts here.
  const TemplateDialect dialect =
      Of("{% for m in messages %}{% if m.role == 'user' %}{{ m.content[0].text + '' }}{% elif m.role != 'assistant' %}"
         "{{ '' + m.content }}{% endif %}{% endfor %}");
  EXPECT_EQ(dialect.ContentOf("user"), ContentForm::kOnePart);
  EXPECT_EQ(dialect.ContentOf("system"), ContentForm::kText);
  EXPECT_EQ(dialect.ContentOf("tool"), ContentForm::kText);
}

TEST(TemplateDialectTest, ArgumentsOfCalls) {
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
