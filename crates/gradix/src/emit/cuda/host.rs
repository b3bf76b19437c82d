//! What programs in C++ call: a function that starts all kernels on a stream, in one file with them.

use super::narrow::{HALF, reaches};
use super::{file, header, threads};
use crate::emit::c::interface::{Interface, indented, items, slots};
use crate::emit::names::{Common, Names};
use crate::emit::print;
use crate::nest::Buffer;

impl Interface<'_> {
    /// One file of CUDA C++ that needs the CUDA toolkit only, from a nest that was made for a GPU.
    pub fn cuda(&self) -> String {
        let counts = |count: usize| count.max(1).to_string();
        let launched = |kernel: usize| {
            let threads = threads(&self.nest.kernels[kernel]);
            format!(
                "if (gx_launch(gx_kernel_{kernel}, {threads}, plan.items[{kernel}], plan, buffer, stream)) return {}_failed;",
                self.name
            )
        };
        let (indices, steps) = reaches(self.nest);
        let narrow =
            [indices.factor, indices.offset, steps.factor, steps.offset, HALF].map(|limit| format!("{limit:.0}"));
        let entry = self.filled(
            include_str!("host.cu"),
            &[
                ("$kernel_count", counts(self.nest.kernels.len())),
                ("$step_count", counts(self.step_counts().len())),
                ("$stages", indented(self.stages(&self.nest.stages, 0, &launched))),
                ("$size_count", counts(self.nest.params.len())),
                ("$buffer_count", counts(self.nest.buffers.len())),
                ("$plan", self.device_plan()),
                ("$place", self.place()),
                ("$narrow", narrow.join(", ")),
            ],
        );
        let kernels = file(self.nest, self.real, "static");
        format!(
            "{}{}\nnamespace {{\n\n{kernels}\n}} // namespace\n{entry}",
            header(self.nest),
            self.declared(include_str!("host.cuh"))
        )
    }

    /// From the sizes that are given to all that follows from them.
    fn device_plan(&self) -> String {
        let common = Common::new(self.nest);
        let names = common.outside();
        let mut lines = self.plan_sizes(&names);
        for (number, buffer) in self.nest.buffers.iter().enumerate() {
            lines.push(format!("plan->bytes[{number}] = gx_bytes({{{}}});", extents(&names, buffer)));
        }
        for (number, kernel) in self.nest.kernels.iter().enumerate() {
            lines.push(format!("plan->items[{number}] = {};", items(&names, &kernel.work)));
            lines.push(format!("if (plan->items[{number}] == INT64_MAX) return {}_too_large;", self.name));
        }
        for (number, steps) in self.step_counts().into_iter().enumerate() {
            lines.push(format!("plan->steps[{number}] = {};", print::value(&names.affine(steps))));
        }
        for slot in slots(self.nest) {
            let starts: String = slot.iter().map(|buffer| format!("plan->start[{buffer}] = ")).collect();
            let bytes: Vec<String> = slot.iter().map(|buffer| format!("plan->bytes[{buffer}]")).collect();
            lines.push(format!("{starts}plan->temporary;"));
            lines.push(format!("plan->temporary = gx_together(plan->temporary, gx_most({{{}}}));", bytes.join(", ")));
        }
        indented(lines)
    }
}

fn extents(names: &Names, buffer: &Buffer) -> String {
    let extents: Vec<String> = buffer.extents.iter().map(|extent| print::value(&names.affine(extent))).collect();
    extents.join(", ")
}
