//! What the chores want to know of a Rust file: its code without comments and literals, which lines
//! are tests, the modules that it declares, and how long its functions are.

use proc_macro2::{Span, TokenStream, TokenTree};
use std::ops::Range;
use syn::spanned::Spanned;
use syn::visit::{self, Visit};
use syn::{
    Attribute, Block, Expr, Ident, ImplItemFn, Item, ItemConst, ItemEnum, ItemFn, ItemImpl,
    ItemMod, ItemStatic, ItemStruct, ItemTrait, ItemType, ItemUse, Lit, Meta, Signature,
    TraitItemFn, UseTree,
};

/// A Rust file, read.
#[derive(Default)]
pub(crate) struct Source {
    pub(crate) lines: Vec<Line>,
    /// The modules that it declares without a body.
    pub(crate) modules: Vec<Module>,
    pub(crate) functions: Vec<Function>,
    pub(crate) uses: Vec<Use>,
    pub(crate) tokens: TokenStream,
}

/// One line of a Rust file.
pub(crate) struct Line {
    /// The line as it stands.
    pub(crate) text: String,
    /// The line with comments, strings and characters blanked out, column by column.
    pub(crate) code: String,
    /// Whether it belongs to a test.
    pub(crate) is_test: bool,
    /// The columns of its strings and characters.
    literals: Vec<Range<usize>>,
}

/// `mod name;`
pub(crate) struct Module {
    pub(crate) name: String,
    /// The modules with a body that it stands in.
    pub(crate) inside: Vec<String>,
    /// Where its file is, if the declaration says so.
    pub(crate) path: Option<String>,
    pub(crate) is_test: bool,
}

/// One name of a `use` item.
pub(crate) struct Use {
    /// What it is called here; `*` for all names of a module.
    pub(crate) name: String,
    /// Its path, each part with its line.
    pub(crate) path: Vec<(String, usize)>,
}

/// A function with a body.
pub(crate) struct Function {
    pub(crate) name: String,
    /// Its first line, from 1.
    pub(crate) line: usize,
    /// Its lines from `fn` to the closing brace that hold code.
    pub(crate) length: usize,
}

impl Line {
    /// Whether there is anything but blanks and comments.
    pub(crate) fn is_code(&self) -> bool {
        let in_literal = !self.literals.is_empty() && !self.text.trim().is_empty();
        in_literal || !self.code.trim().is_empty()
    }

    /// Whether the character at `column` (from 0) belongs to a string or is one.
    pub(crate) fn is_literal(&self, column: usize) -> bool {
        self.literals.iter().any(|columns| columns.contains(&column))
    }
}

impl Source {
    /// Reads a file. What the compiler would refuse has no tokens or no items here.
    pub(crate) fn read(text: &str) -> Source {
        let tokens: TokenStream = text.parse().unwrap_or_default();
        let lines = Marker::new(text).lines(&tokens);
        let mut source = Source { lines, tokens: tokens.clone(), ..Source::default() };
        if let Ok(file) = syn::parse2::<syn::File>(tokens) {
            Finder { source: &mut source, inside: Vec::new() }.visit_file(&file);
        }
        source
    }

    /// Its lines that hold code of the product: no tests, comments and blanks.
    pub(crate) fn code_lines(&self) -> usize {
        self.lines.iter().filter(|line| line.is_code() && !line.is_test).count()
    }
}

/// Tells code from the rest, character by character.
struct Marker {
    text: Vec<Vec<char>>,
    code: Vec<Vec<char>>,
    literals: Vec<Vec<Range<usize>>>,
}

impl Marker {
    fn new(text: &str) -> Marker {
        let text: Vec<Vec<char>> = text.lines().map(|line| line.chars().collect()).collect();
        let code = text.iter().map(|line| vec![' '; line.len()]).collect();
        let literals = vec![Vec::new(); text.len()];
        Marker { text, code, literals }
    }

    fn lines(mut self, tokens: &TokenStream) -> Vec<Line> {
        self.mark(tokens);
        let lines = self.text.into_iter().zip(self.code).zip(self.literals);
        let line = |((text, code), literals): ((Vec<char>, Vec<char>), _)| {
            let (text, code) = (text.into_iter().collect(), code.into_iter().collect());
            Line { text, code, is_test: false, literals }
        };
        lines.map(line).collect()
    }

    fn mark(&mut self, tokens: &TokenStream) {
        for token in tokens.clone() {
            match token {
                TokenTree::Group(group) if self.copy(group.span_open()) => {
                    self.mark(&group.stream());
                    self.copy(group.span_close());
                }
                TokenTree::Literal(literal) if literal.to_string().contains(['"', '\'']) => {
                    self.mark_literal(literal.span());
                }
                TokenTree::Group(_) => {}
                token => {
                    self.copy(token.span());
                }
            }
        }
    }

    /// Copies a token to the code of its line, unless it stands for a comment of documentation.
    fn copy(&mut self, span: Span) -> bool {
        let (start, end) = (span.start(), span.end());
        let text = &self.text[start.line - 1];
        if matches!(text[start.column..], ['/', '/' | '*', ..]) {
            return false;
        }
        let columns = start.column..end.column;
        self.code[start.line - 1][columns.clone()].copy_from_slice(&text[columns]);
        true
    }

    fn mark_literal(&mut self, span: Span) {
        let (start, end) = (span.start(), span.end());
        for number in start.line..=end.line {
            let from = if number == start.line { start.column } else { 0 };
            let to = if number == end.line { end.column } else { usize::MAX };
            self.literals[number - 1].push(from..to);
        }
    }
}
/// Looks for tests, modules and functions.
struct Finder<'a> {
    source: &'a mut Source,
    inside: Vec<String>,
}

impl Finder<'_> {
    fn mark_test(&mut self, attributes: &[Attribute], span: Span) {
        if attributes.iter().any(is_for_tests) {
            for line in &mut self.source.lines[span.start().line - 1..span.end().line] {
                line.is_test = true;
            }
        }
    }

    fn function(&mut self, signature: &Signature, body: &Block) {
        let line = signature.fn_token.span.start().line;
        let last = body.brace_token.span.close().end().line;
        let length = self.source.lines[line - 1..last].iter().filter(|line| line.is_code()).count();
        self.source.functions.push(Function { name: signature.ident.to_string(), line, length });
    }
}

impl<'ast> Visit<'ast> for Finder<'_> {
    fn visit_item(&mut self, item: &'ast Item) {
        if let Item::Const(ItemConst { attrs, .. })
        | Item::Enum(ItemEnum { attrs, .. })
        | Item::Fn(ItemFn { attrs, .. })
        | Item::Impl(ItemImpl { attrs, .. })
        | Item::Mod(ItemMod { attrs, .. })
        | Item::Static(ItemStatic { attrs, .. })
        | Item::Struct(ItemStruct { attrs, .. })
        | Item::Trait(ItemTrait { attrs, .. })
        | Item::Type(ItemType { attrs, .. })
        | Item::Use(ItemUse { attrs, .. }) = item
        {
            self.mark_test(attrs, item.span());
        }
        visit::visit_item(self, item);
    }

    fn visit_item_mod(&mut self, module: &'ast ItemMod) {
        let name = module.ident.to_string();
        if module.content.is_some() {
            self.inside.push(name);
            visit::visit_item_mod(self, module);
            self.inside.pop();
        } else {
            let inside = self.inside.clone();
            let path = module.attrs.iter().find_map(path_of);
            let is_test = self.source.lines[module.ident.span().start().line - 1].is_test;
            self.source.modules.push(Module { name, inside, path, is_test });
        }
    }

    fn visit_item_use(&mut self, item: &'ast ItemUse) {
        flatten(&item.tree, &mut Vec::new(), &mut self.source.uses);
    }

    fn visit_item_fn(&mut self, function: &'ast ItemFn) {
        self.function(&function.sig, &function.block);
        visit::visit_item_fn(self, function);
    }

    fn visit_impl_item_fn(&mut self, function: &'ast ImplItemFn) {
        self.mark_test(&function.attrs, function.span());
        self.function(&function.sig, &function.block);
        visit::visit_impl_item_fn(self, function);
    }

    fn visit_trait_item_fn(&mut self, function: &'ast TraitItemFn) {
        if let Some(body) = &function.default {
            self.function(&function.sig, body);
        }
        visit::visit_trait_item_fn(self, function);
    }
}

/// The names that a `use` item brings, those in braces one by one.
fn flatten(tree: &UseTree, path: &mut Vec<(String, usize)>, uses: &mut Vec<Use>) {
    let part = |ident: &Ident| (ident.to_string(), ident.span().start().line);
    let mut push = |part, name: &dyn ToString| {
        let path = path.iter().cloned().chain(part).collect();
        uses.push(Use { name: name.to_string(), path });
    };
    match tree {
        UseTree::Path(first) => {
            path.push(part(&first.ident));
            flatten(&first.tree, path, uses);
            path.pop();
        }
        UseTree::Group(group) => group.items.iter().for_each(|tree| flatten(tree, path, uses)),
        UseTree::Name(name) => push(Some(part(&name.ident)), &name.ident),
        UseTree::Rename(name) => push(Some(part(&name.ident)), &name.rename),
        UseTree::Glob(_) => push(None, &"*"),
    }
}

/// `#[cfg(test)]` or `#[test]`.
fn is_for_tests(attribute: &Attribute) -> bool {
    match &attribute.meta {
        Meta::List(list) => list.path.is_ident("cfg") && list.tokens.to_string() == "test",
        Meta::Path(path) => path.is_ident("test"),
        Meta::NameValue(_) => false,
    }
}

/// `#[path = "..."]`
fn path_of(attribute: &Attribute) -> Option<String> {
    let Meta::NameValue(value) = &attribute.meta else { return None };
    let Expr::Lit(literal) = &value.value else { return None };
    let Lit::Str(path) = &literal.lit else { return None };
    value.path.is_ident("path").then(|| path.value())
}

/// The place of `word` in `code` where it begins: no letter, digit or `_` joins it on the left.
pub(crate) fn find_word(code: &str, word: &str) -> Option<usize> {
    code.match_indices(word)
        .map(|(at, _)| at)
        .find(|&at| !code[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code(text: &str) -> Vec<String> {
        let lines = Source::read(text).lines.into_iter();
        lines.map(|line| line.code.trim_end().to_owned()).collect()
    }

    #[test]
    fn comments_and_literals_are_blanked_and_columns_kept() {
        let blank = " ".repeat("\"std::env\"".len());
        assert_eq!(code("let a = \"std::env\"; // std::time\n"), [format!("let a = {blank};")]);
        assert_eq!(code("a /* b /* c */ d */ e\n"), ["a                   e"]);
        assert_eq!(code("//! a\n/// b\n#[doc = \"c\"]\nfn f() {}\n")[..2], ["", ""]);
        assert_eq!(code("/** a\nb */\nfn é() {}\n"), ["", "", "fn é() {}"]);
    }

    #[test]
    fn quotes_inside_characters_and_raw_strings_do_not_open_strings() {
        assert_eq!(code("f('\"', b, '\\'', 'x')"), ["f(   , b,     ,    )"]);
        assert_eq!(code("a(r#\"x\"y\"#, br\"\\\", z)"), ["a(        ,      , z)"]);
        assert_eq!(code("fn f<'a>(r#type: &'a str)"), ["fn f<'a>(r#type: &'a str)"]);
    }

    #[test]
    fn a_string_may_go_over_several_lines() {
        assert_eq!(code("a \"x\ny\\\"\nz\" b"), ["a", "", "   b"]);
        let source = Source::read("const A: &str = \"x\n\ny\";\n");
        assert_eq!(source.lines.iter().map(Line::is_code).collect::<Vec<_>>(), [true, false, true]);
        assert!(source.lines[2].is_literal(0) && !source.lines[2].is_literal(2));
    }

    #[test]
    fn what_is_compiled_for_tests_alone_is_no_code_of_the_product() {
        let text = "//! x\nfn f() {}\n\n#[cfg(test)]\nmod tests {\n    fn g() {}\n}\n// y\n\
                    impl A {\n    #[cfg(test)]\n    fn h() {\n    }\n}\n#[test]\nfn i() {}\n";
        let source = Source::read(text);
        let tests = source.lines.iter().enumerate().filter(|(_, line)| line.is_test);
        let tests: Vec<usize> = tests.map(|(index, _)| index + 1).collect();
        assert_eq!(tests, [4, 5, 6, 7, 10, 11, 12, 14, 15]);
        assert_eq!(source.code_lines(), 3);
    }

    #[test]
    fn modules_without_a_body_are_found_with_what_is_said_of_them() {
        let text = "mod a;\n#[cfg(test)]\n#[path = \"../b.rs\"]\nmod b;\nmod c { pub mod d; }\n";
        let found = Source::read(text).modules;
        let names: Vec<_> = found.iter().map(|module| module.name.as_str()).collect();
        assert_eq!(names, ["a", "b", "d"]);
        assert!(found[1].is_test && !found[0].is_test);
        assert_eq!(found[1].path.as_deref(), Some("../b.rs"));
        assert_eq!(found[2].inside, ["c"]);
    }

    #[test]
    fn names_in_braces_are_used_one_by_one() {
        let found = Source::read("use std::{\n    env,\n    io::{self as i, *},\n};\n").uses;
        let shown = found.iter().map(|used| {
            let parts = used.path.iter().map(|(part, line)| format!("{part}:{line} "));
            format!("{}= {}", parts.collect::<Vec<_>>().concat(), used.name)
        });
        let expected = ["std:1 env:2 = env", "std:1 io:3 self:3 = i", "std:1 io:3 = *"];
        assert_eq!(shown.collect::<Vec<_>>(), expected);
    }

    #[test]
    fn a_function_is_as_long_as_its_lines_of_code() {
        let text = "/// x\n#[must_use]\npub fn f(\n    a: u8,\n) -> u8 {\n    // y\n\n    a\n}\n\
                    trait T {\n    fn g();\n    fn h() {}\n}\nimpl A {\n    fn i() {\n    }\n}\n";
        let found = Source::read(text).functions;
        let lengths: Vec<_> = found.iter().map(|f| (f.name.as_str(), f.line, f.length)).collect();
        assert_eq!(lengths, [("f", 3, 5), ("h", 12, 1), ("i", 15, 2)]);
    }

    #[test]
    fn a_word_is_found_only_where_it_begins() {
        assert_eq!(find_word("my_serde::x; serde::y", "serde"), Some(13));
        assert_eq!(find_word("pprintln!()", "println!"), None);
    }
}
