//! scratch
use gradix::derive::{Mode, Options};
fn main() {
    let mode = match std::env::var("MODE").as_deref() {
        Ok("f") => Mode::Forward,
        Ok("j") => Mode::Jacobian,
        Ok("h") => Mode::Hessian,
        _ => Mode::Reverse,
    };
    for file in std::env::args().skip(1) {
        let text = if file.ends_with(".gx") { std::fs::read_to_string(&file).unwrap() } else { file.clone() };
        println!("=== {file}");
        let ast = match gradix::syntax::parse(&text) {
            Ok(a) => a,
            Err(e) => {
                println!("PARSE {e:?}");
                continue;
            }
        };
        match gradix::resolve(&ast, &[]) {
            Ok(r) => {
                gradix::program::verify(&r.program).unwrap_or_else(|e| println!("VERIFY {e}"));
                round(&r.program, false);
                let t0 = std::time::Instant::now();
                match gradix::derive(&r.program, &Options { mode, ..Options::default() }) {
                    Ok(d) => {
                        println!("# {:?}", t0.elapsed());
                        gradix::program::verify(&d).unwrap_or_else(|e| println!("VERIFY D {e}"));
                        round(&d, true);
                    }
                    Err(e) => println!("DERIVE {e:?}"),
                }
            }
            Err(e) => {
                for d in e {
                    println!("RESOLVE {}: {} {:?} {:?}", d.code, d.message, d.labels, d.hints)
                }
            }
        }
    }
}
fn round(p: &gradix::Program, show: bool) {
    match gradix::simplify(p) {
        Ok(q) => {
            if show && q != *p {
                println!("NOTIDEM {}", gradix::print::print(&q).unwrap())
            }
            if gradix::simplify(&q).unwrap() != q {
                println!("NOTIDEM2")
            }
        }
        Err(e) => println!("SIMPLIFY {e:?}"),
    }
    let t = gradix::print::print(p).unwrap();
    if show {
        println!("{t}");
    }
    let ast = match gradix::syntax::parse(&t) {
        Ok(a) => a,
        Err(e) => {
            println!("REPARSE {e:?}\n{t}");
            return;
        }
    };
    match gradix::resolve(&ast, &[]) {
        Ok(a) => {
            let t2 = gradix::print::print(&a.program).unwrap();
            if t2 != t {
                println!("ROUNDTRIP\n{t2}")
            } else if a.program != *p {
                println!("UNEQUAL");
                if std::env::var("V").is_ok() {
                    println!("{:#?}\n{:#?}", p, a.program)
                }
            }
        }
        Err(e) => println!("RERESOLVE {e:?}\n{t}"),
    }
}
