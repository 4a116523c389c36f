use super::*;

const OPEN_TIME: Duration = Duration::from_secs(30);

/// A breaker that opens at the third fault, with a fixed clock.
struct Scene {
    breaker: Breaker,
    now: Instant,
}

impl Scene {
    fn new() -> Self {
        Self {
            breaker: Breaker::new(3, OPEN_TIME),
            now: Instant::now(),
        }
    }

    fn call(&self, actor: &str, function: &'static str, input: &str) -> Call {
        let actor = Actor::of_lookup(actor);
        self.breaker.call(Some(&actor), function, &[input])
    }

    /// A call of `generate` that traps.
    fn trap(&self, actor: &str, input: &str) -> Option<Opened> {
        let call = self.call(actor, "generate", input);
        self.breaker.faulted(&call, PluginFault::Trapped, self.now)
    }

    /// A call of `generate` that returns.
    fn answer(&self, actor: &str) {
        self.breaker.returned(&self.call(actor, "generate", "good"));
    }

    fn open_for(&self, actor: &str) -> Option<Duration> {
        self.breaker
            .open_for(&self.call(actor, "normalize", ""), self.now)
    }
}

#[test]
fn faults_of_one_actor_open_the_circuit_only_for_that_actor() {
    let mut scene = Scene::new();
    for input in ["1", "2"] {
        assert_eq!(scene.trap("a", input), None);
        assert_eq!(scene.open_for("a"), None);
    }
    assert_eq!(scene.trap("a", "3"), Some(Opened::ForActor));
    assert_eq!(scene.open_for("a"), Some(OPEN_TIME));
    for number in 0..100 {
        assert_eq!(scene.trap("a", &format!("more {number}")), None);
    }
    assert_eq!(scene.open_for("b"), None);
    scene.now += OPEN_TIME / 2;
    assert_eq!(scene.open_for("a"), Some(OPEN_TIME / 2));
    scene.now += OPEN_TIME / 2;
    assert_eq!(scene.open_for("a"), None);
    assert_eq!(scene.trap("a", "3"), Some(Opened::ForActor), "once more");
}

#[test]
fn only_consecutive_faults_of_one_function_count() {
    let scene = Scene::new();
    for _ in 0..5 {
        assert_eq!(scene.trap("a", "1"), None);
        assert_eq!(scene.trap("a", "2"), None);
        scene.answer("a");
    }
    let accept = scene.call("a", "accept", "");
    for _ in 0..2 {
        assert_eq!(scene.trap("a", ""), None);
        let opened = scene
            .breaker
            .faulted(&accept, PluginFault::Trapped, scene.now);
        assert_eq!(opened, None);
    }
    assert_eq!(scene.trap("a", ""), Some(Opened::ForActor));
}

#[test]
fn faults_of_three_actors_open_it_for_all_and_one_return_closes_it() {
    let scene = Scene::new();
    assert_eq!(scene.trap("a", ""), None);
    assert_eq!(scene.trap("b", ""), None);
    assert_eq!(scene.trap("c", ""), Some(Opened::ForAll));
    for actor in ["a", "b", "c", "d"] {
        assert_eq!(scene.open_for(actor), Some(OPEN_TIME), "{actor}");
    }
    scene.answer("d");
    for actor in ["a", "b", "c", "d", "e"] {
        assert_eq!(scene.open_for(actor), None, "{actor}");
    }
}

#[test]
fn the_same_input_of_the_same_actor_counts_once_for_all() {
    let scene = Scene {
        breaker: Breaker::new(5, OPEN_TIME),
        now: Instant::now(),
    };
    for actor in ["a", "b", "c"] {
        for _ in 0..4 {
            assert_eq!(scene.trap(actor, "same"), None);
        }
    }
    assert_eq!(scene.open_for("d"), None);
    assert_eq!(scene.trap("a", "another"), Some(Opened::ForActor));
    assert_eq!(scene.trap("b", "another"), Some(Opened::ForAll));
}

#[test]
fn colluding_actors_cannot_disable_a_plugin_that_works_for_others() {
    let scene = Scene::new();
    scene.answer("honest");
    for actor in ["a", "b", "c", "d"] {
        scene.trap(actor, "");
    }
    assert!(scene.open_for("stranger").is_some());
    assert_eq!(scene.open_for("honest"), None);
    scene.trap("honest", "");
    assert!(
        scene.open_for("honest").is_some(),
        "until one of its own fails"
    );
}

#[test]
fn faults_that_the_guest_reports_do_not_count() {
    let scene = Scene::new();
    let call = scene.call("a", "generate", "");
    for fault in [
        PluginFault::InputTooLarge,
        PluginFault::Misconfigured,
        PluginFault::NotInstantiated,
        PluginFault::OutputMalformed,
        PluginFault::OutputTooLarge,
        PluginFault::Reported,
    ] {
        for _ in 0..3 {
            let opened = scene.breaker.faulted(&call, fault, scene.now);
            assert_eq!(opened, None, "{fault}");
        }
    }
}

#[test]
fn at_most_1024_actors_are_tracked() {
    let scene = Scene::new();
    for number in 0..=ACTORS_MAX {
        scene.answer(&number.to_string());
    }
    assert_eq!(scene.breaker.state().actors.len(), ACTORS_MAX);
    let is_known = |number: usize| {
        let actor = Actor::of_lookup(&number.to_string());
        scene.breaker.state().actors.contains_key(&Some(actor))
    };
    assert!(!is_known(0) && is_known(1) && is_known(ACTORS_MAX));
}
