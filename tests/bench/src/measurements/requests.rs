//! The cost of requests to the server, by kind, database and number of clients.
//!
//! All rows of a group are measured alternately, one round of each at a time, and each row on every server: this build, the other
//! build if two are compared, and the [reference servers](crate::reference_server) if a goal refers to them.

use std::{path::Path, time::Duration};

use keywright_harness::Server;
use serde_json::json;
use tokio::task::JoinSet;

use crate::{
    disk::Disk,
    load::{self, Cost, MakeRequest, Pace, Side},
    measurements::Arguments,
    process,
    reference_server::{self, ReferenceServer},
    server::{self, Connection, Request, ServerAddress},
    statistics::Outcome,
    store::Engine,
    table::{Table, Threshold},
};

/// Rows that are measured alternately.
struct Group {
    /// The name of the measurement that includes this group.
    measurement: &'static str,
    what: &'static str,
    request: MakeRequest,
    /// The delay added to each disk flush.
    flushes_longer: Duration,
    on_sqlite: &'static [Row],
    on_postgres: &'static [Row],
}

/// Requests that are sent at one pace.
struct Row {
    pace: Pace,
    /// Whether other clients generate RSA-4096 keys at the same time.
    in_storm: bool,
    goals: &'static [Goal],
}

/// A performance goal of a row.
enum Goal {
    /// At most this much processor time per request, in microseconds.
    Processor(f64),
    /// At most this many voluntary context switches per request.
    Switches(f64),
    /// At least this many requests per second.
    PerSecond(f64),
    /// At least this multiple of the bare handler's requests per second.
    OfBare(f64),
    /// At least this multiple of the requests per second of the group's row with this index.
    TimesRow(usize, f64),
    /// A p99 of at most this many milliseconds.
    P99Millis(f64),
    /// A p99 of at most this multiple of the first row's.
    P99OfFirst(f64),
}

const fn clients(clients: usize, goals: &'static [Goal]) -> Row {
    Row {
        pace: Pace::Clients(clients),
        in_storm: false,
        goals,
    }
}

const fn at_rate(in_storm: bool, goals: &'static [Goal]) -> Row {
    Row {
        pace: Pace::PerSecond(200),
        in_storm,
        goals,
    }
}

const GROUPS: [Group; 6] = [
    Group {
        measurement: "get",
        what: "get by name",
        request: |_, _| Request::get(server::READ),
        flushes_longer: Duration::ZERO,
        on_sqlite: &[
            clients(1, &[Goal::Processor(60.0)]),
            clients(16, READ_GOALS),
            clients(64, READ_GOALS),
        ],
        on_postgres: &[clients(16, &[Goal::Processor(80.0)])],
    },
    Group {
        measurement: "latency",
        what: "get by name",
        request: |_, _| Request::get(server::READ),
        flushes_longer: Duration::ZERO,
        on_sqlite: &[at_rate(false, &[]), at_rate(true, &[Goal::P99OfFirst(2.0)])],
        on_postgres: &[],
    },
    Group {
        measurement: "interpolate",
        what: "interpolate three references",
        request: |_, _| {
            let bindings = INTERPOLATED.map(|name| json!({"credentials": {"store-ref": name}}));
            Request::post("/api/v1/interpolate", &json!({"services": bindings}))
        },
        flushes_longer: Duration::ZERO,
        on_sqlite: &[clients(16, &[Goal::Processor(110.0)])],
        on_postgres: &[],
    },
    Group {
        measurement: "set",
        what: "set",
        request: set,
        flushes_longer: Duration::ZERO,
        on_sqlite: &[clients(1, &[]), clients(64, &[Goal::Processor(130.0)])],
        on_postgres: &[
            clients(1, &[]),
            clients(16, &[]),
            clients(64, &[Goal::TimesRow(0, 10.0), Goal::TimesRow(1, 1.0)]),
        ],
    },
    Group {
        measurement: "flush",
        what: "set, flushes 5 ms longer",
        request: set,
        // As on a replicated network disk.
        flushes_longer: Duration::from_millis(5),
        on_sqlite: &[
            clients(1, &[]),
            clients(64, &[Goal::PerSecond(4_500.0), Goal::TimesRow(0, 25.0)]),
        ],
        on_postgres: &[clients(1, &[]), clients(64, &[])],
    },
    Group {
        measurement: "generate",
        what: "generate password",
        request: |client, _| {
            let name = format!("/bench/generate/{client}");
            Request::generate(&json!({"name": name, "type": "password", "mode": "overwrite"}))
        },
        flushes_longer: Duration::ZERO,
        on_sqlite: &[
            clients(16, &[Goal::Processor(220.0)]),
            at_rate(false, &[Goal::P99Millis(20.0)]),
        ],
        on_postgres: &[],
    },
];

const READ_GOALS: &[Goal] = &[
    Goal::Processor(38.0),
    Goal::OfBare(0.45),
    Goal::Switches(0.2),
];

/// Sets a new version of the client's own credential.
fn set(client: usize, _: usize) -> Request {
    Request::set(&server::set_body(&format!("/bench/set/{client}")))
}

/// Returns whether a measurement with this name belongs to this module.
pub(crate) fn is_request_measurement(measurement: &str) -> bool {
    GROUPS.iter().any(|group| group.measurement == measurement)
}

/// Measures the groups of a measurement on each engine that they have rows for.
pub(crate) fn measure(measurement: &str, given: &Arguments) -> Outcome<Table> {
    tokio::runtime::Runtime::new()?.block_on(async {
        let title = format!("values of {} bytes, {ROUNDS} rounds", server::VALUE_BYTES);
        let mut table = Table::of_costs(title);
        let groups = GROUPS
            .iter()
            .filter(|group| group.measurement == measurement);
        for group in groups {
            let disk = Disk::with_flushes_longer_by(group.flushes_longer)?;
            let engines = if group.on_postgres.is_empty() {
                vec![Engine::Sqlite]
            } else {
                Engine::all_on(&disk)
            };
            for engine in engines {
                let other = given.other.as_deref();
                group.measure(&mut table, &engine, &disk, other).await?;
            }
        }
        Ok(table)
    })
}

impl Group {
    async fn measure(
        &self,
        table: &mut Table,
        engine: &Engine,
        disk: &Disk,
        other: Option<&Path>,
    ) -> Outcome<()> {
        let rows = match engine {
            Engine::Postgres(_) => self.on_postgres,
            Engine::Sqlite => self.on_sqlite,
        };
        let server = start(engine, disk, None).await?;
        let other = match other {
            Some(program) => Some(start(engine, disk, Some(program)).await?),
            None => None,
        };
        let has_references = rows
            .iter()
            .any(|row| row.goals.iter().any(Goal::is_of_bare));
        let references = if has_references {
            reference_server::start_all(&server).await?
        } else {
            Vec::new()
        };
        let mut sides = vec![side("keywright", &server)?];
        if let Some(other) = &other {
            sides.push(side("other build", other)?);
        }
        sides.extend(references.iter().map(ReferenceServer::side));

        let mut costs: Vec<Vec<Cost>> = Vec::new();
        costs.resize_with(rows.len(), || {
            sides.iter().map(|_| Cost::default()).collect()
        });
        for number in 0..=ROUNDS {
            for (row, costs) in rows.iter().zip(&mut costs) {
                for (side, cost) in sides.iter().zip(costs) {
                    let round = self.round(row, side, disk, rows).await?;
                    // The first round is a warm-up.
                    if number > 0 {
                        cost.add(round);
                    }
                }
            }
        }
        for (row, of_row) in rows.iter().zip(&costs) {
            for (position, (side, cost)) in sides.iter().zip(of_row).enumerate() {
                let goals: Vec<String> = row
                    .goals
                    .iter()
                    .filter(|_| position == 0)
                    .map(|goal| goal.verdict(cost, of_row.last(), &costs))
                    .collect();
                let what = format!("{engine}, {}, {}", self.what, row.name());
                table.cost(&what, side.name, cost, &goals);
            }
        }
        Ok(())
    }

    /// Measures one round of a row. In a group with a storm, waits until the previous storm is over.
    async fn round(
        &self,
        row: &Row,
        side: &Side,
        disk: &Disk,
        rows: &[Row],
    ) -> Outcome<load::Measured> {
        if rows.iter().any(|row| row.in_storm) {
            process::wait_until_idle(side.process_id)?;
        }
        let mut storm = if row.in_storm {
            start_storm(&side.address).await?
        } else {
            JoinSet::new()
        };
        let round = load::round(side, disk, row.pace, self.request).await?;
        if let Some(ended) = storm.try_join_next() {
            ended??;
        }
        Ok(round)
    }
}

impl Row {
    fn name(&self) -> String {
        let pace = match self.pace {
            Pace::Clients(1) => "1 client".to_owned(),
            Pace::Clients(clients) => format!("{clients} clients"),
            Pace::PerSecond(per_second) => format!("{per_second}/s"),
        };
        if self.in_storm {
            format!("{pace}, {STORM_CLIENTS} clients generate RSA-4096 keys")
        } else {
            pace
        }
    }
}

impl Goal {
    fn is_of_bare(&self) -> bool {
        matches!(self, Self::OfBare(_))
    }

    /// Returns the goal and whether the cost meets it, given the costs of the bare handler in the row and of all rows.
    fn verdict(&self, cost: &Cost, of_bare: Option<&Cost>, rows: &[Vec<Cost>]) -> String {
        let row = |number: usize| rows.get(number).and_then(|row| row.first());
        let p99 = |cost: &Cost| cost.times().percentile(99);
        let ratio = |to: Option<&Cost>, figure: &dyn Fn(&Cost) -> f64| {
            to.map_or(f64::NAN, |to| figure(cost) / figure(to))
        };
        let (what, threshold, figure) = match *self {
            Self::Processor(most) => ("CPU", Threshold::AtMost(most), cost.processor_micros()),
            Self::Switches(most) => ("switches", Threshold::AtMost(most), cost.switches()),
            Self::PerSecond(least) => ("requests/s", Threshold::AtLeast(least), cost.per_second()),
            Self::OfBare(least) => {
                let ratio = ratio(of_bare, &Cost::per_second);
                (
                    "requests/s compared with the bare handler",
                    Threshold::AtLeast(least),
                    ratio,
                )
            }
            Self::TimesRow(number, least) => {
                let ratio = ratio(row(number), &Cost::per_second);
                (
                    "requests/s compared with fewer clients",
                    Threshold::AtLeast(least),
                    ratio,
                )
            }
            Self::P99Millis(most) => ("p99 in ms", Threshold::AtMost(most), p99(cost) / 1_000.0),
            Self::P99OfFirst(most) => (
                "p99 compared with no other load",
                Threshold::AtMost(most),
                ratio(row(0), &p99),
            ),
        };
        format!("{what} {figure:.2}, {}", threshold.verdict(figure))
    }
}

/// Starts a server on an empty database and stores the credentials that are read. Without a program, starts the server of this
/// build.
async fn start(engine: &Engine, disk: &Disk, program: Option<&Path>) -> Outcome<Server> {
    let mut options = engine.new_database().options();
    for (name, value) in disk.environment() {
        options = options.environment(name, &value);
    }
    if let Some(program) = program {
        options = options.program(program);
    }
    let server = Server::start_in(server::directory()?, &options).await;
    for name in INTERPOLATED.into_iter().chain([server::READ_NAME]) {
        let body = server::set_body(name);
        server.put("/api/v1/data", body).await.expect(200);
    }
    Ok(server)
}

fn side(name: &'static str, server: &Server) -> Outcome<Side> {
    Ok(Side {
        name,
        address: server::address(server)?,
        process_id: server.process_id(),
    })
}

/// Starts clients that each generate one RSA-4096 key after the other until the set is dropped.
async fn start_storm(address: &ServerAddress) -> Outcome<JoinSet<Outcome<()>>> {
    let mut clients = JoinSet::new();
    for client in 0..STORM_CLIENTS {
        let mut connection = Connection::open(address).await?;
        clients.spawn(async move {
            let body = json!({
                "name": format!("/bench/storm/{client}"),
                "type": "rsa",
                "mode": "overwrite",
                "parameters": {"key_length": 4096},
            });
            loop {
                connection.send(Request::generate(&body)).await?;
            }
        });
    }
    tokio::time::sleep(STORM_LEAD).await;
    Ok(clients)
}

const INTERPOLATED: [&str; 3] = ["/bench/ref/0", "/bench/ref/1", "/bench/ref/2"];
const ROUNDS: usize = 7;
const STORM_CLIENTS: usize = 16;
const STORM_LEAD: Duration = Duration::from_millis(500);
