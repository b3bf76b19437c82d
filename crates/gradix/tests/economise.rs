//! Algebra: each rule by the smallest program that shows it.
//!
//! The case is the program before, `cheap` the program after, with all sizes assumed to be 512; `cheap derivative`
//! is the same of its derivative. Values before and after are compared by the tests of whole programs in `gradix-run`;
//! here the text is.

mod support;

use gradix::program::print;
use gradix::program::{Program, verify};
use gradix::syntax::parse;
use gradix::{derive, economise, resolve};
use support::Case;

#[test]
fn cases() {
    support::check("economise", |case, section| {
        let program = match section {
            "cheap" => program(case),
            "cheap derivative" => derive(&program(case), &Default::default()).unwrap().program,
            other => panic!("`{}` has a section `{other}`", case.title),
        };
        let cheap = cheap(&program);
        assert_eq!(verify(&cheap), Ok(()), "{}", case.title);
        let text = print::print(&cheap).unwrap();
        assert_eq!(print::print(&self::cheap(&cheap)).unwrap(), text, "`{}` becomes cheaper again", case.title);
        let again = resolve(&parse(&text).unwrap(), &[]).unwrap().program;
        assert!(again == cheap, "`{}` prints as another program:\n{text}", case.title);
        text
    });
}

fn cheap(program: &Program) -> Program {
    economise(program, &vec![512.0; program.params.len()]).unwrap()
}

fn program(case: &Case) -> Program {
    let resolved = parse(&case.source).and_then(|ast| resolve(&ast, &[]));
    resolved.unwrap_or_else(|errors| panic!("`{}`\n{}", case.title, support::render(&case.source, &errors))).program
}
