//! What one call computes: the results of a program, or derivatives of them, from arrays of NumPy.
//!
//! ```text
//! objects ─→ Given, one for each slot ─→ sizes ─→ arrays for the results ─→ run, without the lock of the interpreter
//! ```

#![allow(unsafe_code, reason = "kernels read and write the memory of NumPy's arrays")]

use std::sync::{Arc, Mutex, PoisonError};

use gradix::derive::{Derived, SeedInput};
use gradix::diagnostic::counted;
use gradix::program::Places;
use gradix::program::{Program, TensorId};
use gradix::{Int, Resolved};
use gradix_run::View;
use gradix_run::cuda::Stream;
use gradix_run::function::{Bound as Sized, Function, How};
use gradix_run::{Backend, Dtype, Element, Note};
use gradix_view::Source;
use numpy::Element as NumpyElement;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString, PyTuple};

use crate::arrays::{Given, Place, common_type, numpy};
use crate::device;
use crate::errors::{Kind, error, guarded, refuse, warn};
use crate::function::named;
use crate::outputs::{Outputs, tuple};
use crate::signals;

/// Sizes by name.
type Sizes = Vec<(String, Int)>;

/// What one call computes. Made by `Function.plan`.
#[pyclass(frozen, module = "gradix._gradix")]
pub struct Plan {
    /// The program.
    base: Arc<Function>,
    /// The program's text, for messages.
    source: Source,
    /// What is computed, if that is not the program itself.
    derived: Option<Function>,
    /// The sizes of the last call, of the program and of what is computed.
    last: Mutex<Option<(Arc<Sized>, Arc<Sized>)>>,
    /// What runs it, unless a call says otherwise.
    how: How,
    /// What has to be given: the arguments of the program, then tangents or upstream derivatives.
    slots: Vec<Slot>,
    /// How many of them are arguments.
    arguments: usize,
    /// For each input of what is computed, its slot.
    routes: Vec<usize>,
    /// The names of the results.
    results: Vec<String>,
}

/// Something that takes an array.
struct Slot {
    name: String,
    key: Py<PyString>,
    role: Role,
}

/// What stands behind an array that is given.
#[derive(Clone, Copy, PartialEq)]
pub enum Role {
    /// The argument at this place.
    Argument(usize),
    /// The direction in which the argument at this place changes.
    Tangent(usize),
    /// The upstream derivative of the result at this place.
    Upstream(usize),
}

impl Plan {
    /// A plan to compute the program itself, or what was derived from it.
    pub fn new(py: Python<'_>, base: Arc<Function>, source: Source, how: How, derived: Option<Derived>) -> Plan {
        let program = base.program();
        let (seeds, derived) = derived.map(|derived| (derived.seeds, derived.program)).unzip();
        let seeds = seeds.unwrap_or_default();
        let arguments = program.inputs().enumerate();
        let arguments = arguments.map(|(place, tensor)| (program[tensor].name.clone(), Role::Argument(place)));
        let extra = seeds.iter().map(|seed| (seed.name.clone(), role(program, seed)));
        let slot = |(name, role): (String, Role)| Slot { key: PyString::intern(py, &name).unbind(), name, role };
        let slots: Vec<Slot> = arguments.chain(extra).map(slot).collect();
        let arguments = program.inputs().count();
        let computed = derived.as_ref().unwrap_or(program);
        let route = |tensor: TensorId| match seeds.iter().position(|seed| seed.input == Some(tensor)) {
            Some(place) => arguments + place,
            None => slots.iter().position(|slot| slot.name == computed[tensor].name).expect("an input has a slot"),
        };
        let routes = computed.inputs().map(route).collect();
        let results = computed.outputs.iter().map(|&tensor| computed[tensor].name.clone()).collect();
        let derived = derived.map(|program| Function::new(Resolved { program, places: Places::default() }));
        Plan { base, source, derived, last: Mutex::default(), how, slots, arguments, routes, results }
    }
}

/// What an upstream derivative or a tangent stands for.
fn role(program: &Program, seed: &SeedInput) -> Role {
    let argument = program.inputs().position(|input| input == seed.of);
    let result = || program.outputs.iter().position(|output| *output == seed.of).expect("a result");
    argument.map_or_else(|| Role::Upstream(result()), Role::Tangent)
}

#[pymethods]
impl Plan {
    /// The names of the results.
    #[getter]
    fn results(&self) -> Vec<&str> {
        self.results.iter().map(String::as_str).collect()
    }

    /// The names of what is given besides the arguments: tangents, or upstream derivatives.
    #[getter]
    fn extra(&self) -> Vec<&str> {
        self.slots[self.arguments..].iter().map(|slot| slot.name.as_str()).collect()
    }

    /// Computes the results.
    #[pyo3(signature = (args, named, out, threads, backend, dtype, /))]
    #[allow(clippy::too_many_arguments, reason = "the options of a call")]
    fn run<'py>(
        slf: &Bound<'py, Plan>,
        py: Python<'py>,
        args: &Bound<'py, PyTuple>,
        named: &Bound<'py, PyDict>,
        out: Option<&Bound<'py, PyAny>>,
        threads: Option<&Bound<'py, PyAny>>,
        backend: Option<&Bound<'py, PyAny>>,
        dtype: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyTuple>> {
        let is_there = |value: &Bound<'py, PyAny>| device::is_on_device(value);
        if args.iter().any(|value| is_there(&value)) || named.values().iter().any(|value| is_there(&value)) {
            let module = py.import(intern!(py, "gradix._device"))?;
            let results = module.call_method1(intern!(py, "run"), (slf, args, named, out, backend, dtype))?;
            return Ok(results.cast_into::<PyTuple>()?);
        }
        let plan = slf.get();
        guarded(py, || {
            let how = how(threads, backend, plan.how)?;
            let (given, sizes) = plan.gather(py, args, named)?;
            let dtype = match dtype {
                Some(dtype) => wanted_type(dtype)?,
                None => common_type(&given),
            };
            let given = given.into_iter().map(|given| given.into_type(py, dtype));
            let given: Vec<Given<'py>> = given.collect::<PyResult<_>>()?;
            match dtype {
                Dtype::F64 => plan.run_typed::<f64>(py, &given, &sizes, out, how),
                Dtype::F32 => plan.run_typed::<f32>(py, &given, &sizes, out, how),
            }
        })
    }

    /// The names of all that is given, in order.
    #[getter]
    fn slots(&self) -> Vec<&str> {
        self.slots.iter().map(|slot| slot.name.as_str()).collect()
    }

    /// How many of them are arguments.
    #[getter]
    fn arguments(&self) -> usize {
        self.arguments
    }

    /// The names of upstream derivatives of results without dimensions, which are 1 unless given.
    #[getter]
    fn scalars(&self) -> Vec<&str> {
        let program = self.base.program();
        let is_scalar = |slot: &&Slot| match slot.role {
            Role::Upstream(place) => program[program.outputs[place]].rank == 0,
            Role::Argument(_) | Role::Tangent(_) => false,
        };
        self.slots.iter().filter(is_scalar).map(|slot| slot.name.as_str()).collect()
    }

    /// Starts the computation on a stream of the GPU: of arrays in C order, by their shapes and addresses, one for each slot,
    /// into those of the results.
    #[pyo3(signature = (shapes, addresses, sizes, results, dtype, stream, /))]
    #[allow(clippy::too_many_arguments, reason = "what a call consists of")]
    fn run_on_device(
        &self,
        py: Python<'_>,
        shapes: Vec<Vec<usize>>,
        addresses: Vec<u64>,
        sizes: Vec<(String, i64)>,
        results: Vec<u64>,
        dtype: &str,
        stream: u64,
    ) -> PyResult<()> {
        guarded(py, || {
            if addresses.len() != self.slots.len() || shapes.len() != self.slots.len() {
                return Err(error(py, Kind::Argument, format!("{} arrays are expected", self.slots.len())));
            }
            let (dtype, _) = device::type_of(py, dtype)?;
            let arguments: Vec<Option<&[usize]>> =
                shapes[..self.arguments].iter().map(|shape| Some(shape.as_slice())).collect();
            let (bound, computed) = self.bind(py, &arguments, &named(sizes))?;
            self.check_extra(py, shapes.iter().map(Vec::as_slice), &bound)?;
            let computed = computed.as_ref().unwrap_or(&bound);
            if results.len() != computed.outputs.len() {
                return Err(error(py, Kind::Argument, format!("{} results are expected", computed.outputs.len())));
            }
            let inputs: Vec<u64> = self.routes.iter().map(|&slot| addresses[slot]).collect();
            let function = self.derived.as_ref().unwrap_or(&self.base);
            // SAFETY: as the caller, which is a part of this package, promises: there is memory of the device with the elements
            // of these shapes, which lives until the stream has come so far.
            let run = || unsafe { function.run_on_device(computed, dtype, &inputs, &results, Stream(stream)) };
            let told = signals::detached(py, run)?;
            warn(py, &told.map_err(|error| refuse(py, Kind::Run, &[error], &self.source))?)
        })
    }

    /// The sizes and the shapes of the results for arrays of these shapes, one for each argument.
    #[pyo3(signature = (shapes, sizes, /))]
    #[allow(clippy::type_complexity, reason = "as Python sees it")]
    fn shapes(
        &self,
        py: Python<'_>,
        shapes: Vec<Vec<usize>>,
        sizes: Vec<(String, i64)>,
    ) -> PyResult<(Vec<(String, i64)>, Vec<Vec<usize>>)> {
        guarded(py, || {
            let sizes = named(sizes);
            let shapes: Vec<Option<&[usize]>> = shapes.iter().map(|shape| Some(shape.as_slice())).collect();
            let (bound, computed) = self.bind(py, &shapes, &sizes)?;
            let program = self.base.program();
            let named = program.params.iter().zip(&bound.sizes);
            let named = named.map(|(param, size)| (param.name.clone(), i64::try_from(size).unwrap_or(i64::MAX)));
            Ok((named.collect(), computed.as_ref().unwrap_or(&bound).outputs.clone()))
        })
    }
}

impl Plan {
    /// What is given for each slot, and sizes by name.
    fn gather<'py>(
        &self,
        py: Python<'py>,
        args: &Bound<'py, PyTuple>,
        named: &Bound<'py, PyDict>,
    ) -> PyResult<(Vec<Given<'py>>, Sizes)> {
        if args.len() > self.arguments {
            return Err(self.too_many(py, args.len()));
        }
        let mut found: Vec<Option<Given<'py>>> = Vec::with_capacity(self.slots.len());
        for (value, slot) in args.iter_borrowed().zip(&self.slots) {
            found.push(Some(Given::new(&value, &slot.name)?));
        }
        found.resize_with(self.slots.len(), || None);
        let mut sizes = Vec::new();
        for (key, value) in named.iter() {
            let place = self.slots.iter().position(|slot| slot.key.bind(py).is(&key));
            let place = match place {
                Some(place) => Some(place),
                None => {
                    let key = key.cast::<PyString>()?.to_cow()?;
                    self.slots.iter().position(|slot| slot.name == key)
                }
            };
            match place {
                Some(place) if found[place].is_some() => {
                    let message = format!("'{}' is given twice, by place and by name", self.slots[place].name);
                    return Err(error(py, Kind::Argument, message));
                }
                Some(place) => found[place] = Some(Given::new(&value, &self.slots[place].name)?),
                None => sizes.push(self.size(py, &key.cast::<PyString>()?.to_cow()?, &value)?),
            }
        }
        let filled = found.into_iter().zip(&self.slots).map(|(given, slot)| match given {
            Some(given) => Ok(given),
            None => self.default(py, slot),
        });
        Ok((filled.collect::<PyResult<_>>()?, sizes))
    }

    fn too_many(&self, py: Python<'_>, given: usize) -> PyErr {
        let names = |slots: &[Slot]| slots.iter().map(|slot| slot.name.as_str()).collect::<Vec<_>>().join(", ");
        let (arguments, extra) = self.slots.split_at(self.arguments);
        let known = format!("there are {}: {}", arguments.len(), names(arguments));
        let by_name = if extra.is_empty() { String::new() } else { format!("; by name there is {}", names(extra)) };
        let given = counted(given, "argument");
        error(py, Kind::Argument, format!("{given} are given by place, but {known}{by_name}"))
    }

    /// A size that is given by name.
    fn size(&self, py: Python<'_>, name: &str, value: &Bound<'_, PyAny>) -> PyResult<(String, Int)> {
        let program = self.base.program();
        if !program.params.iter().any(|param| param.name == name) {
            let known: Vec<&str> = self.slots.iter().map(|slot| slot.name.as_str()).collect();
            let known = if known.is_empty() { "it has none".into() } else { format!("there is {}", known.join(", ")) };
            return Err(error(py, Kind::Argument, format!("the program has no argument or size '{name}'; {known}")));
        }
        let size = value.extract::<i64>().map_err(|_| {
            let given = value.repr().map_or(String::new(), |text| text.to_string());
            error(py, Kind::Argument, format!("the size '{name}' is a whole number of 64 bits, and {given} is given"))
        })?;
        Ok((name.to_string(), Int::from(size)))
    }

    /// What an array is when it is not given: 1 for the upstream derivative of a scalar.
    fn default<'py>(&self, py: Python<'py>, slot: &Slot) -> PyResult<Given<'py>> {
        let program = self.base.program();
        let name = &slot.name;
        let message = match slot.role {
            Role::Argument(_) if OPTIONS.contains(&&**name) => {
                format!("the argument '{name}' is not given; as there is an option of that name, it goes by place")
            }
            Role::Argument(_) => format!("the argument '{name}' is not given"),
            Role::Tangent(place) => {
                let of = program.inputs().nth(place).map_or("", |tensor| &program[tensor].name);
                format!("'{name}', the tangent of '{of}', is not given")
            }
            Role::Upstream(place) if program[program.outputs[place]].rank == 0 => return Ok(Given::Number(1.0)),
            Role::Upstream(place) => {
                let of = &program[program.outputs[place]].name;
                format!("'{name}', the derivative of the loss by '{of}', is not given; it has the shape of '{of}'")
            }
        };
        Err(error(py, Kind::Argument, message))
    }

    /// The program at the sizes that follow from the shapes of arguments, and what is computed at the same sizes.
    #[allow(clippy::type_complexity, reason = "a pair")]
    fn bind(
        &self,
        py: Python<'_>,
        shapes: &[Option<&[usize]>],
        sizes: &[(String, Int)],
    ) -> PyResult<(Arc<Sized>, Option<Arc<Sized>>)> {
        let wrong = |errors: Vec<gradix::Diagnostic>| {
            let kind = match errors.first().map(|error| error.code) {
                Some("unknown-size") => Kind::Argument,
                Some("run") => Kind::Run,
                _ => Kind::Shape,
            };
            refuse(py, kind, &errors, &self.source)
        };
        let bound = self.base.bind(shapes, sizes).map_err(wrong)?;
        let Some(derived) = &self.derived else { return Ok((bound, None)) };
        // Nothing of Python's is done while the lock is held: another thread may wait for it with Python's own.
        let last = || self.last.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((known, computed)) = last().clone()
            && Arc::ptr_eq(&known, &bound)
        {
            return Ok((bound, Some(computed)));
        }
        let computed = derived.bind_like(self.base.program(), &bound.sizes).map_err(wrong)?;
        *last() = Some((Arc::clone(&bound), Arc::clone(&computed)));
        Ok((bound, Some(computed)))
    }

    fn run_typed<'py, T: Element + NumpyElement>(
        &self,
        py: Python<'py>,
        given: &[Given<'py>],
        sizes: &[(String, Int)],
        out: Option<&Bound<'py, PyAny>>,
        how: How,
    ) -> PyResult<Bound<'py, PyTuple>> {
        let shapes: Vec<Option<&[usize]>> = given[..self.arguments].iter().map(|given| Some(given.shape())).collect();
        let (bound, computed) = self.bind(py, &shapes, sizes)?;
        self.check_extra(py, given.iter().map(Given::shape), &bound)?;
        let computed = computed.as_ref().unwrap_or(&bound);
        let numbers: Vec<T> =
            given.iter().map(|given| if let Given::Number(x) = given { T::from_f64(*x) } else { T::ZERO }).collect();
        let places: Vec<Place> = given.iter().map(|given| Place::new::<T>(given)).collect();
        let views: Vec<View<'_, T>> = places.iter().zip(&numbers).map(|(place, number)| place.view(number)).collect();
        let inputs: Vec<View<'_, T>> = self.routes.iter().map(|&slot| views[slot]).collect();
        let outputs = Outputs::<T>::new(py, &self.results, &computed.outputs, out, &views)?;
        let work = Work { inputs: &inputs, outputs: outputs.pointers() };
        let function = self.derived.as_ref().unwrap_or(&self.base);
        let told = signals::detached(py, || work.run(function, computed, how))?;
        warn(py, &told.map_err(|error| refuse(py, Kind::Run, &[error], &self.source))?)?;
        outputs.finish(py)
    }

    /// Tangents have the shapes of arguments, upstream derivatives those of results.
    fn check_extra<'a>(
        &self,
        py: Python<'_>,
        shapes: impl Iterator<Item = &'a [usize]>,
        bound: &Sized,
    ) -> PyResult<()> {
        let program = self.base.program();
        for (slot, shape) in self.slots.iter().zip(shapes).skip(self.arguments) {
            let (expected, of) = match slot.role {
                Role::Argument(_) => continue,
                Role::Tangent(place) => (&bound.inputs[place], program.inputs().nth(place)),
                Role::Upstream(place) => (&bound.outputs[place], Some(program.outputs[place])),
            };
            if shape != expected.as_slice() {
                let of = of.map_or("", |tensor| &program[tensor].name);
                let (given, expected) = (tuple(shape), tuple(expected));
                let message = format!("'{}' has shape {given}, but {expected}, that of '{of}', is expected", slot.name);
                return Err(error(py, Kind::Shape, message));
            }
        }
        Ok(())
    }
}

/// What runs without the lock of the interpreter.
struct Work<'a, T> {
    inputs: &'a [View<'a, T>],
    outputs: Vec<*mut T>,
}

// SAFETY: the pointers are to arrays that the caller keeps alive, and are used by one thread at a time.
unsafe impl<T> Send for Work<'_, T> {}
// SAFETY: as above.
unsafe impl<T> Sync for Work<'_, T> {}

impl<T: Element> Work<'_, T> {
    fn run(&self, function: &Function, bound: &Sized, how: How) -> Result<Vec<Note>, gradix::Diagnostic> {
        // SAFETY: the views are of arrays whose shapes were bound, with memory for every element; `Outputs` has seen to it
        // that the results are dense, writable and overlap nothing.
        unsafe { function.run(bound, how, self.inputs, &self.outputs) }
    }
}

/// The options of a call, which an argument can't be given under the names of.
const OPTIONS: [&str; 6] = ["out", "threads", "backend", "dtype", "wrt", "of"];

/// What runs a program, if it is not the `usual`.
pub fn how(threads: Option<&Bound<'_, PyAny>>, backend: Option<&Bound<'_, PyAny>>, usual: How) -> PyResult<How> {
    let wrong = |given: &Bound<'_, PyAny>, expected: String| {
        let text = given.repr().map_or(String::new(), |text| text.to_string());
        error(given.py(), Kind::Argument, format!("{expected}, and {text} is given"))
    };
    let threads = match threads {
        None => usual.threads,
        Some(given) => match given.extract::<i64>() {
            Ok(threads) if threads >= 1 => Some(usize::try_from(threads).unwrap_or(usize::MAX)),
            _ => return Err(wrong(given, "'threads' is a whole number of at least 1".into())),
        },
    };
    let backend = match backend {
        None => usual.backend,
        Some(given) => {
            let found = given.extract::<String>().ok().and_then(|name| self::backend(&name));
            found.ok_or_else(|| wrong(given, format!("'backend' is one of {}", BACKENDS.join(", "))))?
        }
    };
    Ok(How { backend, threads })
}

const BACKENDS: [&str; 5] = ["auto", "native", "vm", "interp", "cuda"];

/// The backend of a name.
pub fn backend(name: &str) -> Option<Backend> {
    let backends = [Backend::Auto, Backend::Native, Backend::Vm, Backend::Interp, Backend::Cuda];
    BACKENDS.iter().zip(backends).find(|(known, _)| **known == name).map(|(_, backend)| backend)
}

fn wanted_type(dtype: &Bound<'_, PyAny>) -> PyResult<Dtype> {
    let py = dtype.py();
    let name = numpy(py)?.call_method1(intern!(py, "dtype"), (dtype,)).and_then(|dtype| dtype.getattr("name"));
    match name.and_then(|name| name.extract::<String>()).as_deref() {
        Ok("float64") => Ok(Dtype::F64),
        Ok("float32") => Ok(Dtype::F32),
        _ => {
            let text = dtype.repr().map_or(String::new(), |text| text.to_string());
            Err(error(py, Kind::Dtype, format!("'dtype' is {text}, but float64 or float32 is expected")))
        }
    }
}
