//! The passes behind the derivative: every value on the way prints, and the choice among candidates tells its reason.

use gradix::compile::{Choice, Stage};
use gradix::nest::{Real, print};
use gradix::program::Program;
use gradix::syntax::parse;
use gradix::{Compiled, Int, compile, derive, resolve};
use std::path::Path;

const EXAMPLES: [&str; 5] = ["matmul", "rbf", "conv2d", "heat2d", "attention"];

fn program(text: &str) -> Program {
    resolve(&parse(text).unwrap(), &[]).unwrap().program
}

fn example(name: &str) -> Program {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples").join(format!("{name}.gx"));
    program(&std::fs::read_to_string(path).unwrap())
}

fn compiled(program: &Program, size: i64) -> Compiled {
    compile(program, &vec![Int::from(size); program.params.len()], Real::F64, &gradix::target::AVX512).unwrap()
}

#[test]
fn every_stage_prints() {
    for name in EXAMPLES {
        let program = example(name);
        let derivative = derive(&program, &Default::default()).unwrap();
        for program in [&program, &derivative.program] {
            let compiled = compiled(program, 512);
            for stage in [Stage::Scanned, Stage::Economised, Stage::Arranged, Stage::Schedule, Stage::Nest] {
                let text = compiled.print(stage).unwrap_or_else(|error| panic!("{name}, {stage:?}: {error}"));
                assert!(text.lines().count() > 1, "{name}, {stage:?}: {text}");
            }
            assert_eq!(compiled.print(Stage::Nest).unwrap(), print(&compiled.nest));
        }
    }
}

#[test]
fn what_is_economised_is_a_program() {
    for name in EXAMPLES {
        let text = compiled(&example(name), 512).print(Stage::Economised).unwrap();
        assert!(parse(&text).and_then(|ast| resolve(&ast, &[])).is_ok(), "{name}\n{text}");
    }
}

#[test]
fn little_to_do_is_done_in_plain_loops() {
    let compiled = compiled(&example("heat2d"), 6);
    assert_eq!(compiled.parts[0].choice, Choice::Little);
    assert!(compiled.nest.plain && compiled.parts[0].choice.to_string().starts_with("plain loops"));
}

#[test]
fn few_operations_are_taken_where_there_is_room() {
    let Choice::Fits { stored, room } = compiled(&example("matmul"), 512).parts[0].choice else {
        panic!("another choice")
    };
    assert!(stored <= room);
}

#[test]
fn large_parts_are_avoided_where_there_is_no_room() {
    let text = "input x[N], z[N], w[N]\nf[i] = sum[j, k] exp(x[i] * z[j]) * exp(z[j] * w[k]) * sin(w[k] * x[i])";
    let derivative = derive(&program(text), &Default::default()).unwrap();
    let compiled = compiled(&derivative.program, 2048);
    let Choice::Leaner { stored, fast, room } = compiled.parts[0].choice else {
        panic!("{}", compiled.parts[0].choice)
    };
    assert!(stored < fast && room < fast);
    assert!(
        compiled.parts[0].choice.to_string().starts_with("fewer elements: 0 are stored"),
        "{}",
        compiled.parts[0].choice
    );
}
