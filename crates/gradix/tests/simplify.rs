//! Simplification: each rule by the smallest program that shows it.
//!
//! The case is the program before, `simple` the program after. Values before and after are compared by the tests of
//! whole programs in `gradix-run`; here the text is.

mod support;

use gradix::program::print;
use gradix::program::{Program, verify};
use gradix::syntax::parse;
use gradix::{resolve, simplify};
use support::Case;

#[test]
fn cases() {
    support::check("simplify", |case, section| {
        assert_eq!(section, "simple");
        let simple = simplify(&program(case)).unwrap();
        assert_eq!(verify(&simple), Ok(()), "{}", case.title);
        let text = print::print(&simple).unwrap();
        assert!(simplify(&simple).unwrap() == simple, "`{}` is simplified further", case.title);
        let again = resolve(&parse(&text).unwrap(), &[]).unwrap().program;
        assert!(again == simple, "`{}` prints as another program:\n{text}", case.title);
        text
    });
}

fn program(case: &Case) -> Program {
    let resolved = parse(&case.source).and_then(|ast| resolve(&ast, &[]));
    resolved.unwrap_or_else(|errors| panic!("`{}`\n{}", case.title, support::render(&case.source, &errors))).program
}
