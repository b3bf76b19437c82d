//! Code while it is written: what is open, and names that nothing else has.

use super::tree::{Code, Head, Type, Value};

/// Statements in the order of writing. What is opened has to be closed.
pub struct Draft {
    /// What is open, the innermost last: its head, and what stands before `else` where that has come.
    open: Vec<(Head, Option<Vec<Code>>)>,
    /// What is written in each, and outside.
    written: Vec<Vec<Code>>,
    next: usize,
}

impl Default for Draft {
    fn default() -> Self {
        Draft { open: Vec::new(), written: vec![Vec::new()], next: 0 }
    }
}

impl Draft {
    /// All that was written.
    pub fn finish(mut self) -> Vec<Code> {
        assert!(self.open.is_empty(), "what is opened is closed");
        self.written.swap_remove(0)
    }

    pub fn push(&mut self, code: Code) {
        self.written.last_mut().expect("there is an outermost one").push(code);
    }

    /// How many statements the innermost one has.
    pub fn length(&self) -> usize {
        self.written.last().map_or(0, Vec::len)
    }

    /// Takes back what was written in the innermost one since it had this length.
    pub fn taken_from(&mut self, length: usize) -> Vec<Code> {
        self.written.last_mut().expect("there is an outermost one").split_off(length)
    }

    pub fn open(&mut self, head: Head) {
        self.open.push((head, None));
        self.written.push(Vec::new());
    }

    /// Closes the innermost ones of what is open.
    pub fn close(&mut self, count: usize) {
        for _ in 0..count {
            let (head, before) = self.open.pop().expect("something is open");
            let last = self.written.pop().expect("something is open");
            let (body, otherwise) = match before {
                None => (last, Vec::new()),
                Some(before) => (before, last),
            };
            self.push(Code::Under(head, body, otherwise));
        }
    }

    /// `} else {`
    pub fn otherwise(&mut self) {
        let before = std::mem::take(self.written.last_mut().expect("something is open"));
        self.open.last_mut().expect("something is open").1 = Some(before);
    }

    pub fn block(&mut self) {
        self.open(Head::Block);
    }

    pub fn when(&mut self, test: Value) {
        self.open(Head::If(test));
    }

    /// `for (int64_t v = low; v <= high; v += step)`
    pub fn each(&mut self, v: &Value, low: impl Into<Value>, high: &Value, step: impl Into<Value>) {
        self.repeat(vec![(v.clone(), low.into())], v.at_most(high), v, step);
    }

    /// `for (int64_t v = low, end = high; v <= end; v += step)`
    pub fn each_to(&mut self, v: &Value, low: Value, high: Value, step: impl Into<Value>) {
        let end = self.fresh("end", Type::Whole);
        self.repeat(vec![(v.clone(), low), (end.clone(), high)], v.at_most(end), v, step);
    }

    /// `for (int64_t v = begin; v < end; v += step)`
    pub fn steps(&mut self, v: &Value, begin: impl Into<Value>, end: impl Into<Value>, step: impl Into<Value>) {
        self.repeat(vec![(v.clone(), begin.into())], v.below(end), v, step);
    }

    /// `for (; test; v += step)`
    pub fn go_on(&mut self, v: &Value, test: Value, step: impl Into<Value>) {
        self.repeat(Vec::new(), test, v, step);
    }

    fn repeat(&mut self, start: Vec<(Value, Value)>, test: Value, v: &Value, step: impl Into<Value>) {
        let advance = vec![Code::Advance(v.clone(), step.into())];
        self.open(Head::For { start, test, advance, unrolled: false });
    }

    /// `for (int v = 0; v < count; v++)`, written out.
    pub fn unrolled(&mut self, v: &Value, count: Value) {
        let (start, advance) = (vec![(v.clone(), 0.into())], vec![Code::Advance(v.clone(), 1.into())]);
        self.open(Head::For { start, test: v.below(count), advance, unrolled: true });
    }

    /// A name that nothing else has.
    pub fn fresh(&mut self, stem: &str, kind: Type) -> Value {
        self.next += 1;
        Value::name(&format!("gx_{stem}{}", self.next), kind)
    }

    /// A fresh name for a value that stays.
    pub fn constant(&mut self, stem: &str, value: impl Into<Value>) -> Value {
        let value = value.into();
        let name = self.fresh(stem, value.kind());
        self.fix(&name, value);
        name
    }

    /// A fresh name for a value that changes.
    pub fn variable(&mut self, stem: &str, value: impl Into<Value>) -> Value {
        let value = value.into();
        let name = self.fresh(stem, value.kind());
        self.start(&name, value);
        name
    }

    /// `const kind name = value;`
    pub fn fix(&mut self, name: &Value, value: impl Into<Value>) {
        let value = Some(value.into());
        self.push(Code::Declare { name: name.clone(), constant: true, length: None, value });
    }

    /// `kind name = value;`
    pub fn start(&mut self, name: &Value, value: impl Into<Value>) {
        let value = Some(value.into());
        self.push(Code::Declare { name: name.clone(), constant: false, length: None, value });
    }

    /// `kind name[length];`
    pub fn array(&mut self, stem: &str, to: &'static Type, length: impl Into<Value>) -> Value {
        let name = self.fresh(stem, Type::Pointer { to, constant: false, alone: false });
        self.push(Code::Declare { name: name.clone(), constant: false, length: Some(length.into()), value: None });
        name
    }

    pub fn assign(&mut self, place: &Value, value: impl Into<Value>) {
        self.push(Code::Assign(place.clone(), value.into()));
    }

    pub fn advance(&mut self, place: &Value, by: impl Into<Value>) {
        self.push(Code::Advance(place.clone(), by.into()));
    }

    pub fn run(&mut self, call: Value) {
        self.push(Code::Do(call));
    }

    pub fn mention(&mut self, name: &Value) {
        self.push(Code::Mention(name.clone()));
    }
}
