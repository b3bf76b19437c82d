//! The Rust module of a program: typed, safe functions around those of [`Interface`].

use gradix::emit::Real;
use gradix::emit::c::interface::{Interface, Member};
use gradix::program::print::{constraint, print};
use gradix::program::{Affine, Atom, ParamId, ParamKind};

/// Words of Rust that can be names if they are marked, and those that never can.
const WORDS: &str = "abstract as async await become box break const continue do dyn else enum extern false final fn for \
    gen if impl in let loop macro match mod move mut override priv pub ref return static struct trait true try type \
    typeof unsafe unsized use virtual where while yield";
const PATHS: [&str; 4] = ["self", "Self", "super", "crate"];

/// Whether a name is a word of Rust.
pub fn is_word(name: &str) -> bool {
    PATHS.contains(&name) || WORDS.split_whitespace().any(|word| word == name)
}

/// The text of the module.
pub fn text(name: &str, interface: &Interface) -> String {
    let (sizes, inputs, outputs) = (interface.sizes(), interface.inputs(), interface.outputs());
    let module = Module { interface, number: if interface.real == Real::F64 { "f64" } else { "f32" } };
    let lifetime = if inputs.iter().any(|input| !module.is_scalar(input)) { "<'a>" } else { "" };
    let values = [
        ("$documentation", module.documentation()),
        ("$conditions", module.conditions()),
        ("$sizes", fields(&sizes, |_| "i64".into())),
        ("$inputs", fields(&inputs, |m| module.typed(m, "&'a [$number]", "$number"))),
        ("$outputs", fields(&outputs, |m| module.typed(m, "&'a mut [$number]", "&'a mut $number"))),
        ("$results", fields(&outputs, |m| module.typed(m, "Vec<$number>", "$number"))),
        ("$raw_inputs", lines(&inputs, |m| format!("pub {}: *const $number,", field(m)))),
        ("$raw_outputs", lines(&outputs, |m| format!("pub {}: *mut $number,", field(m)))),
        ("$derived", module.derived()),
        ("$check_inputs", lines(&inputs, |m| module.check(m, "inputs"))),
        ("$check_outputs", lines(&outputs, |m| module.check(m, "outputs"))),
        ("$input_pointers", lines(&inputs, |m| module.pointer(m, "as_ptr()", "&raw const inputs"))),
        ("$output_pointers", lines(&outputs, |m| module.pointer(m, "as_mut_ptr()", "&raw mut *outputs"))),
        ("$new", lines(&outputs, |m| module.new_result(m))),
        ("$borrowed", lines(&outputs, |m| module.borrow(m))),
        ("$symbols", interface.name.into()),
        ("$number", module.number.into()),
        ("$name", name.into()),
        ("$'a", lifetime.into()),
    ];
    values.iter().fold(include_str!("module.txt").into(), |text: String, (place, value)| text.replace(place, value))
}

struct Module<'a> {
    interface: &'a Interface<'a>,
    number: &'static str,
}

impl Module<'_> {
    fn documentation(&self) -> String {
        let program = print(self.interface.program).expect("its text was printed before");
        program.trim_end().lines().map(|line| format!("/// {line}\n")).collect()
    }

    fn conditions(&self) -> String {
        let program = self.interface.program;
        let facts: Vec<String> = program.facts.iter().map(|fact| constraint(&program.params, &[], fact)).collect();
        if facts.is_empty() { "any".into() } else { facts.join(", ") }
    }

    fn is_scalar(&self, array: &Member) -> bool {
        self.interface.nest.buffers[array.number].extents.is_empty()
    }

    fn typed(&self, array: &Member, of_array: &str, of_scalar: &str) -> String {
        if self.is_scalar(array) { of_scalar.into() } else { of_array.into() }
    }

    /// How many elements an array has: at checked sizes its index expressions have 64 bits, and it has fewer than all memory.
    fn length(&self, array: &Member) -> String {
        let extents = &self.interface.nest.buffers[array.number].extents;
        let parts: Vec<String> = extents.iter().map(|extent| format!("extent({})", self.affine(extent))).collect();
        parts.join(" * ")
    }

    fn check(&self, array: &Member, from: &str) -> String {
        let (name, field) = (&self.interface.nest.buffers[array.number].name, field(array));
        match self.is_scalar(array) {
            true => String::new(),
            false => format!("fits(\"{name}\", {}, {from}.{field}.len())?;", self.length(array)),
        }
    }

    fn pointer(&self, array: &Member, of_array: &str, of_scalar: &str) -> String {
        let (from, name) = (of_scalar.rsplit([' ', '*']).next().unwrap_or_default(), field(array));
        match self.is_scalar(array) {
            true => format!("{name}: {of_scalar}.{name},"),
            false => format!("{name}: {from}.{name}.{of_array},"),
        }
    }

    fn new_result(&self, array: &Member) -> String {
        match self.is_scalar(array) {
            true => format!("{}: 0.0,", field(array)),
            false => format!("{}: zeros({})?,", field(array), self.length(array)),
        }
    }

    fn borrow(&self, array: &Member) -> String {
        format!("{name}: &mut results.{name},", name = field(array))
    }

    /// The sizes as variables, those that are given and those that follow.
    fn derived(&self) -> String {
        let given = self.interface.sizes();
        let params = self.interface.nest.params.iter().enumerate().map(|(number, param)| {
            let several = |parts: &[Affine], which: &str| {
                let parts: Vec<String> = parts.iter().map(|part| self.affine(part)).collect();
                format!("[{}].into_iter().{which}().unwrap_or(0)", parts.join(", "))
            };
            let value = match &param.kind {
                ParamKind::Free => {
                    let member = given.iter().find(|member| member.number == number).expect("free sizes are members");
                    format!("sizes.{}", field(member))
                }
                ParamKind::Time(_) => "0".into(),
                ParamKind::Fixed(value) => value.to_string(),
                ParamKind::Smallest(parts) => several(parts, "min"),
                ParamKind::Largest(parts) => several(parts, "max"),
            };
            format!("        let size_{number}: i64 = {value};")
        });
        params.collect::<Vec<_>>().join("\n")
    }

    fn affine(&self, affine: &Affine) -> String {
        let atom = |atom: &Atom| match atom {
            Atom::Param(ParamId(param)) => format!("size_{param}"),
            Atom::Floor(inner, divisor) => format!("({}).div_euclid({divisor})", self.affine(inner)),
            Atom::Index(_) => unreachable!("extents are of sizes"),
        };
        let terms = affine.terms().iter().map(|(part, factor)| format!("{factor} * {}", atom(part)));
        terms.chain([affine.offset().to_string()]).collect::<Vec<_>>().join(" + ")
    }
}

/// The public members of a struct with what they are.
fn fields(members: &[Member], kind: impl Fn(&Member) -> String) -> String {
    lines(members, |m| format!("/// `{}`\n        pub {}: {},", m.notation, field(m), kind(m)))
}

fn lines(members: &[Member], line: impl Fn(&Member) -> String) -> String {
    let lines = members.iter().map(line).filter(|line| !line.is_empty());
    lines.map(|line| format!("        {line}\n")).collect()
}

/// The name of a member in Rust.
fn field(member: &Member) -> String {
    match member.name.as_str() {
        name if PATHS.contains(&name) => format!("{name}_"),
        name if is_word(name) => format!("r#{name}"),
        name => name.into(),
    }
}
