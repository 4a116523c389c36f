//! What the system says of a process (Linux).

use std::{fs, time::Duration};

use rustix::param::clock_ticks_per_second;

use crate::Outcome;

/// The processor time that a process has used so far, all its threads together. Its precision is one clock tick,
/// usually 10 ms.
pub(crate) fn processor_time(process_id: u32) -> Outcome<Duration> {
    let stat = fs::read_to_string(format!("/proc/{process_id}/stat"))?;
    // The second field is the program's name in parentheses, which may hold anything.
    let fields = stat.rsplit(')').next().unwrap_or_default();
    let ticks: u64 = fields
        .split_whitespace()
        .skip(USER_TIME_FIELD)
        .take(2)
        .map(str::parse::<u64>)
        .sum::<Result<_, _>>()?;
    Ok(Duration::from_millis(
        ticks * 1_000 / clock_ticks_per_second(),
    ))
}

/// One of the sizes in a process's status, such as `VmRSS`, in MiB.
pub(crate) fn size_mib(process_id: u32, name: &str) -> Outcome<f64> {
    let status = fs::read_to_string(format!("/proc/{process_id}/status"))?;
    let kibibytes = status
        .lines()
        .find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))
        .and_then(|rest| rest.split_whitespace().next())
        .ok_or_else(|| format!("the status of process {process_id} has no {name}"))?;
    Ok(kibibytes.parse::<f64>()? / 1_024.0)
}

/// The place of the user time behind the name; the system time is next to it.
const USER_TIME_FIELD: usize = 11;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_own_process_has_a_size_and_uses_time() {
        let own = std::process::id();
        assert!(size_mib(own, "VmRSS").unwrap() > 0.1);
        assert!(size_mib(own, "Nothing").is_err());
        let before = processor_time(own).unwrap();
        while processor_time(own).unwrap() == before {
            std::hint::spin_loop();
        }
    }
}
