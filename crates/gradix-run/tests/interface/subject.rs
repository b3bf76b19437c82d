//! A program as a file of C with its header, a caller in C and C++, and the tools that build and run them.

use gradix::domain::sizes::{Known, bind};
use gradix::emit::Real;
use gradix::emit::c::interface::Interface;
use gradix::nest::{Stage, Verified};
use gradix::program::{ParamKind, Places, Program, TensorId};
use gradix::{Int, Target};
use gradix_run::gradient::shape;
use gradix_run::{Array, Dtype, interp, random};
use std::collections::HashMap;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A file and what its program is to compute.
pub struct Subject {
    pub name: String,
    program: Program,
    nest: Verified,
    real: Real,
    runs: Vec<Run>,
}

/// Sizes, arguments, and what is expected, unless any bits will do.
pub struct Run {
    pub sizes: Vec<Int>,
    pub inputs: Arrays,
    pub expected: Arrays,
    pub is_compared: bool,
}

pub type Arrays = Vec<(String, Array)>;

/// Sizes by name.
pub type Sizes<'a> = &'a [(&'a str, i64)];

impl Subject {
    /// A text at some sizes, with random arguments.
    pub fn new(name: &str, text: &str, with_derivatives: bool, real: Real, given: Sizes) -> Subject {
        let (program, places) = resolved(text, with_derivatives);
        let given = given.iter().map(|(name, size)| (name.to_string(), Int::from(*size))).collect();
        let sizes = bind(&program, &Known { given, shapes: Vec::new() }, &places).unwrap();
        let mut subject = Subject::of(name, program, real);
        subject.add(sizes, &|name, shape| random::array(7, name, shape).unwrap());
        subject
    }

    /// A program, to be run at sizes that are added.
    pub fn of(name: &str, program: Program, real: Real) -> Subject {
        Subject::made_for(name, program, real, &gradix::target::AVX2)
    }

    /// The same for another machine.
    pub fn made_for(name: &str, program: Program, real: Real, target: &Target) -> Subject {
        let nest = gradix::compile(&program, &[], real, target).unwrap().nest;
        Subject { name: name.into(), program, nest, real, runs: Vec::new() }
    }

    /// A run with arguments as they are made for a name and a shape.
    pub fn add(&mut self, sizes: Vec<Int>, made: &dyn Fn(&str, Vec<usize>) -> Array) -> &mut Run {
        let rounded = |value: &f64| if self.real == Real::F32 { f64::from(*value as f32) } else { *value };
        let array = |id: TensorId| {
            let array = made(&self.program[id].name, shape(&self.program, &sizes, id).unwrap());
            (self.program[id].name.clone(), Array { data: array.data.iter().map(rounded).collect(), ..array })
        };
        let inputs: Arrays = self.program.inputs().map(array).collect();
        let named: HashMap<String, Array> = inputs.iter().cloned().collect();
        let expected = interp(&self.program, &sizes, &named, Dtype::F64).unwrap().results;
        self.runs.push(Run { sizes, inputs, expected, is_compared: true });
        self.runs.last_mut().unwrap()
    }

    pub fn interface(&self) -> Interface<'_> {
        Interface { name: &self.name, program: &self.program, nest: &self.nest, real: self.real }
    }

    /// Writes the file and its header.
    pub fn write(&self, folder: &Path) {
        let path = |ending: &str| folder.join(format!("{}.{ending}", self.name));
        std::fs::write(path("h"), self.interface().header()).unwrap();
        std::fs::write(path("c"), self.interface().source()).unwrap();
    }

    /// Functions in the C that C++ shares: each runs everything at once, then item by item, and prints the results.
    fn callers(&self) -> String {
        self.runs.iter().enumerate().map(|(number, run)| self.caller(number, run)).collect()
    }

    fn caller(&self, number: usize, run: &Run) -> String {
        let (name, interface) = (&self.name, self.interface());
        let real = if self.real == Real::F64 { "double" } else { "float" };
        let mut text = format!("static void call_{name}_{number}(void)\n{{\n    {name}_sizes sizes;\n");
        let _ = writeln!(text, "    {name}_inputs in;\n    {name}_outputs out, again;");
        let _ = writeln!(text, "    memset(&sizes, 0, sizeof sizes);\n    memset(&in, 0, sizeof in);");
        let params = self.program.params.iter().zip(&run.sizes).filter(|(param, _)| param.kind == ParamKind::Free);
        let sizes = interface.sizes().into_iter().zip(params);
        text.extend(sizes.map(|(member, (_, size))| format!("    sizes.{} = {size};\n", member.name)));
        for (member, (_, array)) in interface.inputs().iter().zip(&run.inputs) {
            let values: Vec<String> = array.data.iter().map(|value| format!("({real}){value:e}")).collect();
            let (own, values) = (&member.name, if values.is_empty() { "0".into() } else { values.join(", ") });
            let _ = writeln!(text, "    static const {real} in_{own}[] = {{{values}}};\n    in.{own} = in_{own};");
        }
        let outputs = interface.outputs();
        for (member, (_, array)) in outputs.iter().zip(&run.expected) {
            let (own, count) = (&member.name, array.data.len().max(1));
            let _ = writeln!(text, "    static {real} out_{own}[{count}], again_{own}[{count}];");
            let _ = writeln!(text, "    out.{own} = out_{own};\n    again.{own} = again_{own};");
        }
        // Callers can't run the kernels of one that goes through steps: it is run again as a whole.
        let goes_through_steps = self.nest.stages.iter().any(|stage| matches!(stage, Stage::Time(_)));
        let (call, items) = match self.nest.target.device {
            Some(_) => (CALL_ON_DEVICE, AGAIN_ON_DEVICE),
            None if goes_through_steps => (CALL, AGAIN),
            None => (CALL, ITEMS),
        };
        text += &[call, items, FREE].concat().replace("NAME", name);
        for (member, (_, array)) in outputs.iter().zip(&run.expected) {
            let (own, count) = (&member.name, array.data.len());
            let _ =
                writeln!(text, "    check(!memcmp(out_{own}, again_{own}, sizeof out_{own}), \"{name}: same bits\");");
            let _ = writeln!(text, "    for (int i = 0; i < {count}; i++) printf(\"%.17g\\n\", (double)out_{own}[i]);");
        }
        text + "}\n\n"
    }

    /// Holds the next of the printed numbers to the oracle, each to this part of the largest of its array.
    fn compare(&self, printed: &mut dyn Iterator<Item = f64>, part: f64, what: &str) {
        for Run { sizes, expected, is_compared, .. } in &self.runs {
            for (name, expected) in expected {
                let finite = expected.data.iter().filter(|value| value.is_finite());
                let scale = finite.fold(1.0, |most: f64, value| most.max(value.abs()));
                for (place, b) in expected.data.iter().enumerate() {
                    let a = printed.next().unwrap();
                    let is_close = (a - b).abs() <= part * scale || a == *b || a.is_nan() && b.is_nan();
                    let text = || gradix::print(&self.program).unwrap();
                    assert!(
                        is_close || !is_compared,
                        "{what}, {} at {sizes:?}: {name} is {a} and should be {b} at {place}\n{}",
                        self.name,
                        text()
                    );
                }
            }
        }
    }

    /// The part of an array's largest number by which rounding may change others.
    pub fn rounding(&self) -> f64 {
        if self.real == Real::F64 { 1e-12 } else { 1e-4 }
    }
}

/// The program of a text, or its derivative with the results.
pub fn resolved(text: &str, with_derivatives: bool) -> (Program, Places) {
    let ast = gradix::syntax::parse(text).unwrap();
    let gradix::Resolved { program, places } = gradix::resolve(&ast, &[]).unwrap();
    let options = gradix::derive::Options { with_results: true, ..Default::default() };
    match with_derivatives {
        true => (gradix::derive(&program, &options).unwrap().program, places),
        false => (program, places),
    }
}

/// A program in C and C++ that runs everything, and prints the results.
pub fn main_file(subjects: &[Subject]) -> String {
    let mut main = String::new();
    for subject in subjects {
        let _ = writeln!(main, "#include \"{0}.h\"\n#include \"{0}.h\"", subject.name);
    }
    main += START;
    subjects.iter().for_each(|subject| main += &subject.callers());
    let numbered = |subject: &Subject| {
        (0..subject.runs.len()).map(|run| format!("    call_{}_{run}();\n", subject.name)).collect()
    };
    let calls: String = subjects.iter().map(numbered).collect::<Vec<String>>().concat();
    main + &format!("int main(void)\n{{\n{calls}    return 0;\n}}\n")
}

/// The same for one file of CUDA C++, which is compiled for the processor.
pub fn device_file(subject: &Subject) -> String {
    let included = format!("#include \"{}.cu\"\n#include \"launch.h\"\n", subject.name);
    let calls: String = (0..subject.runs.len()).map(|run| format!("    call_{}_{run}();\n", subject.name)).collect();
    included + START + &subject.callers() + &format!("int main()\n{{\n{calls}    return 0;\n}}\n")
}

/// Holds what such a program printed to the oracle.
pub fn compare(subjects: &[Subject], printed: &str, part: impl Fn(&Subject) -> f64, what: &str) {
    let mut printed = printed.lines().map(|line| line.parse().unwrap());
    subjects.iter().for_each(|subject| subject.compare(&mut printed, part(subject), what));
    assert_eq!(printed.next(), None);
}

const START: &str = r#"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void check(int holds, const char *what)
{
    if (holds) return;
    fprintf(stderr, "%s\n", what);
    exit(1);
}

/* Memory at an odd address that holds NaNs; exactly so long that tools find what is written outside. */
static char *memory(size_t bytes)
{
    char *start = (char *)malloc(bytes + 1);
    memset(start, 0xff, bytes + 1);
    return start + 1;
}

"#;

const CALL: &str = r#"
    size_t bytes = NAME_workspace_bytes(&sizes);
    check(bytes != SIZE_MAX, "NAME: bytes");
    char *workspace = bytes ? memory(bytes) : NULL;
    check(NAME_run(&sizes, &in, &out, workspace) == NAME_ok, "NAME: run");
    check(!bytes || NAME_run(&sizes, &in, &out, NULL) == NAME_null_pointer, "NAME: no workspace");
    check(NAME_run(&sizes, &in, NULL, workspace) == NAME_null_pointer, "NAME: no outputs");
"#;

const CALL_ON_DEVICE: &str = r#"
    size_t bytes = NAME_workspace_bytes(&sizes);
    check(bytes != SIZE_MAX, "NAME: bytes");
    char *workspace = bytes ? memory(bytes + 63) - 1 : NULL;
    check(NAME_run(&sizes, &in, &out, workspace, (cudaStream_t)7) == NAME_ok, "NAME: run");
    check(!bytes || NAME_run(&sizes, &in, &out, NULL, (cudaStream_t)7) == NAME_null_pointer, "NAME: no workspace");
    check(NAME_run(&sizes, &in, NULL, workspace, (cudaStream_t)7) == NAME_null_pointer, "NAME: no outputs");
    check(NAME_run(&sizes, &in, &again, workspace, NULL) == NAME_failed, "NAME: no such stream");
    if (bytes) workspace++;
"#;

const AGAIN_ON_DEVICE: &str = r#"
    check(NAME_run(&sizes, &in, &again, bytes ? workspace - 1 : NULL, (cudaStream_t)7) == NAME_ok, "NAME: run again");
"#;

const AGAIN: &str = r#"
    check(NAME_run(&sizes, &in, &again, workspace) == NAME_ok, "NAME: run again");
"#;

const ITEMS: &str = r#"
    size_t local_bytes = NAME_local_bytes(&sizes);
    check(local_bytes != SIZE_MAX, "NAME: local bytes");
    char *local = local_bytes ? memory(local_bytes) : NULL;
    for (int k = 0; k < NAME_kernels; k++) {
        int64_t items = NAME_items(k, &sizes);
        check(items >= 0, "NAME: items");
        for (int64_t n = items; n-- > 0;)
            check(NAME_run_items(k, n, n + 1, &sizes, &in, &again, workspace, local) == NAME_ok, "NAME: an item");
        int past = NAME_run_items(k, items, items + 1, &sizes, &in, &again, workspace, local);
        check(past == NAME_bad_items, "NAME: past the items");
    }
    check(NAME_items(NAME_kernels, &sizes) == -1 && NAME_items(-1, &sizes) == -1, "NAME: no such kernel");
    if (local_bytes) free(local - 1);
"#;

const FREE: &str = r#"
    if (bytes) free(workspace - 1);
"#;

pub fn example(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../../examples/{name}.gx"));
    std::fs::read_to_string(path).unwrap()
}

/// A folder of one test.
pub fn folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

/// The compilers of this machine, each for C and for C++.
pub fn compilers() -> Vec<[&'static str; 2]> {
    let is_there = |name: &str| Command::new(name).arg("--version").output().is_ok();
    let found =
        [["gcc", "g++"], ["clang", "clang++"]].into_iter().filter(|pair| pair.iter().all(|name| is_there(name)));
    found.collect()
}

pub fn run(command: &mut Command) -> String {
    let output = command.output().unwrap();
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && told.is_empty(), "{command:?}: {told}");
    String::from_utf8(output.stdout).unwrap()
}

pub const WARNINGS: [&str; 4] = ["-Wall", "-Wextra", "-pedantic", "-Werror"];
