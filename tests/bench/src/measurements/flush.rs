//! How many writes share a flush of the disk: as many clients at once beside one, on each engine, on the disk as it is and on one
//! whose flushes take as long as those of disks that are reached over a network.

use std::time::Duration;

use keywright_harness::Server;

use super::set;
use crate::{
    Outcome,
    client::Connection,
    disk::Disk,
    engine::Engine,
    server,
    statistics::{Sample, number},
    table::{Aim, Table, no_aim},
};

/// Measures how many writes go through in a second, and how many flushes that takes.
pub(crate) fn measure() -> Outcome<Table> {
    tokio::runtime::Runtime::new()?.block_on(async {
        let mut table = Table::new(
            format!(
                "{} bytes, versions of a name for each client",
                server::VALUE_BYTES
            ),
            &[
                "",
                &format!("{CLIENTS} clients"),
                "1 client",
                "ratio",
                "aim",
            ],
        );
        for longer in [Duration::ZERO, SLOW_FLUSH] {
            let disk = Disk::with_flushes_longer_by(longer)?;
            for engine in Engine::all_on(&disk) {
                compare(&mut table, &engine, &disk, longer).await?;
            }
        }
        Ok(table)
    })
}

async fn compare(table: &mut Table, engine: &Engine, disk: &Disk, longer: Duration) -> Outcome<()> {
    let database = engine.new_database();
    let options = disk
        .environment()
        .into_iter()
        .fold(database.options(), |options, (name, value)| {
            options.environment(name, &value)
        });
    let server = Server::start_in(server::directory()?, &options).await;
    let mut single = vec![server::connect(&server).await?];
    let mut many = Vec::new();
    for _ in 0..CLIENTS {
        many.push(server::connect(&server).await?);
    }
    let (mut together, mut alone) = (Side::default(), Side::default());
    for round in 0..=ROUNDS {
        // The first round is for warming up.
        let is_kept = round > 0;
        together
            .add(is_kept, disk, &mut many, WRITES_TOGETHER)
            .await?;
        alone.add(is_kept, disk, &mut single, WRITES_ALONE).await?;
    }
    let disk_name = match longer {
        Duration::ZERO => "this disk".to_owned(),
        longer => format!("a flush {} ms longer", longer.as_millis()),
    };
    let [together, alone] = [together, alone].map(Side::medians);
    let ratio = together.writes_per_second / alone.writes_per_second;
    table.row([
        format!("{engine}, {disk_name}: writes/s"),
        format!("{:.0}", together.writes_per_second),
        format!("{:.0}", alone.writes_per_second),
        format!("{ratio:.2}"),
        Aim::AtLeast(RATIO_MIN).verdict(ratio),
    ]);
    table.row([
        format!("{engine}, {disk_name}: flushes for each write"),
        format!("{:.2}", together.flushes_per_write),
        format!("{:.2}", alone.flushes_per_write),
        format!(
            "{:.2}",
            together.flushes_per_write / alone.flushes_per_write
        ),
        no_aim(),
    ]);
    Ok(())
}

/// All rounds of some clients.
#[derive(Default)]
struct Side {
    writes_per_second: Vec<f64>,
    flushes_per_write: Vec<f64>,
}

/// What the rounds come to.
struct Medians {
    writes_per_second: f64,
    flushes_per_write: f64,
}

impl Side {
    /// Has the clients write a round.
    async fn add(
        &mut self,
        is_kept: bool,
        disk: &Disk,
        clients: &mut Vec<Connection>,
        writes: usize,
    ) -> Outcome<()> {
        let flushes_before = disk.flushes()?;
        let name = |client, _| format!("/bench/flush/{client}");
        let round = set::set(clients, writes, name).await?;
        let flushes = u32::try_from(disk.flushes()? - flushes_before)?;
        if is_kept {
            self.writes_per_second.push(round.per_second());
            self.flushes_per_write
                .push(f64::from(flushes) / number(writes));
        }
        Ok(())
    }

    fn medians(self) -> Medians {
        let median = |figures| Sample::new(figures).median();
        Medians {
            writes_per_second: median(self.writes_per_second),
            flushes_per_write: median(self.flushes_per_write),
        }
    }
}

/// How many times as many as one client many clients are to write. Where a flush of the disk takes no longer than the processor
/// works on a write, that is missed: there is little to share.
const RATIO_MIN: f64 = 4.0;

/// As long as a flush takes on a disk that is reached over a network and kept in more than one place.
const SLOW_FLUSH: Duration = Duration::from_millis(5);

const CLIENTS: usize = 64;
const ROUNDS: usize = 5;
/// A multiple of [`CLIENTS`].
const WRITES_TOGETHER: usize = 1_024;
const WRITES_ALONE: usize = 128;
