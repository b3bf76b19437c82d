//! In which order the kernels of a nest run: one after the other, those of recurrences at every step.

use gradix::Int;
use gradix::nest::{self, evaluate};
use gradix::program::{Affine, ParamId};

use crate::interrupt;

/// The stages of a nest at some sizes.
#[derive(Clone, Debug)]
pub struct Stages(Vec<Stage>);

/// Times are the numbers of sizes.
#[derive(Clone, Debug)]
enum Stage {
    /// A kernel, if each of these steps is below a number.
    Kernel {
        number: usize,
        below: Vec<(usize, i64)>,
    },
    Time {
        time: usize,
        steps: i64,
        falling: bool,
        stages: Stages,
    },
}

impl Stages {
    /// With numbers for the sizes; nothing if one of them is too large.
    pub fn new(stages: &[nest::Stage], sizes: &[Int]) -> Option<Stages> {
        let number = |affine: &Affine| i64::try_from(&evaluate(affine, sizes)).ok();
        let each = |stage: &nest::Stage| match stage {
            nest::Stage::Kernel(kernel, below) => {
                let below = below.iter().map(|(ParamId(time), steps)| Some((*time as usize, number(steps)?)));
                Some(Stage::Kernel { number: *kernel, below: below.collect::<Option<_>>()? })
            }
            nest::Stage::Time(time) => {
                let (ParamId(own), stages) = (time.param, Stages::new(&time.stages, sizes)?);
                Some(Stage::Time { time: own as usize, steps: number(&time.steps)?, falling: time.falling, stages })
            }
        };
        stages.iter().map(each).collect::<Option<_>>().map(Stages)
    }

    /// Calls `kernel` with numbers of kernels in their order, at all steps, which are put into the sizes; `false` if it
    /// said so, or the run was [interrupted](interrupt).
    pub fn run(&self, sizes: &mut [i64], kernel: &mut dyn FnMut(usize, &[i64]) -> bool) -> bool {
        self.0.iter().all(|stage| match stage {
            Stage::Kernel { number, below } => {
                !below.iter().all(|(time, steps)| sizes[*time] < *steps) || kernel(*number, sizes)
            }
            Stage::Time { time, steps, falling, stages } => {
                let all = (0..*steps).all(|step| {
                    sizes[*time] = if *falling { steps - 1 - step } else { step };
                    stages.run(sizes, kernel) && !interrupt::is_due()
                });
                sizes[*time] = 0;
                all
            }
        })
    }
}
