//! Lines of C, and index expressions in C.

use crate::nest::{Kernel, Nest};
use crate::program::expr::Number;
use crate::program::{Affine, Atom, Constraint, ParamId, Range, Relation, TensorId, names};
use gradix_int::Int;
use std::collections::{BTreeSet, HashMap, HashSet};
use std::fmt::Write;
use std::rc::Rc;

/// Indented lines.
pub struct Lines {
    pub text: String,
    depth: usize,
}

impl Lines {
    pub fn at(depth: usize) -> Self {
        Lines { text: String::new(), depth }
    }

    pub fn line(&mut self, line: impl AsRef<str>) {
        let _ = writeln!(self.text, "{}{}", "    ".repeat(self.depth), line.as_ref());
    }

    /// A line that ends in `{`, and what is inside.
    pub fn open(&mut self, line: impl AsRef<str>) {
        self.line(format!("{} {{", line.as_ref()));
        self.depth += 1;
    }

    pub fn close(&mut self) {
        self.depth -= 1;
        self.line("}");
    }

    /// `} else {`
    pub fn otherwise(&mut self) {
        self.depth -= 1;
        self.line("} else {");
        self.depth += 1;
    }
}

/// Functions that several kernels call, each once.
#[derive(Default)]
pub struct Shared {
    functions: Vec<String>,
    /// The name of each, by its text without one.
    known: HashMap<String, String>,
}

impl Shared {
    /// Adds a function under its name.
    pub fn add(&mut self, name: String, text: String) {
        if !self.known.contains_key(&text) {
            self.functions.push(text.clone());
            self.known.insert(text, name);
        }
    }

    /// The name of a function whose text is made from its name; equal ones are one.
    pub fn function(&mut self, stem: &str, text: impl Fn(&str) -> String) -> String {
        let functions = &mut self.functions;
        let name = self.known.entry(text("")).or_insert_with(|| {
            let name = format!("{stem}_{}", functions.len());
            functions.push(text(&name));
            name
        });
        name.clone()
    }

    /// All of them.
    pub fn text(&self) -> String {
        self.functions.iter().map(|text| format!("\n{text}")).collect()
    }
}

/// C names of sizes and buffers, the same in all kernels.
pub struct Common {
    params: Rc<[String]>,
    buffers: Rc<[String]>,
    taken: HashSet<String>,
}

impl Common {
    pub fn new(nest: &Nest) -> Self {
        let mut taken: HashSet<String> = RESERVED.split_whitespace().map(String::from).collect();
        let mut name = |text: &str| names::fresh(&ascii(text), &mut taken);
        let params = nest.params.iter().map(|p| name(&p.name)).collect();
        let buffers = nest.buffers.iter().map(|t| name(&t.name)).collect();
        Common { params, buffers, taken }
    }
}

/// C names of what a kernel speaks of; what is used is noted.
pub struct Names {
    pub params: Rc<[String]>,
    pub buffers: Rc<[String]>,
    pub variables: Vec<String>,
    pub used_params: BTreeSet<usize>,
    pub used_buffers: BTreeSet<usize>,
    next: usize,
}

/// Words that C, its headers or the generated code use.
const RESERVED: &str = "auto break case char const continue default do double else enum extern float for goto if inline \
    int long register restrict return short signed sizeof static struct switch typedef union unsigned void volatile \
    while bool true false complex imaginary asm typeof size buffer local begin end item first last int64_t int32_t \
    uint64_t uint32_t uint8_t memcpy memset malloc free calloc NULL INFINITY NAN main y0 y1 yn j0 j1 jn gamma signgam \
    unix linux";

impl Names {
    pub fn new(common: &Common, kernel: &Kernel) -> Self {
        let mut own: HashSet<String> = HashSet::new();
        let name = |text: &String| {
            let free = names::fresh_where(&ascii(text), |name| common.taken.contains(name) || own.contains(name));
            own.insert(free.clone());
            free
        };
        let variables = ["first", "last", "item"].map(String::from).into_iter();
        let variables = variables.chain(kernel.variables[3..].iter().map(name)).collect();
        let (params, buffers) = (common.params.clone(), common.buffers.clone());
        let (used_params, used_buffers) = (BTreeSet::new(), BTreeSet::new());
        Names { params, buffers, variables, used_params, used_buffers, next: 0 }
    }

    /// Counts fresh names from the start again, in a function of its own; gives what [`Names::resume`] takes.
    pub fn restart(&mut self) -> usize {
        std::mem::take(&mut self.next)
    }

    /// Goes on where [`Names::restart`] stopped.
    pub fn resume(&mut self, next: usize) {
        self.next = next;
    }

    /// A name that nothing else has.
    pub fn fresh(&mut self, stem: &str) -> String {
        self.next += 1;
        format!("gx_{stem}{}", self.next)
    }

    pub fn affine(&mut self, affine: &Affine) -> String {
        let mut text = String::new();
        for (atom, factor) in affine.terms() {
            let atom = match atom {
                Atom::Index(v) => self.variables[*v as usize].clone(),
                Atom::Param(ParamId(p)) => {
                    self.used_params.insert(*p as usize);
                    self.params[*p as usize].clone()
                }
                Atom::Floor(inner, c) => format!("gx_floor_div({}, {})", self.affine(inner), integer(c)),
            };
            let negative = *factor < Int::ZERO;
            let magnitude = if negative { -factor.clone() } else { factor.clone() };
            let sign = match (text.is_empty(), negative) {
                (true, true) => "-",
                (true, false) => "",
                (false, true) => " - ",
                (false, false) => " + ",
            };
            let scale = if magnitude == Int::ONE { String::new() } else { format!("{}*", integer(&magnitude)) };
            let _ = write!(text, "{sign}{scale}{atom}");
        }
        let offset = affine.offset();
        if text.is_empty() {
            return integer(offset);
        }
        if *offset > Int::ZERO {
            let _ = write!(text, " + {}", integer(offset));
        } else if *offset < Int::ZERO {
            let _ = write!(text, " - {}", integer(&-offset.clone()));
        }
        text
    }

    /// The largest of the lower bounds.
    pub fn low(&mut self, range: &Range) -> String {
        self.extreme("gx_larger", &range.low)
    }

    /// The smallest of the upper bounds.
    pub fn high(&mut self, range: &Range) -> String {
        self.extreme("gx_smaller", &range.high)
    }

    fn extreme(&mut self, function: &str, bounds: &[Affine]) -> String {
        let mut parts: Vec<String> = bounds.iter().map(|b| self.affine(b)).collect();
        let mut text = parts.pop().expect("a range has bounds");
        while let Some(part) = parts.pop() {
            text = format!("{function}({part}, {text})");
        }
        text
    }

    pub fn constraint(&mut self, constraint: &Constraint) -> String {
        let affine = self.affine(&constraint.affine);
        match constraint.relation {
            Relation::NonNegative => format!("{affine} >= 0"),
            Relation::Zero => format!("{affine} == 0"),
        }
    }

    /// All constraints, joined.
    pub fn all(&mut self, constraints: &[Constraint]) -> String {
        let parts: Vec<String> = constraints.iter().map(|c| self.constraint(c)).collect();
        parts.join(" && ")
    }

    /// How many elements apart neighbours in a dimension are.
    pub fn stride(&mut self, nest: &Nest, buffer: TensorId, dimension: usize) -> String {
        let extents = &nest[buffer].extents[dimension + 1..];
        if extents.iter().all(|e| e.as_constant().is_some()) {
            return integer(&extents.iter().fold(Int::ONE, |p, e| p * e.as_constant().expect("a number")));
        }
        self.used_buffers.insert(buffer.0 as usize);
        format!("gx_{}_{dimension}", self.buffers[buffer.0 as usize])
    }

    /// The place of an element, in elements from the start of its buffer.
    pub fn offset(&mut self, nest: &Nest, buffer: TensorId, subscripts: &[Affine]) -> String {
        let mut parts = Vec::new();
        for (dimension, subscript) in subscripts.iter().enumerate() {
            if subscript.as_constant() == Some(&Int::ZERO) {
                continue;
            }
            let stride = self.stride(nest, buffer, dimension);
            let text = self.affine(subscript);
            parts.push(match stride.as_str() {
                "1" => text,
                _ => format!("({text})*{stride}"),
            });
        }
        if parts.is_empty() { "0".into() } else { parts.join(" + ") }
    }

    /// The address of an element.
    pub fn address(&mut self, nest: &Nest, buffer: TensorId, subscripts: &[Affine]) -> String {
        self.used_buffers.insert(buffer.0 as usize);
        let offset = self.offset(nest, buffer, subscripts);
        let name = &self.buffers[buffer.0 as usize];
        if offset == "0" { name.clone() } else { format!("{name} + {offset}") }
    }

    /// An element.
    pub fn element(&mut self, nest: &Nest, buffer: TensorId, subscripts: &[Affine]) -> String {
        self.used_buffers.insert(buffer.0 as usize);
        let offset = self.offset(nest, buffer, subscripts);
        format!("{}[{offset}]", self.buffers[buffer.0 as usize])
    }

    /// How far apart the elements of an access are when a variable advances by 1.
    pub fn step(&mut self, nest: &Nest, buffer: TensorId, subscripts: &[Affine], variable: usize) -> String {
        let atom = Atom::Index(variable as u32);
        let mut parts = Vec::new();
        for (dimension, subscript) in subscripts.iter().enumerate() {
            let factor = subscript.coefficient(&atom);
            if factor == Int::ZERO {
                continue;
            }
            let stride = self.stride(nest, buffer, dimension);
            parts.push(match (stride.as_str(), factor == Int::ONE) {
                ("1", _) => integer(&factor),
                (_, true) => stride,
                (_, false) => format!("{}*{stride}", integer(&factor)),
            });
        }
        if parts.is_empty() { "0".into() } else { parts.join(" + ") }
    }
}

/// A whole number as C writes it.
pub fn integer(value: &Int) -> String {
    match i64::try_from(value) {
        Ok(i64::MIN) => "INT64_MIN".into(),
        Ok(value) if value.unsigned_abs() > i32::MAX as u64 => format!("INT64_C({value})"),
        _ => value.to_string(),
    }
}

/// A value as C writes it.
pub fn literal(number: Number, single: bool) -> String {
    let value = if single { f64::from(number.value() as f32) } else { number.value() };
    let suffix = if single { "f" } else { "" };
    if value.is_nan() {
        return "GX_NAN".into();
    }
    if value.is_infinite() {
        return if value > 0.0 { "GX_INF".into() } else { "-GX_INF".into() };
    }
    let magnitude = if single { format!("{:?}", value as f32) } else { format!("{value:?}") };
    if value.is_sign_negative() { format!("({magnitude}{suffix})") } else { format!("{magnitude}{suffix}") }
}

/// Letters, digits and `_` only.
fn ascii(text: &str) -> String {
    let mut plain = String::new();
    for c in text.chars() {
        match c.is_ascii_alphanumeric() || c == '_' {
            true => plain.push(c),
            false => drop(write!(plain, "u{:x}", c as u32)),
        }
    }
    // Names of two kinds belong to the generated code or to the compiler.
    if plain.starts_with("gx_") || plain.starts_with('_') { format!("n{plain}") } else { plain }
}
