//! No program makes resolution or derivation panic; derivatives are valid, and their text resolves to them.
#![no_main]

use gradix::derive::{Mode, Options};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let Ok(ast) = gradix::syntax::parse(text) else { return };
    let Ok(resolved) = gradix::resolve(&ast, &[]) else { return };
    assert_eq!(gradix::program::verify(&resolved.program), Ok(()));
    for mode in [Mode::Reverse, Mode::Forward, Mode::Jacobian] {
        let Ok(derived) = gradix::derive(&resolved.program, &Options { mode, ..Options::default() }) else { continue };
        let derivative = derived.program;
        assert_eq!(gradix::program::verify(&derivative), Ok(()));
        let Ok(printed) = gradix::print(&derivative) else { continue };
        let Ok(ast) = gradix::syntax::parse(&printed) else { panic!("does not parse:\n{printed}") };
        match gradix::resolve(&ast, &[]) {
            Ok(again) => assert!(again.program == derivative, "resolves to something else:\n{printed}"),
            Err(diagnostics) => panic!("does not resolve: {diagnostics:?}\n{printed}"),
        }
    }
});
