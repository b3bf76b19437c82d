//! Recurrences in disguise: each form by the smallest program that shows it.
//!
//! The case is the program before, `scanned` the program after, with all sizes assumed to be 4096; `scanned derivative`
//! is the same of its derivative. Values before and after are compared by the tests of whole programs in `gradix-run`;
//! here the text is.

mod support;

use gradix::program::print;
use gradix::program::{Program, verify};
use gradix::syntax::parse;
use gradix::{derive, resolve, scan};
use support::Case;

#[test]
fn cases() {
    support::check("scan", |case, section| {
        let program = match section {
            "scanned" => program(case),
            "scanned derivative" => derive(&program(case), &Default::default()).unwrap().program,
            other => panic!("`{}` has a section `{other}`", case.title),
        };
        let scanned = scanned(&program);
        assert_eq!(verify(&scanned), Ok(()), "{}", case.title);
        let text = print::print(&scanned).unwrap();
        assert_eq!(print::print(&self::scanned(&scanned)).unwrap(), text, "`{}` changes again", case.title);
        let again = resolve(&parse(&text).unwrap(), &[]).unwrap().program;
        assert!(again == scanned, "`{}` prints as another program:\n{text}", case.title);
        text
    });
}

fn scanned(program: &Program) -> Program {
    scan(program, &vec![4096.0; program.params.len()]).unwrap()
}

fn program(case: &Case) -> Program {
    let resolved = parse(&case.source).and_then(|ast| resolve(&ast, &[]));
    resolved.unwrap_or_else(|errors| panic!("`{}`\n{}", case.title, support::render(&case.source, &errors))).program
}
