//! Decisions are those for the machine that is asked for.

use gradix::compile::Stage;
use gradix::nest::{Leaf, Nest, print};
use gradix::program::Program;
use gradix::scalar::Real;
use gradix::syntax::parse;
use gradix::target::{AVX2, AVX512, NEON, PORTABLE, Target};
use gradix::{Compiled, Int, compile, derive, resolve};

const DENSE: &str = "input W[O, I], x[N, I]\ny[n, o] = sum[i] W[o, i] * x[n, i]";
const STENCIL: &str = "param N >= 3, M >= 3
input u[N, M]
v[i, j in 0..M - 2] = exp(u[i, j]) * u[i, j + 2]
w[i in 0..N - 2, j in 0..M - 2] = v[i, j] * v[i + 2, j] + v[i + 1, j]";

fn compiled(text: &str, real: Real, target: &Target) -> Compiled {
    compiled_at(512, text, real, target)
}

fn compiled_at(size: i64, text: &str, real: Real, target: &Target) -> Compiled {
    let program = resolve(&parse(text).unwrap(), &[]).unwrap().program;
    compile(&program, &vec![Int::from(size); program.params.len()], real, target).unwrap()
}

/// The leaves of a nest.
fn leaves(nest: &Nest) -> Vec<&Leaf> {
    nest.kernels.iter().flat_map(|kernel| gradix::nest::leaves(&kernel.steps)).collect()
}

#[test]
fn a_block_of_a_copy_has_four_vectors_of_the_machine() {
    let block = |real: Real, target: &Target| {
        let text = compiled(DENSE, real, target).print(Stage::Arranged).unwrap();
        let start = text.find("W_b[o // ").unwrap_or_else(|| panic!("{}: nothing is copied\n{text}", target.name));
        text[start + 9..].split(',').next().unwrap().parse::<i64>().unwrap()
    };
    assert_eq!([AVX512, AVX2, NEON, PORTABLE].map(|target| block(Real::F64, &target)), [32, 16, 8, 8]);
    assert_eq!([AVX512, AVX2, NEON, PORTABLE].map(|target| block(Real::F32, &target)), [64, 32, 16, 16]);
}

#[test]
fn blocks_become_loops_without_a_division_on_every_machine() {
    for target in Target::PRESETS {
        let nest = compiled(DENSE, Real::F64, &target).nest;
        let text = print(&nest);
        assert!(text.contains("o_block"), "{}\n{text}", target.name);
    }
}

#[test]
fn sums_of_a_register_tile_leave_registers_for_operands() {
    for target in Target::PRESETS {
        let nest = compiled(DENSE, Real::F64, &target).nest;
        let sums = |leaf: &Leaf| leaf.vectors() * leaf.rows().map_or(1, |(_, rows)| rows);
        let most = leaves(&nest).into_iter().map(sums).max().unwrap();
        assert!(most < target.vector_registers && most > target.vector_registers / 2, "{}: {most} sums", target.name);
    }
}

#[test]
fn what_is_local_stays_in_the_second_cache_of_the_machine() {
    let small = Target { l2_bytes: AVX512.l2_bytes / 16, ..AVX512 };
    let tile = |target: &Target| {
        let groups = compiled_at(4096, STENCIL, Real::F64, target).parts.swap_remove(0).schedule.groups;
        groups.iter().map(|group| group.tile).max().unwrap()
    };
    assert!(tile(&small) < tile(&AVX512), "{} and {} rows", tile(&small), tile(&AVX512));
}

#[test]
fn the_number_of_parts_of_a_sum_is_that_of_every_preset() {
    let parts = |target: &Target| {
        let compiled = compiled("input x[N, M]\nf = sum[i, j] x[i, j]^2", Real::F64, target);
        compiled.parts[0].schedule.groups.iter().find_map(|group| group.parts)
    };
    assert_eq!(Target::PRESETS.map(|target| parts(&target)), [Some(16); 4]);
}

#[test]
fn the_nest_and_its_code_tell_the_machine() {
    for target in Target::PRESETS {
        let nest = compiled(DENSE, Real::F64, &target).nest;
        assert_eq!(nest.target, target);
        let code = gradix::emit::c(&nest, Real::F64);
        let (registers, bytes) = (target.vector_registers, target.vector_bytes);
        let head = format!("Made for {}: {registers} vectors of {bytes} bytes", target.name);
        assert!(code.contains(&head) && code.contains(format!("-O2 {}", target.options).trim_end()), "{head}");
    }
}

#[test]
fn every_example_is_verified_for_every_machine() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    for name in ["attention", "conv2d", "causal_filter", "depthwise_conv", "gelu_ffn", "heat2d", "haar", "nbody"] {
        let text = std::fs::read_to_string(folder.join(format!("{name}.gx"))).unwrap();
        let program = resolve(&parse(&text).unwrap(), &[]).unwrap().program;
        let derivative = derive(&program, &Default::default()).unwrap().program;
        for target in Target::PRESETS {
            let verified = |program: &Program| compile(program, &[], Real::F32, &target).is_ok();
            assert!(verified(&program) && verified(&derivative), "{name}, {}", target.name);
        }
    }
}
