//! scratch
use gradix::sizes::{Known, choose};
use std::collections::HashMap;
fn main() {
    let scale: usize = std::env::var("S").ok().and_then(|s| s.parse().ok()).unwrap_or(0);
    for file in std::env::args().skip(1) {
        let text = std::fs::read_to_string(&file).unwrap();
        let r = gradix::resolve(&gradix::syntax::parse(&text).unwrap(), &[]).unwrap();
        let d = gradix::derive(&r.program, &Default::default()).unwrap();
        let mut sizes = match choose(&r.program, &Known::default(), &r.places) {
            Ok(s) => s,
            Err(e) => {
                println!("{file} SIZES {e:?}");
                continue;
            }
        };
        if scale > 0 {
            let big: Vec<_> = sizes.iter().map(|v| v * gradix::Int::from(scale)).collect();
            let mut k = Known::default();
            for (p, v) in r.program.params.iter().zip(&big) {
                k.given.push((p.name.clone(), v.clone()));
            }
            if let Ok(b) = gradix::sizes::bind(&r.program, &k, &r.places) {
                sizes = b
            } else {
                println!("no scale {file}")
            }
        }
        let mut known = Known::default();
        for (p, v) in r.program.params.iter().zip(&sizes) {
            known.given.push((p.name.clone(), v.clone()));
        }
        let mut seed = 1u64;
        let mut run = |p: &gradix::Program| {
            let sizes = gradix::sizes::bind(p, &known, &Default::default()).unwrap();
            let mut inputs = HashMap::new();
            for id in p.inputs() {
                let shape: Vec<usize> = p[id]
                    .extents
                    .iter()
                    .map(|e| {
                        let v = e.evaluate(&|a| match a {
                            gradix::program::Atom::Param(q) => sizes[q.0 as usize].clone(),
                            _ => 0.into(),
                        });
                        i64::try_from(&v).unwrap().max(0) as usize
                    })
                    .collect();
                let n = shape.iter().product();
                let data = (0..n)
                    .map(|_| {
                        seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
                        ((seed >> 33) as f64 / (1u64 << 31) as f64) * 2.0 - 1.0
                    })
                    .collect();
                inputs.insert(p[id].name.clone(), gradix_run::Array { shape, data });
            }
            gradix_run::interp(p, &sizes, &inputs, gradix_run::Dtype::F64)
        };
        match (run(&r.program), run(&d)) {
            (Ok(f), Ok(g)) => println!(
                "{:6.2} {} {} {} nan={}",
                g.operations as f64 / f.operations as f64,
                f.operations,
                g.operations,
                file,
                g.results.iter().any(|(_, a)| a.data.iter().any(|v| v.is_nan()))
            ),
            (f, g) => println!("ERR {file} {:?} {:?}", f.err(), g.err()),
        }
    }
}
