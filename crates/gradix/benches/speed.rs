//! How fast the tool itself is: parsing and deriving each example, long chains of definitions, and garbage.
//!
//! `cargo bench -p gradix` prints a table; every time is the median of repeated runs.

use gradix::derive::Options;
use std::fmt::Write;
use std::time::{Duration, Instant};

fn main() {
    examples();
    chains();
    garbage();
}

fn examples() {
    println!("{:<24} {:>10} {:>10} {:>10} {:>10}", "example", "parse", "resolve", "derive", "all");
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples");
    let mut files: Vec<_> =
        std::fs::read_dir(folder).expect("the examples").map(|f| f.expect("a file").path()).collect();
    files.retain(|f| f.extension().is_some_and(|e| e == "gx"));
    files.sort();
    let mut worst = Duration::ZERO;
    for file in files {
        let source = std::fs::read_to_string(&file).expect("a text");
        let ast = gradix::syntax::parse(&source).expect("examples parse");
        let program = gradix::resolve(&ast, &[]).expect("examples resolve").program;
        let parse = median(21, || gradix::syntax::parse(&source));
        let resolve = median(21, || gradix::resolve(&ast, &[]));
        let derive = median(21, || gradix::derive(&program, &Options::default()));
        let all = parse + resolve + derive;
        worst = worst.max(all);
        let name = file.file_stem().expect("a name").to_string_lossy().to_string();
        println!("{name:<24} {parse:>10.1?} {resolve:>10.1?} {derive:>10.1?} {all:>10.1?}");
    }
    println!("slowest example: {worst:.1?}\n");
}

fn chains() {
    println!("{:<24} {:>10} {:>10} {:>12}", "chain of definitions", "all", "per step", "output bytes");
    for length in [250, 500, 1000, 2000, 4000] {
        let mut source = String::from("input x0[N]\n");
        for step in 1..=length {
            let before = step - 1;
            writeln!(source, "x{step}[i] = x{before}[i] * x{before}[i]").expect("writing to a string");
        }
        let derived = || {
            let ast = gradix::syntax::parse(&source).expect("the chain parses");
            let program = gradix::resolve(&ast, &[]).expect("the chain resolves").program;
            let derivative = gradix::derive(&program, &Options::default()).expect("the chain derives").program;
            gradix::print(&derivative).expect("the derivative prints")
        };
        let bytes = derived().len();
        let all = median(3, derived);
        println!("{length:<24} {all:>10.1?} {:>10.1?} {bytes:>12}", all / length);
    }
    println!();
}

fn garbage() {
    println!("{:<24} {:>10}", "5 MB that is refused", "time");
    let noise: String =
        (0..5_000_000u32).map(|i| char::from(32 + (i.wrapping_mul(2_654_435_761) >> 25) as u8 % 95)).collect();
    let inputs = [
        ("noise", noise),
        ("open brackets", "x[".repeat(2_500_000)),
        ("a sum", "y = 1".to_string() + &" + 1".repeat(1_250_000)),
        ("lines", "y[i] = x[i] +\n".repeat(357_000)),
    ];
    for (name, text) in inputs {
        let time = median(3, || assert!(gradix::syntax::parse(&text).is_err()));
        println!("{name:<24} {time:>10.1?}");
    }
}

fn median<T>(runs: usize, mut work: impl FnMut() -> T) -> Duration {
    let mut times: Vec<Duration> = (0..runs)
        .map(|_| {
            let start = Instant::now();
            std::hint::black_box(work());
            start.elapsed()
        })
        .collect();
    times.sort();
    times[runs / 2]
}
