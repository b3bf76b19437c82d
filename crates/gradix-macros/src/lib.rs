//! The macro behind `gradix_run::program!`, which is where it is used from.

use gradix::diagnostic::Diagnostic;
use gradix_view::{Source, render};
use proc_macro::TokenStream;
use syn::{Error, LitStr, parse_macro_input};

/// A program that is checked when the crate is compiled: `program!("input x[N]; y[i] = x[i]^2")` is a
/// `&'static gradix_run::Compiled`. What is wrong with the program is an error of the compiler, with the place in its text.
///
/// The program is read once, when it is first used.
#[proc_macro]
pub fn program(tokens: TokenStream) -> TokenStream {
    let literal = parse_macro_input!(tokens as LitStr);
    let text = literal.value();
    match gradix::syntax::parse(&text).and_then(|ast| gradix::resolve(&ast, &[])) {
        Ok(_) => EXPANSION.replace("LITERAL", &literal.token().to_string()).parse().expect("it is an expression"),
        Err(errors) => refused(&literal, text, &errors).to_compile_error().into(),
    }
}

const EXPANSION: &str = r#"{
    static PROGRAM: ::std::sync::LazyLock<::gradix_run::Compiled> =
        ::std::sync::LazyLock::new(|| ::gradix_run::compile(LITERAL).expect("the compiler has checked it"));
    &*PROGRAM
}"#;

/// All errors as one: compilers in general mark no part of a literal, so that the message has the line and the place.
fn refused(literal: &LitStr, text: String, errors: &[Diagnostic]) -> Error {
    let source = Source { name: "program".into(), text };
    let message = render(errors, &source, false);
    let marked = errors.first().and_then(|error| error.labels.first()).and_then(|label| {
        let token = literal.token();
        // A literal with escapes has its text nowhere.
        let start = token.to_string().find(&source.text)?;
        token.subspan(start + label.span.start..start + label.span.end)
    });
    Error::new(marked.unwrap_or(literal.span()), message.trim_end())
}
