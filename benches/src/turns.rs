//! Taking turns: everything a row compares is sampled once per round.

use std::num::NonZeroUsize;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};

use crate::finding::Name;

/// One of the things that a row compares.
pub(crate) struct Contender<'a> {
    pub(crate) name: Name,
    /// Takes one sample.
    sample: Box<dyn FnMut() -> Result<f64> + 'a>,
}

impl<'a> Contender<'a> {
    /// Compares what `sample` returns.
    pub(crate) fn new(name: Name, sample: impl FnMut() -> Result<f64> + 'a) -> Self {
        Self {
            name,
            sample: Box::new(sample),
        }
    }

    /// Takes one sample.
    pub(crate) fn sample(&mut self) -> Result<f64> {
        (self.sample)().with_context(|| self.name.to_string())
    }
}

/// How many samples to take.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Effort {
    /// Rounds whose samples are thrown away.
    pub(crate) warm_up: usize,
    /// Rounds at most.
    pub(crate) rounds: usize,
    /// After this time no further round begins, once there are [`FEWEST`].
    pub(crate) time: Duration,
}

/// Makes the orders of the rounds. Any number will do.
const SEED: u64 = 1;

/// Rounds at least, however long they take.
const FEWEST: usize = 3;

impl Effort {
    /// Takes the number of rounds that was asked for, if one was, and then all the time it needs.
    pub(crate) fn asked(self, rounds: Option<NonZeroUsize>) -> Self {
        match rounds {
            Some(rounds) => Self {
                rounds: rounds.get(),
                time: Duration::MAX,
                ..self
            },
            None => self,
        }
    }
}

/// Samples all contenders once per round and returns the samples of each in the order of the rounds.
///
/// Each round has an order of its own, the same in every run: what a contender leaves to be done after its sample (a thread
/// that tidies up, a process that is taken apart) would otherwise always fall on the same successor.
/// A contender of others that fails is left out, and why is told; a failure of this project or of the
/// floor ends the run.
pub(crate) fn take(contenders: Vec<Contender<'_>>, effort: Effort) -> Result<Vec<(Name, Vec<f64>)>> {
    let mut entrants: Vec<(Contender<'_>, Vec<f64>)> = contenders
        .into_iter()
        .map(|contender| (contender, Vec::new()))
        .collect();
    let mut random = fastrand::Rng::with_seed(SEED);
    let mut started = Instant::now();
    for round in 0..effort.warm_up + effort.rounds {
        if round == effort.warm_up {
            started = Instant::now();
        } else if round >= effort.warm_up + FEWEST && started.elapsed() >= effort.time {
            break;
        }
        let mut failed = None;
        let mut order: Vec<usize> = (0..entrants.len()).collect();
        random.shuffle(&mut order);
        for at in order {
            let (contender, samples) = &mut entrants[at];
            match contender.sample() {
                Ok(sample) if round >= effort.warm_up => samples.push(sample),
                Ok(_) => {}
                Err(error) if contender.name.is_a_peer() => {
                    eprintln!("left out: {error:#}");
                    failed = Some(at);
                    break;
                }
                Err(error) => return Err(error),
            }
        }
        if let Some(at) = failed {
            entrants.remove(at);
            // The others' samples of this round have no partners.
            let fewest = entrants
                .iter()
                .map(|(_, samples)| samples.len())
                .min()
                .unwrap_or(0);
            for (_, samples) in &mut entrants {
                samples.truncate(fewest);
            }
        }
    }
    Ok(entrants
        .into_iter()
        .map(|(contender, samples)| (contender.name, samples))
        .collect())
}

/// A duration in microseconds.
pub(crate) fn micros(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e6
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::RefCell;

    const EFFORT: Effort = Effort {
        warm_up: 1,
        rounds: 3,
        time: Duration::MAX,
    };

    #[test]
    fn every_contender_has_one_turn_a_round_and_follows_each_other_one() {
        let order = RefCell::new(Vec::new());
        let contender = |name: Name, letter: char| {
            let order = &order;
            Contender::new(name, move || {
                order.borrow_mut().push(letter);
                Ok(1.0)
            })
        };
        let contenders = vec![
            contender(Name::FLOOR, 'f'),
            contender(Name::peer("p"), 'p'),
            contender(Name::peer("q"), 'q'),
        ];
        let effort = Effort { rounds: 20, ..EFFORT };
        let taken = take(contenders, effort).expect("none fails");
        assert!(
            taken.iter().all(|(_, samples)| samples.len() == 20),
            "the warm-up is not among the samples"
        );
        let order = order.into_inner();
        for round in order.chunks(3) {
            assert!("fpq".chars().all(|letter| round.contains(&letter)), "{round:?}");
        }
        for pair in ["fp", "pf", "fq", "qf", "pq", "qp"] {
            assert!(order.iter().collect::<String>().contains(pair), "{pair}");
        }
    }

    #[test]
    fn a_peer_that_fails_is_left_out_and_the_rest_stays_paired() {
        // The first call is the warm-up's.
        let mut calls = 0;
        let taken = take(
            vec![
                Contender::new(Name::FLOOR, || Ok(1.0)),
                Contender::new(Name::peer("p"), move || {
                    calls += 1;
                    anyhow::ensure!(calls < 2, "broken");
                    Ok(2.0)
                }),
                Contender::new(Name::peer("q"), || Ok(3.0)),
            ],
            EFFORT,
        )
        .expect("a peer's failure is no failure");
        let lengths: Vec<(String, usize)> = taken
            .iter()
            .map(|(name, samples)| (name.to_string(), samples.len()))
            .collect();
        assert_eq!(lengths, [("floor".to_owned(), 2), ("q".to_owned(), 2)]);
    }

    #[test]
    fn a_floor_that_fails_ends_the_run() {
        let failing = Contender::new(Name::FLOOR, || anyhow::bail!("broken"));
        let error = take(vec![failing], EFFORT).expect_err("the floor is needed");
        assert_eq!(format!("{error:#}"), "floor: broken");
    }
}
