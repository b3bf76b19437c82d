//! No text makes the parser panic, and what it prints parses back to the same text.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    if let Ok(ast) = gradix::syntax::parse(text) {
        let printed = gradix::syntax::print(&ast);
        let again = gradix::syntax::parse(&printed).expect("printed programs parse");
        assert_eq!(gradix::syntax::print(&again), printed);
    }
});
