//! What programs in C and C++ call: a function that runs all kernels, on structs whose members have the program's names.
//!
//! ```text
//! int NAME_run(const NAME_sizes *sizes, const NAME_inputs *in, const NAME_outputs *out, void *workspace)
//! ```
//!
//! Everything else in the file is its own, so that programs may have many such files. The caller owns all memory: temporaries
//! and one thread's local buffers lie in the workspace. What kernels rely on is checked first: the conditions on sizes,
//! that index expressions of sizes have 64 bits, that arrays are there and have fewer bytes than all memory.

use super::super::integers::{larger, smaller};
use super::super::names::{Common, Names, members, with_extents};
use super::super::print;
use super::super::tree::Value;
use super::{file, made_for, options};
use crate::nest::{Buffer, Check, Lifetime, MAX_SIZE, Nest, Real, Scope, Stage, Verified, Window, Work};
use crate::program::print::{constraint, print as print_program};
use crate::program::{Affine, Atom, ParamId, ParamKind, Program, TensorId, distinct};
use gradix_int::Int;

/// A program that C calls by a name.
#[derive(Clone, Copy, Debug)]
pub struct Interface<'a> {
    /// What its functions and types begin with: letters, digits and `_`.
    pub name: &'a str,
    /// What the nest was made from.
    pub program: &'a Program,
    /// What runs.
    pub nest: &'a Verified,
    /// The type of numbers.
    pub real: Real,
}

/// A member of a struct.
#[derive(Clone, Debug)]
pub struct Member {
    /// Its name, which may differ from that in the program.
    pub name: String,
    /// What it is in index notation: `x[N, M]`.
    pub notation: String,
    /// The number of the size, or of the buffer, in the nest.
    pub number: usize,
}

impl Interface<'_> {
    /// One C file that needs the C library only.
    pub fn source(&self) -> String {
        let comment = format!("/* {}\n */\n", made_for(&self.nest.target).join("\n * "));
        let kernels: Vec<String> = (0..self.nest.kernels.len()).map(|k| format!("gx_kernel_{k}")).collect();
        let counts = |count: usize| count.max(1).to_string();
        let called = |k: usize| format!("gx_kernel[{k}](plan.size, buffer, local, 0, plan.items[{k}]);");
        let entry = match self.goes_through_steps() {
            true => include_str!("interface.c").to_string(),
            false => [include_str!("interface.c"), include_str!("items.c")].concat(),
        };
        let entry = self.filled(
            &entry,
            &[
                ("$kernel_count", counts(self.nest.kernels.len())),
                ("$step_count", counts(self.step_counts().len())),
                ("$stages", indented(self.stages(&self.nest.stages, 0, &called))),
                ("$size_count", counts(self.nest.params.len())),
                ("$buffer_count", counts(self.nest.buffers.len())),
                ("$kernel_names", kernels.join(", ")),
                ("$plan", self.plan()),
                ("$place", self.place()),
            ],
        );
        comment + &self.header() + &file(self.nest, self.real, true) + &entry
    }

    /// Whether some kernels run step after step, so that callers can't run kernels on their own.
    fn goes_through_steps(&self) -> bool {
        self.nest.stages.iter().any(|stage| matches!(stage, Stage::Time(_)))
    }

    /// The numbers of steps that are counted, each once.
    pub(in crate::emit) fn step_counts(&self) -> Vec<&Affine> {
        fn collect<'a>(stages: &'a [Stage], found: &mut Vec<&'a Affine>) {
            for stage in stages {
                match stage {
                    Stage::Kernel(_, below) => found.extend(below.iter().map(|(_, steps)| steps)),
                    Stage::Time(time) => {
                        found.push(&time.steps);
                        collect(&time.stages, found);
                    }
                }
            }
        }
        let mut found = Vec::new();
        collect(&self.nest.stages, &mut found);
        distinct(found)
    }

    /// Statements that run stages, inside so many loops; `called` is how a kernel is run.
    pub(in crate::emit) fn stages(
        &self,
        stages: &[Stage],
        depth: usize,
        called: &dyn Fn(usize) -> String,
    ) -> Vec<String> {
        let counts = self.step_counts();
        let count = |steps: &Affine| counts.iter().position(|other| *other == steps).unwrap_or(0);
        let mut lines = Vec::new();
        for stage in stages {
            match stage {
                Stage::Kernel(k, below) => {
                    let test = |(time, steps): &(ParamId, Affine)| {
                        format!("if (plan.size[{}] < plan.steps[{}]) ", time.0, count(steps))
                    };
                    let tests: String = below.iter().map(test).collect();
                    lines.push(tests + &called(*k));
                }
                Stage::Time(time) => {
                    let (param, steps) = (time.param.0, format!("plan.steps[{}]", count(&time.steps)));
                    let (start, end) = match time.window {
                        None => ("0".to_string(), steps),
                        Some(Window { outer, size, before, values }) => {
                            lines.push("{".into());
                            lines.push(format!("int64_t start{depth} = {size} * plan.size[{}] - {before};", outer.0));
                            lines.push(format!("int64_t end{depth} = start{depth} + {values};"));
                            lines.push(format!("if (start{depth} < 0) start{depth} = 0;"));
                            lines.push(format!("if (end{depth} > {steps}) end{depth} = {steps};"));
                            (format!("start{depth}"), format!("end{depth}"))
                        }
                    };
                    let value = match (time.falling, start.as_str()) {
                        (false, _) => format!("t{depth}"),
                        (true, "0") => format!("{end} - 1 - t{depth}"),
                        (true, _) => format!("{end} - 1 - (t{depth} - {start})"),
                    };
                    lines.push(format!("for (int64_t t{depth} = {start}; t{depth} < {end}; t{depth}++) {{"));
                    lines.push(format!("    plan.size[{param}] = {value};"));
                    lines.extend(
                        self.stages(&time.stages, depth + 1, called).into_iter().map(|line| format!("    {line}")),
                    );
                    lines.push("}".into());
                    lines.extend(time.window.map(|_| "}".to_string()));
                }
            }
        }
        lines
    }

    /// The header, for C and C++.
    pub fn header(&self) -> String {
        let items = self.filled(if self.goes_through_steps() { "" } else { include_str!("items.h") }, &[]);
        self.declared(&include_str!("interface.h").replace("$items", &items))
    }

    /// Declarations from a template.
    pub(in crate::emit) fn declared(&self, template: &str) -> String {
        let number = self.number_type();
        let arrays =
            |members: &[Member], kind: &str| listed(members, |m| format!("{kind} *{}; /* {} */", m.name, m.notation));
        let text = print_program(self.program).unwrap_or_else(|_| "(its text is too long)".into());
        self.filled(
            template,
            &[
                ("$conditions", self.conditions()),
                ("$sizes", listed(&self.sizes(), |m| format!("int64_t {};", m.name))),
                ("$inputs", arrays(&self.inputs(), &format!("const {number}"))),
                ("$outputs", arrays(&self.outputs(), number)),
                ("$limit", largest_size(self.nest).to_string()),
                ("$kernels", self.nest.kernels.len().to_string()),
                (
                    "$program",
                    text.trim_end().lines().map(|line| format!(" *     {line}")).collect::<Vec<_>>().join("\n"),
                ),
            ],
        )
    }

    /// What sizes have to satisfy, and what could not be shown for all that do.
    fn conditions(&self) -> String {
        let facts = self.program.facts.iter().map(|fact| constraint(&self.program.params, &[], fact));
        let facts: Vec<String> = facts.collect();
        let text = if facts.is_empty() { "Any sizes.".into() } else { format!("{}.", facts.join(", ")) };
        self.unproven()
            .iter()
            .fold(text, |text, rule| format!("{text}\n * Not shown for all sizes: that the code {rule}."))
    }

    /// What could not be shown for all sizes that the code does, such as `stays inside x[N]`.
    pub fn unproven(&self) -> Vec<String> {
        let rule = |check: &Check| format!("{} {}", check.rule, with_extents(self.nest, &self.nest[check.buffer]));
        let mut rules: Vec<String> = self.nest.checks().iter().map(rule).collect();
        rules.sort();
        rules.dedup();
        rules
    }

    /// How to build a library and the example with CMake.
    pub fn cmake(&self) -> String {
        self.filled(include_str!("CMakeLists.txt"), &[("$options", options(&self.nest.target))])
    }

    /// A program that calls it once at these sizes, one for each free one, and shows the beginning of every result.
    pub fn example(&self, given: &[Int]) -> String {
        let sizes = self.nest.sizes(given);
        let count = |member: &Member| self.nest.elements(TensorId(member.number as u32), &sizes).unwrap_or(0);
        let (inputs, outputs) = (self.inputs(), self.outputs());
        let arrays = |prefix: &str, members: &[Member]| {
            let declared = |m: &Member| {
                format!("    static $number {prefix}_{}[{}]; /* {} */\n", m.name, count(m).max(1), m.notation)
            };
            members.iter().map(declared).collect::<String>()
        };
        let values = |members: Vec<String>| if members.is_empty() { "0".into() } else { members.join(", ") };
        let fields = |prefix: &str, members: &[Member]| {
            values(members.iter().map(|m| format!(".{} = {prefix}_{}", m.name, m.name)).collect())
        };
        let fill = |m: &Member| format!("    fill(in_{}, {});\n", m.name, count(m));
        let show = |m: &Member| format!("    show(\"{}\", out_{}, {});\n", m.notation, m.name, count(m));
        let number = |m: &Member| format!(".{} = {}", m.name, sizes[m.number]);
        self.filled(
            include_str!("example.c"),
            &[
                ("$sizes", values(self.sizes().iter().map(number).collect())),
                ("$arrays", arrays("in", &inputs) + &arrays("out", &outputs)),
                ("$inputs", fields("in", &inputs)),
                ("$outputs", fields("out", &outputs)),
                ("$fill", inputs.iter().map(fill).collect()),
                ("$show", outputs.iter().map(show).collect()),
                ("$number", self.number_type().into()),
            ],
        )
    }

    /// A text with the name, and with a value for each placeholder.
    pub(in crate::emit) fn filled(&self, template: &str, values: &[(&str, String)]) -> String {
        let mut text = template.replace("NAME", self.name);
        for (placeholder, value) in values {
            text = text.replace(placeholder, value);
        }
        text
    }

    fn number_type(&self) -> &'static str {
        match self.real {
            Real::F64 => "double",
            Real::F32 => "float",
        }
    }

    /// The members of `NAME_sizes`: the free sizes.
    pub fn sizes(&self) -> Vec<Member> {
        let params = self.nest.params.iter().enumerate();
        let free = params.filter(|(_, param)| param.kind == ParamKind::Free);
        named(free.map(|(number, param)| (number, param.name.as_str(), param.name.clone())).collect())
    }

    /// The members of `NAME_inputs`.
    pub fn inputs(&self) -> Vec<Member> {
        self.arrays(|scope| if let Scope::Input(position) = scope { Some(position) } else { None })
    }

    /// The members of `NAME_outputs`.
    pub fn outputs(&self) -> Vec<Member> {
        self.arrays(|scope| if let Scope::Output(position) = scope { Some(position) } else { None })
    }

    /// The buffers that have a position, in that order.
    fn arrays(&self, position: impl Fn(Scope) -> Option<usize>) -> Vec<Member> {
        let buffers = self.nest.buffers.iter().enumerate();
        let mut found: Vec<(usize, usize, &Buffer)> =
            buffers.filter_map(|(number, buffer)| Some((position(buffer.scope)?, number, buffer))).collect();
        found.sort_by_key(|(position, ..)| *position);
        let notation = |buffer: &Buffer| match buffer.extents.is_empty() {
            true => buffer.name.clone(),
            false => with_extents(self.nest, buffer),
        };
        named(found.into_iter().map(|(_, number, buffer)| (number, buffer.name.as_str(), notation(buffer))).collect())
    }

    /// From the sizes that are given to all that follows from them.
    fn plan(&self) -> String {
        let common = Common::new(self.nest);
        let names = common.outside();
        let mut lines = self.plan_sizes(&names);
        for (number, buffer) in self.nest.buffers.iter().enumerate() {
            lines.push(format!(
                "plan->bytes[{number}] = {}; /* {} */",
                bytes(&names, buffer),
                with_extents(self.nest, buffer)
            ));
        }
        for (number, kernel) in self.nest.kernels.iter().enumerate() {
            lines.push(format!("plan->items[{number}] = {};", items(&names, &kernel.work)));
            if kernel.work.len() > 1 {
                lines.push(format!("if (plan->items[{number}] == INT64_MAX) return {}_too_large;", self.name));
            }
        }
        for (number, steps) in self.step_counts().into_iter().enumerate() {
            lines.push(format!("plan->steps[{number}] = {};", print::value(&names.affine(steps))));
        }
        lines.extend(self.plan_memory());
        indented(lines)
    }

    /// Where temporaries start, and what the kernel with the most local memory needs.
    fn plan_memory(&self) -> Vec<String> {
        let mut lines = vec!["plan->temporary = plan->local = 0;".into()];
        for slot in slots(self.nest) {
            let starts: String = slot.iter().map(|buffer| format!("plan->start[{buffer}] = ")).collect();
            lines.push(format!("{starts}plan->temporary;"));
            lines.push(format!("plan->temporary = gx_together(plan->temporary, {});", most_bytes(&slot)));
        }
        for kernel in 0..self.nest.kernels.len() {
            let locals: Vec<String> = self.nest.locals(kernel).map(|buffer| buffer.0.to_string()).collect();
            if !locals.is_empty() {
                let total = format!("gx_total(plan, {}, (const int[]){{{}}})", locals.len(), locals.join(", "));
                lines.push(format!("plan->local = gx_most(plan->local, {total});"));
            }
        }
        lines
    }

    pub(in crate::emit) fn plan_sizes(&self, names: &Names) -> Vec<String> {
        let (name, limit, given) = (self.name, print::value(&largest_size(self.nest).into()), self.sizes());
        let mut lines = vec![match given.is_empty() {
            true => "(void)sizes;".into(),
            false => format!("if (!sizes) return {name}_null_pointer;"),
        }];
        for (number, param) in self.nest.params.iter().enumerate() {
            let own = print::value(&names.params[number]);
            let value = match &param.kind {
                ParamKind::Free => {
                    let member = given.iter().find(|member| member.number == number).expect("free sizes are members");
                    format!("sizes->{}", member.name)
                }
                ParamKind::Time(_) => "0".into(),
                ParamKind::Fixed(value) => print::value(&Value::from(value)),
                ParamKind::Smallest(parts) => print::value(&names.extreme(smaller, parts)),
                ParamKind::Largest(parts) => print::value(&names.extreme(larger, parts)),
            };
            lines.push(format!("const int64_t {own} = plan->size[{number}] = {value};"));
            lines.push(format!("if ({own} > {limit}) return {name}_too_large;"));
            lines.push(format!("if ({own} < -{limit}) return {name}_bad_sizes;"));
        }
        let conditions = self.nest.context.iter().map(|condition| print::value(&names.constraint(condition)));
        lines.extend(conditions.map(|condition| format!("if (!({condition})) return {name}_bad_sizes;")));
        lines
    }

    /// A pointer for each buffer.
    pub(in crate::emit) fn place(&self) -> String {
        let (name, touched) = (self.name, self.nest.touched());
        let (inputs, outputs) = (self.inputs(), self.outputs());
        let mut lines = vec!["char *const start = gx_start(workspace);".into(), "(void)start;".into()];
        lines.push(if inputs.is_empty() {
            "(void)in;".into()
        } else {
            format!("if (!in) return {name}_null_pointer;")
        });
        lines.push(format!("if (!out) return {name}_null_pointer;"));
        lines.push(format!("if (plan->temporary && !workspace) return {name}_null_pointer;"));
        let is_touched = |number: usize| touched.contains(&TensorId(number as u32));
        let member = |members: &[Member], number: usize| {
            members.iter().find(|member| member.number == number).map(|member| member.name.clone()).unwrap_or_default()
        };
        for (number, buffer) in self.nest.buffers.iter().enumerate() {
            let value = match buffer.scope {
                Scope::Input(_) => format!("(gx_t *)in->{}", member(&inputs, number)),
                Scope::Output(_) => format!("out->{}", member(&outputs, number)),
                Scope::Run if is_touched(number) => format!("(gx_t *)(void *)(start + plan->start[{number}])"),
                Scope::Run | Scope::Local(_) => "NULL".into(),
            };
            lines.push(format!("buffer[{number}] = {value};"));
            if matches!(buffer.scope, Scope::Input(_) | Scope::Output(_)) && is_touched(number) {
                lines.push(format!("if (!buffer[{number}] && plan->bytes[{number}]) return {name}_null_pointer;"));
            }
        }
        indented(lines)
    }
}

/// Members with names that C and C++ accept.
fn named(found: Vec<(usize, &str, String)>) -> Vec<Member> {
    let names = members(found.iter().map(|(_, name, _)| *name));
    let member = |(name, (number, _, notation)): (String, (usize, &str, String))| Member { name, notation, number };
    names.into_iter().zip(found).map(member).collect()
}

/// The members of a struct, which C wants to have one.
fn listed(members: &[Member], line: impl Fn(&Member) -> String) -> String {
    if members.is_empty() {
        return "    char none; /* there are none: NULL will do */".into();
    }
    indented(members.iter().map(line).collect())
}

pub(in crate::emit) fn indented(lines: Vec<String>) -> String {
    lines.iter().map(|line| format!("    {line}")).collect::<Vec<_>>().join("\n")
}

fn bytes(names: &Names, buffer: &Buffer) -> String {
    if buffer.extents.is_empty() {
        return "gx_bytes(0, NULL)".into();
    }
    let extents: Vec<String> = buffer.extents.iter().map(|extent| print::value(&names.affine(extent))).collect();
    format!("gx_bytes({}, (const int64_t[]){{{}}})", extents.len(), extents.join(", "))
}

/// How many items a kernel has: all along each dimension of its grid.
pub(in crate::emit) fn items(names: &Names, grid: &[Work]) -> String {
    let along = grid.iter().map(|work| items_along(names, work));
    along.reduce(|outer, inner| format!("gx_grid({outer}, {inner})")).unwrap_or("1".into())
}

fn items_along(names: &Names, Work { low, high, step, parts, .. }: &Work) -> String {
    match parts {
        Some(parts) => parts.to_string(),
        None => {
            let [low, high, step] = [low, high, step].map(|affine| print::value(&names.affine(affine)));
            format!("gx_steps({low}, {high}, {step})")
        }
    }
}

/// The bytes of the largest of some buffers.
fn most_bytes(buffers: &[usize]) -> String {
    let all = buffers.iter().map(|buffer| format!("plan->bytes[{buffer}]"));
    all.reduce(|first, next| format!("gx_most({first}, {next})")).expect("a slot has a buffer")
}

/// Temporaries that are never needed at the same time, and share a place: each slot is one.
pub(in crate::emit) fn slots(nest: &Nest) -> Vec<Vec<usize>> {
    let lifetimes = nest.lifetimes().0.into_iter().enumerate();
    let is_temporary = |number: usize| nest.buffers[number].scope == Scope::Run;
    let mut temporaries: Vec<(Lifetime, usize)> =
        lifetimes.filter_map(|(number, life)| Some((life.filter(|_| is_temporary(number))?, number))).collect();
    temporaries.sort();
    let mut slots: Vec<(usize, Vec<usize>)> = Vec::new();
    for ((first, last), number) in temporaries {
        match slots.iter_mut().find(|(end, _)| *end < first) {
            Some((end, slot)) => {
                *end = last;
                slot.push(number);
            }
            None => slots.push((last, vec![number])),
        }
    }
    slots.into_iter().map(|(_, slot)| slot).collect()
}

/// The largest power of two such that all index expressions of sizes up to it, in either direction, have 64 bits.
fn largest_size(nest: &Nest) -> i64 {
    let fits = |limit: i64| {
        let mut known: Vec<Int> = Vec::new();
        for param in &nest.params {
            let most = match &param.kind {
                ParamKind::Free => Int::from(limit),
                ParamKind::Fixed(value) => magnitude(value),
                ParamKind::Smallest(parts) | ParamKind::Largest(parts) => {
                    parts.iter().map(|part| most(part, &known)).max().unwrap_or(Int::ZERO)
                }
                ParamKind::Time(steps) => most(steps, &known),
            };
            known.push(most);
        }
        let work = nest.kernels.iter().flat_map(|kernel| &kernel.work);
        let work = work.flat_map(|work| [&work.low, &work.high, &work.step]);
        let extents = nest.buffers.iter().flat_map(|buffer| &buffer.extents);
        let conditions = nest.context.iter().map(|condition| &condition.affine);
        let mut all = work.chain(extents).chain(conditions).map(|affine| most(affine, &known)).chain(known.clone());
        all.all(|most| most <= Int::from(i64::MAX / 4))
    };
    let limits = std::iter::successors(Some(MAX_SIZE), |limit| Some(limit / 2));
    limits.take_while(|limit| *limit > 0).find(|limit| fits(*limit)).unwrap_or(0)
}

/// What the magnitude of an index expression and of its parts is at most, from those of the sizes.
fn most(affine: &Affine, known: &[Int]) -> Int {
    let atom = |atom: &Atom| match atom {
        Atom::Index(_) => Int::ZERO,
        Atom::Param(ParamId(param)) => known[*param as usize].clone(),
        Atom::Floor(inner, _) => most(inner, known) + Int::ONE,
    };
    let terms = affine.terms().iter().map(|(part, factor)| magnitude(factor) * atom(part));
    terms.fold(magnitude(affine.offset()), |sum, term| sum + term)
}

fn magnitude(number: &Int) -> Int {
    number.clone().max(-number.clone())
}
