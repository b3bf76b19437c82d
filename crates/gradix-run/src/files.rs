//! Arrays in NumPy's file formats: `.npy` holds one array, `.npz` is a zip of `.npy` files, one per name.
//!
//! ```text
//! npy    = "\x93NUMPY" major minor length header elements
//! header = "{'descr': '<f8', 'fortran_order': False, 'shape': (3, 4), }"  padded with spaces
//! ```
//!
//! Every real dtype of either byte order is read, in C and Fortran order, and becomes f64 (64-bit integers round to
//! the nearest). What is written is little-endian and in C order, byte for byte what `numpy.save` writes; zip members
//! carry a fixed date, so the same arrays give the same bytes.
//!
//! Files are not trusted: memory grows with the elements really read, never with the shape that a header claims, and
//! whatever is wrong with a file is a [`FileError`].

use std::fmt;
use std::fs::{self, File};
use std::io::{self, BufReader, BufWriter, Read, Seek, Write};
use std::path::Path;

use gradix::emit::Real;
use zip::result::ZipError;
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, DateTime, ZipArchive, ZipWriter};

use crate::array::{Array, element_count};

/// The type of the elements in a file that is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dtype {
    /// 8 bytes.
    F64,
    /// 4 bytes, rounded to nearest.
    F32,
}

impl Dtype {
    /// The type in generated code.
    pub fn real(self) -> Real {
        match self {
            Dtype::F64 => Real::F64,
            Dtype::F32 => Real::F32,
        }
    }

    /// The nearest value of this type.
    pub fn round(self, value: f64) -> f64 {
        match self {
            Dtype::F64 => value,
            Dtype::F32 => value as f32 as f64,
        }
    }
}

/// What is wrong with a file, and with which.
#[derive(Debug)]
pub struct FileError {
    /// The path, and for a member of an `.npz` its name.
    pub place: String,
    /// What is wrong.
    pub problem: Problem,
}

/// What can be wrong with a file.
#[derive(Debug)]
pub enum Problem {
    /// There is no such file.
    Missing,
    /// There is no such folder to write it into.
    MissingFolder(String),
    /// The system can't read or write it.
    Io(io::Error),
    /// It does not start as an `.npy` file does.
    NotNpy,
    /// It is not a zip file, or one that can't be read; in the words of the zip reader.
    NotNpz(String),
    /// The header is not that of an `.npy` file.
    BadHeader,
    /// The header names a dtype that is not real numbers.
    UnsupportedDtype(String),
    /// The array does not fit into memory.
    TooLarge,
    /// The file ends before the array does.
    Truncated,
}

impl fmt::Display for FileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.place, self.problem)
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Problem::Missing => write!(f, "no such file"),
            Problem::MissingFolder(folder) => write!(f, "there is no folder '{folder}' to write it into"),
            Problem::Io(error) => write!(f, "{error}"),
            Problem::NotNpy => write!(f, "not an .npy file"),
            Problem::NotNpz(reason) => write!(f, "not a readable .npz file ({reason})"),
            Problem::BadHeader => write!(f, "the header of the .npy file is malformed"),
            Problem::UnsupportedDtype(dtype) => write!(f, "dtype {dtype} is not supported, only real numbers are"),
            Problem::TooLarge => write!(f, "the array does not fit into memory"),
            Problem::Truncated => write!(f, "the file ends before its array does"),
        }
    }
}

impl std::error::Error for FileError {}

impl From<io::Error> for Problem {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::NotFound => Problem::Missing,
            io::ErrorKind::UnexpectedEof => Problem::Truncated,
            _ => Problem::Io(error),
        }
    }
}

impl From<ZipError> for Problem {
    fn from(error: ZipError) -> Self {
        match error {
            ZipError::Io(error) => error.into(),
            error => Problem::NotNpz(error.to_string()),
        }
    }
}

/// Reads the array of an `.npy` file.
pub fn read_npy(path: &Path) -> Result<Array, FileError> {
    let array = || read_array(&mut BufReader::new(File::open(path)?));
    array().map_err(|problem| FileError { place: path.display().to_string(), problem })
}

/// Reads the arrays of an `.npz` file whose names are `wanted`, in the order of the file.
pub fn read_npz(path: &Path, wanted: impl Fn(&str) -> bool) -> Result<Vec<(String, Array)>, FileError> {
    let at = |place: String| move |problem| FileError { place, problem };
    let open = || -> Result<_, Problem> { Ok(ZipArchive::new(BufReader::new(File::open(path)?))?) };
    let mut archive = open().map_err(at(path.display().to_string()))?;
    // A name that is no text can't be wanted.
    let names: Vec<String> = archive.file_names().flatten().map(String::from).collect();
    let mut arrays = Vec::new();
    for file_name in names {
        let Some(name) = file_name.strip_suffix(".npy").filter(|name| wanted(name)) else { continue };
        let array = read_member(&mut archive, &file_name).map_err(at(format!("{}: {name}", path.display())))?;
        arrays.push((name.to_string(), array));
    }
    Ok(arrays)
}

/// Writes an `.npy` file.
pub fn write_npy(path: &Path, array: &Array, dtype: Dtype) -> Result<(), FileError> {
    write_whole(path, |writer| write_array(writer, array, dtype))
}

/// Writes a text.
pub fn write_text(path: &Path, text: &str) -> Result<(), FileError> {
    write_whole(path, |writer| Ok(writer.write_all(text.as_bytes())?))
}

/// Writes an `.npz` file of named arrays, in their order.
pub fn write_npz(path: &Path, arrays: &[(&str, &Array)], dtype: Dtype) -> Result<(), FileError> {
    write_whole(path, |writer| {
        let mut archive = ZipWriter::new(writer);
        let written = arrays.iter().try_for_each(|(name, array)| {
            archive.start_file(format!("{name}.npy"), member_options(array))?;
            write_array(&mut archive, array, dtype)
        });
        if let Err(problem) = written {
            // Dropped, it would try to write its directory, and print that this fails, too.
            std::mem::forget(archive);
            return Err(problem);
        }
        archive.finish()?;
        Ok(())
    })
}

/// Writes a file whole or not at all: under another name in the same folder first, which is then renamed.
fn write_whole(path: &Path, write: impl FnOnce(&mut BufWriter<File>) -> Result<(), Problem>) -> Result<(), FileError> {
    let filled = |file: File| -> Result<(), Problem> {
        let mut writer = BufWriter::new(file);
        write(&mut writer)?;
        Ok(writer.flush()?)
    };
    // A file that is reached by a link stays where it is; what is no file, such as /dev/null, can't be replaced.
    let target = path.canonicalize().unwrap_or(path.to_path_buf());
    let written = match target.metadata() {
        Ok(known) if !known.is_file() => File::create(&target).map_err(Problem::from).and_then(filled),
        _ => replaced(&target, filled),
    };
    written.map_err(|problem| FileError { place: path.display().to_string(), problem })
}

fn replaced(target: &Path, filled: impl FnOnce(File) -> Result<(), Problem>) -> Result<(), Problem> {
    let folder = target.parent().filter(|folder| *folder != Path::new("")).unwrap_or(Path::new("."));
    if !folder.is_dir() {
        return Err(Problem::MissingFolder(folder.display().to_string()));
    }
    let name = target.file_name().unwrap_or_default().to_string_lossy();
    let temporary = folder.join(format!(".{name}.{}.tmp", std::process::id()));
    let written = File::create(&temporary).map_err(Problem::from).and_then(filled);
    let renamed = written.and_then(|()| Ok(fs::rename(&temporary, target)?));
    if renamed.is_err() {
        let _ = fs::remove_file(&temporary);
    }
    renamed
}

fn read_member(archive: &mut ZipArchive<impl Read + Seek>, file_name: &str) -> Result<Array, Problem> {
    let mut member = archive.by_name(file_name)?;
    let array = read_array(&mut member)?;
    // The zip reader compares the checksum when it meets the end; as in .npy files, more may follow.
    let _more = member.read(&mut [0])?;
    Ok(array)
}

/// Uncompressed, as `numpy.savez` does, and the same on every machine and day.
fn member_options(array: &Array) -> SimpleFileOptions {
    // Past this a member needs the wider fields of zip64; the half leaves room for its header.
    let large = array.data.len() >= (u32::MAX / 2) as usize / 8;
    SimpleFileOptions::default()
        .compression_method(CompressionMethod::Stored)
        .last_modified_time(DateTime::default())
        .unix_permissions(0o644)
        .large_file(large)
}

const MAGIC: &[u8; 6] = b"\x93NUMPY";

/// The longest header that is read; those of plain arrays have some 100 bytes.
const MAX_HEADER: usize = 1 << 16;

fn read_array(reader: &mut impl Read) -> Result<Array, Problem> {
    let header = Header::parse(&read_header(reader)?)?;
    let element = Element::parse(&header.dtype).ok_or(Problem::UnsupportedDtype(header.dtype))?;
    let count = element_count(&header.shape).ok_or(Problem::TooLarge)?;
    let data = read_elements(reader, &element, count)?;
    Ok(if header.column_major { Array::from_column_major(header.shape, &data) } else { Array::new(header.shape, data) })
}

fn read_header(reader: &mut impl Read) -> Result<String, Problem> {
    let mut start = Vec::new();
    reader.take(8).read_to_end(&mut start)?;
    if start.len() < 8 || !start.starts_with(MAGIC) {
        return Err(Problem::NotNpy);
    }
    let mut length = [0; 4];
    reader.read_exact(&mut length[..if start[6] == 1 { 2 } else { 4 }])?;
    let length = u32::from_le_bytes(length) as usize;
    if length > MAX_HEADER {
        return Err(Problem::BadHeader);
    }
    let mut header = vec![0; length];
    reader.read_exact(&mut header)?;
    String::from_utf8(header).map_err(|_| Problem::BadHeader)
}

fn read_elements(reader: &mut impl Read, element: &Element, count: usize) -> Result<Vec<f64>, Problem> {
    const BATCH: usize = 1 << 13;
    let mut data: Vec<f64> = Vec::new();
    let mut bytes = [0; BATCH * 8];
    while data.len() < count {
        let batch = BATCH.min(count - data.len());
        let bytes = &mut bytes[..batch * element.size];
        reader.read_exact(bytes)?;
        if element.big_endian {
            bytes.chunks_exact_mut(element.size).for_each(<[u8]>::reverse);
        }
        data.try_reserve(batch).map_err(|_| Problem::TooLarge)?;
        data.extend(bytes.chunks_exact(element.size).map(element.decode));
    }
    Ok(data)
}

/// How one element is stored.
struct Element {
    size: usize,
    big_endian: bool,
    /// From `size` bytes, the lowest first.
    decode: fn(&[u8]) -> f64,
}

impl Element {
    /// From NumPy's notation, as in `<f8`; `None` for what is not real numbers.
    fn parse(dtype: &str) -> Option<Element> {
        let big_endian = dtype.starts_with('>');
        let (size, decode): (usize, fn(&[u8]) -> f64) = match dtype.strip_prefix(['<', '>', '|', '='])? {
            "f8" => (8, |bytes| f64::from_le_bytes(array(bytes))),
            "f4" => (4, |bytes| f32::from_le_bytes(array(bytes)).into()),
            "f2" => (2, |bytes| half(u16::from_le_bytes(array(bytes)))),
            "i8" => (8, |bytes| i64::from_le_bytes(array(bytes)) as f64),
            "i4" => (4, |bytes| i32::from_le_bytes(array(bytes)).into()),
            "i2" => (2, |bytes| i16::from_le_bytes(array(bytes)).into()),
            "i1" => (1, |bytes| i8::from_le_bytes(array(bytes)).into()),
            "u8" => (8, |bytes| u64::from_le_bytes(array(bytes)) as f64),
            "u4" => (4, |bytes| u32::from_le_bytes(array(bytes)).into()),
            "u2" => (2, |bytes| u16::from_le_bytes(array(bytes)).into()),
            "u1" => (1, |bytes| bytes[0].into()),
            "b1" => (1, |bytes| f64::from(bytes[0] != 0)),
            _ => return None,
        };
        Some(Element { size, big_endian, decode })
    }
}

fn array<const N: usize>(bytes: &[u8]) -> [u8; N] {
    std::array::from_fn(|k| bytes[k])
}

/// The value of an IEEE half: a sign, 5 bits of exponent with bias 15, 10 bits of fraction.
fn half(bits: u16) -> f64 {
    let fraction = f64::from(bits & 0x3ff) / 1024.0;
    let magnitude = match i32::from(bits >> 10 & 0x1f) {
        0 => fraction * 2f64.powi(-14),
        31 if fraction == 0.0 => f64::INFINITY,
        31 => f64::NAN,
        exponent => (1.0 + fraction) * 2f64.powi(exponent - 15),
    };
    if bits >> 15 == 1 { -magnitude } else { magnitude }
}

/// What the header says.
struct Header {
    dtype: String,
    column_major: bool,
    shape: Vec<usize>,
}

impl Header {
    /// From a Python dictionary with exactly the three keys, in any order.
    fn parse(text: &str) -> Result<Header, Problem> {
        let (mut dtype, mut column_major, mut shape) = (None, None, None);
        let mut scanner = Scanner { rest: text };
        scanner.expect("{")?;
        while !scanner.eat("}") {
            let key = scanner.quoted()?;
            scanner.expect(":")?;
            match key {
                "descr" => dtype = Some(scanner.dtype()?),
                "fortran_order" => column_major = Some(scanner.boolean()?),
                "shape" => shape = Some(scanner.shape()?),
                _ => return Err(Problem::BadHeader),
            }
            if !scanner.eat(",") {
                scanner.expect("}")?;
                break;
            }
        }
        match (dtype, column_major, shape) {
            (Some(dtype), Some(column_major), Some(shape)) => Ok(Header { dtype, column_major, shape }),
            _ => Err(Problem::BadHeader),
        }
    }
}

/// Reads the little of Python's notation that headers use.
struct Scanner<'a> {
    rest: &'a str,
}

impl<'a> Scanner<'a> {
    fn eat(&mut self, symbol: &str) -> bool {
        let rest = self.rest.trim_start().strip_prefix(symbol);
        self.rest = rest.unwrap_or(self.rest);
        rest.is_some()
    }

    fn expect(&mut self, symbol: &str) -> Result<(), Problem> {
        if self.eat(symbol) { Ok(()) } else { Err(Problem::BadHeader) }
    }

    fn quoted(&mut self) -> Result<&'a str, Problem> {
        let quote = if self.eat("\"") { '"' } else { '\'' };
        if quote == '\'' {
            self.expect("'")?;
        }
        let (content, rest) = self.rest.split_once(quote).ok_or(Problem::BadHeader)?;
        self.rest = rest;
        Ok(content)
    }

    /// A string; NumPy writes a list for elements with fields.
    fn dtype(&mut self) -> Result<String, Problem> {
        if self.eat("[") {
            Err(Problem::UnsupportedDtype("with fields".into()))
        } else {
            self.quoted().map(String::from)
        }
    }

    fn boolean(&mut self) -> Result<bool, Problem> {
        if self.eat("True") { Ok(true) } else { self.expect("False").map(|()| false) }
    }

    fn shape(&mut self) -> Result<Vec<usize>, Problem> {
        let mut shape = Vec::new();
        self.expect("(")?;
        while !self.eat(")") {
            shape.push(self.extent()?);
            if !self.eat(",") {
                self.expect(")")?;
                break;
            }
        }
        Ok(shape)
    }

    fn extent(&mut self) -> Result<usize, Problem> {
        let rest = self.rest.trim_start();
        let end = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
        let (digits, rest) = rest.split_at(end);
        // Python 2 wrote long integers as `3L`.
        self.rest = rest.strip_prefix('L').unwrap_or(rest);
        if digits.is_empty() { Err(Problem::BadHeader) } else { digits.parse().map_err(|_| Problem::TooLarge) }
    }
}

fn write_array(writer: &mut impl Write, array: &Array, dtype: Dtype) -> Result<(), Problem> {
    writer.write_all(&header(&array.shape, dtype)?)?;
    for &value in &array.data {
        match dtype {
            Dtype::F64 => writer.write_all(&value.to_le_bytes())?,
            Dtype::F32 => writer.write_all(&(value as f32).to_le_bytes())?,
        }
    }
    Ok(())
}

/// Everything before the elements, of format 1.0, a multiple of 64 bytes.
fn header(shape: &[usize], dtype: Dtype) -> Result<Vec<u8>, Problem> {
    let descr = match dtype {
        Dtype::F64 => "<f8",
        Dtype::F32 => "<f4",
    };
    let extents: Vec<String> = shape.iter().map(usize::to_string).collect();
    let comma = if shape.len() == 1 { "," } else { "" };
    let extents = extents.join(", ");
    let mut text = format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': ({extents}{comma}), }}");
    // NumPy leaves room for the first extent to grow in place.
    text.extend(shape.first().map(|extent| " ".repeat(21usize.saturating_sub(extent.to_string().len()))));
    let before = MAGIC.len() + 4;
    let total = (before + text.len() + 1).next_multiple_of(64);
    let length = u16::try_from(total - before).map_err(|_| Problem::TooLarge)?;
    let mut header = MAGIC.to_vec();
    header.extend([1, 0]);
    header.extend(length.to_le_bytes());
    header.extend(text.bytes());
    header.resize(total - 1, b' ');
    header.push(b'\n');
    Ok(header)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(header: &str, elements: &[u8]) -> Vec<u8> {
        let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
        bytes.extend((header.len() as u16).to_le_bytes());
        bytes.extend(header.bytes());
        bytes.extend(elements);
        bytes
    }

    fn read(bytes: &[u8]) -> String {
        match read_array(&mut &bytes[..]) {
            Ok(array) => format!("{:?} {:?}", array.shape, array.data),
            Err(problem) => problem.to_string(),
        }
    }

    fn check(header: &str, elements: &[u8], expected: &str) {
        assert_eq!(read(&file(header, elements)), expected, "{header}");
    }

    #[test]
    fn headers_are_read_in_any_layout() {
        check("{'descr':'|u1','fortran_order':False,'shape':(2,)}", &[7, 8], "[2] [7.0, 8.0]");
        check("{ \"shape\": (1L, 2L), 'fortran_order': True, 'descr': '|i1', } \n", &[7, 255], "[1, 2] [7.0, -1.0]");
        check("{'descr': '|b1', 'fortran_order': False, 'shape': ()}", &[2, 9, 9], "[] [1.0]");
    }

    #[test]
    fn malformed_headers_are_refused() {
        let malformed = "the header of the .npy file is malformed";
        for header in [
            "",
            "{",
            "{}",
            "{'descr': '<f8', 'fortran_order': False}",
            "{'descr': '<f8', 'fortran_order': 0, 'shape': ()}",
            "{'descr': '<f8', 'fortran_order': False, 'shape': (-1,)}",
            "{'descr': '<f8', 'fortran_order': False, 'shape': (1 2)}",
            "{'descr': '<f8', 'fortran_order': False, 'shape': (1,",
            "{'descr': '<f8, 'fortran_order': False, 'shape': (1,)}",
            "{'descr': '<f8', 'fortran_order': False, 'shape': (), 'more': 1}",
        ] {
            check(header, &[0; 64], malformed);
        }
        assert_eq!(read(b"\x93NUMPY\x02\x00\xff\xff\xff\xff"), malformed);
        assert_eq!(read(b"\x93NUMPY\x01\x00\x02\x00\xff\xff"), malformed);
    }

    #[test]
    fn shapes_past_the_file_are_refused_without_their_memory() {
        let header = |shape: &str| format!("{{'descr': '<f8', 'fortran_order': False, 'shape': {shape}}}");
        check(&header("(1000000000000,)"), &[0; 64], "the file ends before its array does");
        check(&header("(4294967296, 4294967296)"), &[0; 64], "the array does not fit into memory");
        check(&header("(99999999999999999999,)"), &[0; 64], "the array does not fit into memory");
        check(&header("(0, 4294967296, 4294967296)"), &[], "[0, 4294967296, 4294967296] []");
    }

    #[test]
    fn dtypes_that_are_not_real_numbers_are_named() {
        for dtype in ["<c16", "|O", "<U3", "<M8[ns]", "<f16", "f8", "", "é"] {
            let header = format!("{{'descr': '{dtype}', 'fortran_order': False, 'shape': (1,)}}");
            check(&header, &[0; 64], &format!("dtype {dtype} is not supported, only real numbers are"));
        }
        let header = "{'descr': [('a', '<f8')], 'fortran_order': False, 'shape': (1,)}";
        check(header, &[0; 64], "dtype with fields is not supported, only real numbers are");
    }

    #[test]
    fn every_prefix_of_a_file_is_refused() {
        let mut bytes = Vec::new();
        write_array(&mut bytes, &Array::new(vec![2], vec![1.5, -2.5]), Dtype::F64).unwrap();
        assert_eq!(read(&bytes), "[2] [1.5, -2.5]");
        for end in 0..bytes.len() {
            let expected = if end < 8 { "not an .npy file" } else { "the file ends before its array does" };
            assert_eq!(read(&bytes[..end]), expected);
        }
    }

    #[test]
    fn halves_are_exact() {
        let bits = [0x0000, 0x8001, 0x0400, 0x3c01, 0xfbff, 0x7c00];
        let values = [0.0, -(2f64.powi(-24)), 2f64.powi(-14), 1.0009765625, -65504.0, f64::INFINITY];
        assert_eq!(bits.map(half), values);
        assert!(half(0x7e00).is_nan());
    }
}
