//! NVRTC, which compiles CUDA C++ while programs run. It is loaded when it is first asked for.

#![allow(unsafe_code, reason = "functions of a C library")]

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::path::{Path, PathBuf};
use std::{env, ptr};

use libloading::Library;

use crate::note::Note;

type Status = c_int;
type Handle = *mut c_void;

/// The compiler.
pub struct Compiler {
    library: Library,
    /// As in 12.4.
    pub version: String,
}

/// Where the compiler is looked for: `$GRADIX_NVRTC`, then where systems and Python packages have it.
fn candidates() -> Vec<PathBuf> {
    if let Some(named) = env::var_os("GRADIX_NVRTC") {
        return vec![named.into()];
    }
    let names = ["libnvrtc.so", "libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so.11.2", "nvrtc64_120_0.dll"];
    let folders = ["", "/usr/local/cuda/lib64"].map(PathBuf::from).into_iter().chain(of_packages());
    folders.flat_map(|folder| names.map(|name| folder.join(name))).collect()
}

/// Where Python packages of the environment that is active have it: one for CUDA 11 and 12, another for 13.
fn of_packages() -> Vec<PathBuf> {
    let roots = ["VIRTUAL_ENV", "CONDA_PREFIX"].into_iter().filter_map(env::var_os).map(PathBuf::from);
    let versions = roots.filter_map(|root| std::fs::read_dir(root.join("lib")).ok()).flatten().flatten();
    let packages = versions.map(|version| version.path().join("site-packages/nvidia"));
    packages.flat_map(|nvidia| ["cu13/lib", "cuda_nvrtc/lib"].map(|own| nvidia.join(own))).collect()
}

impl Compiler {
    /// Loads the compiler.
    pub fn load() -> Result<Compiler, Note> {
        let found = candidates().iter().find_map(|path| Compiler::open(path).ok());
        let missing = || {
            Note::new("there is no run-time compiler for CUDA (libnvrtc.so)")
                .hint("`pip install nvidia-cuda-nvrtc` has one; name the file in $GRADIX_NVRTC")
        };
        found.ok_or_else(missing)
    }

    /// The compiler in this library.
    pub fn open(path: &Path) -> Result<Compiler, Note> {
        // SAFETY: what is loaded is NVIDIA's compiler, or what the user names.
        let library = unsafe { Library::new(path) }.map_err(|error| Note::new(error.to_string()))?;
        let mut compiler = Compiler { library, version: String::new() };
        let (mut major, mut minor): (c_int, c_int) = (0, 0);
        // SAFETY: two numbers are written.
        unsafe {
            let version: unsafe extern "C" fn(*mut c_int, *mut c_int) -> Status = compiler.function("nvrtcVersion")?;
            compiler.ask(version(&raw mut major, &raw mut minor))?;
        }
        compiler.version = format!("{major}.{minor}");
        Ok(compiler)
    }

    /// # Safety
    ///
    /// The function has this type.
    unsafe fn function<F: Copy>(&self, name: &str) -> Result<F, Note> {
        // SAFETY: as the caller promises.
        let found = unsafe { self.library.get::<F>(name.as_bytes()) };
        found.map(|function| *function).map_err(|error| Note::new(format!("the compiler for CUDA is too old: {error}")))
    }

    fn ask(&self, status: Status) -> Result<(), Note> {
        if status == 0 { Ok(()) } else { Err(Note::new(format!("the compiler for CUDA fails ({status})"))) }
    }

    /// Code for a device of this capability: its own, or that of the nearest older one that the compiler knows, which the driver
    /// translates.
    pub fn compile_for(&self, text: &str, capability: u32, narrow: bool) -> Result<Vec<u8>, Note> {
        let known = self.capabilities()?;
        match known.iter().copied().filter(|known| *known <= capability).max() {
            Some(own) => self.compile(text, own, narrow, own != capability),
            None => {
                let least = known.iter().min().copied().unwrap_or_default();
                let version = &self.version;
                Err(Note::new(format!(
                    "the compiler of CUDA {version} has no code for this GPU: {capability} is below {least}"
                ))
                .hint("an older compiler has; name it in $GRADIX_NVRTC"))
            }
        }
    }

    /// The capabilities of the devices that it has code for.
    fn capabilities(&self) -> Result<Vec<u32>, Note> {
        type Tell = unsafe extern "C" fn(*mut c_int) -> Status;
        let mut count: c_int = 0;
        // SAFETY: these are the functions of NVRTC since 11.2, which write a number and so many numbers.
        unsafe {
            let (many, all): (Tell, Tell) =
                (self.function("nvrtcGetNumSupportedArchs")?, self.function("nvrtcGetSupportedArchs")?);
            self.ask(many(&raw mut count))?;
            let mut known: Vec<c_int> = vec![0; usize::try_from(count).unwrap_or(0)];
            self.ask(all(known.as_mut_ptr()))?;
            Ok(known.into_iter().filter_map(|one| u32::try_from(one).ok()).collect())
        }
    }

    /// Code for a device of this capability; PTX, which any later one takes, if `portable`.
    pub fn compile(&self, text: &str, capability: u32, narrow: bool, portable: bool) -> Result<Vec<u8>, Note> {
        let source = CString::new(text).map_err(|error| Note::new(error.to_string()))?;
        let kind = if portable { "compute" } else { "sm" };
        let mut options = vec![format!("--gpu-architecture={kind}_{capability}"), "--std=c++17".into()];
        options.extend(narrow.then(|| "-DGX_NARROW".into()));
        let options: Vec<CString> = options.into_iter().filter_map(|option| CString::new(option).ok()).collect();
        let pointers: Vec<*const c_char> = options.iter().map(|option| option.as_ptr()).collect();
        type Create = unsafe extern "C" fn(
            *mut Handle,
            *const c_char,
            *const c_char,
            c_int,
            *const *const c_char,
            *const *const c_char,
        ) -> Status;
        type Compile = unsafe extern "C" fn(Handle, c_int, *const *const c_char) -> Status;
        type Destroy = unsafe extern "C" fn(*mut Handle) -> Status;
        let mut program: Handle = ptr::null_mut();
        // SAFETY: these are the functions of NVRTC; all pointers live during the calls.
        unsafe {
            let create: Create = self.function("nvrtcCreateProgram")?;
            let compile: Compile = self.function("nvrtcCompileProgram")?;
            let destroy: Destroy = self.function("nvrtcDestroyProgram")?;
            let name = c"gradix.cu".as_ptr();
            self.ask(create(&raw mut program, source.as_ptr(), name, 0, ptr::null(), ptr::null()))?;
            let status = compile(program, pointers.len() as c_int, pointers.as_ptr());
            let found = match status {
                0 if portable => self.bytes(program, "nvrtcGetPTXSize", "nvrtcGetPTX"),
                0 => self.bytes(program, "nvrtcGetCUBINSize", "nvrtcGetCUBIN"),
                _ => Err(self.refused(program)),
            };
            destroy(&raw mut program);
            found
        }
    }

    /// The first line of what the compiler says is wrong.
    unsafe fn refused(&self, program: Handle) -> Note {
        // SAFETY: the program was made by the compiler.
        let log = unsafe { self.bytes(program, "nvrtcGetProgramLogSize", "nvrtcGetProgramLog") };
        let log =
            log.ok().and_then(|bytes| CStr::from_bytes_until_nul(&bytes).ok().map(|t| t.to_string_lossy().into()));
        let log: String = log.unwrap_or_default();
        let line = log.lines().find(|line| line.contains("error")).unwrap_or("no reason is given");
        Note::new(format!("the compiler for CUDA refuses the code: {line}"))
    }

    /// What two functions tell of a program: a size, and so many bytes.
    unsafe fn bytes(&self, program: Handle, size: &str, get: &str) -> Result<Vec<u8>, Note> {
        type Size = unsafe extern "C" fn(Handle, *mut usize) -> Status;
        type Get = unsafe extern "C" fn(Handle, *mut u8) -> Status;
        let mut count = 0;
        // SAFETY: these are the functions of NVRTC, which write a size and so many bytes.
        unsafe {
            let (size, get): (Size, Get) = (self.function(size)?, self.function(get)?);
            self.ask(size(program, &raw mut count))?;
            let mut bytes = vec![0; count];
            self.ask(get(program, bytes.as_mut_ptr()))?;
            Ok(bytes)
        }
    }
}
