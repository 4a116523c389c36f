use std::sync::mpsc;

use super::*;

/// A sink whose appends return the outcomes that the test sends.
struct ScriptedSink {
    begun: mpsc::Sender<Vec<u8>>,
    outcomes: mpsc::Receiver<Result<(), AppendError>>,
}

impl AuditSink for ScriptedSink {
    fn append(&mut self, lines: &[u8]) -> Result<(), AppendError> {
        self.begun.send(lines.to_vec()).unwrap();
        self.outcomes.recv().unwrap()
    }

    fn reopen(&mut self) -> io::Result<()> {
        Ok(())
    }

    fn is_prompt(&self) -> bool {
        true
    }
}

#[test]
fn a_request_rarely_waits_for_others_if_none_arrive() {
    let (begun, appends) = mpsc::channel();
    let (outcome, outcomes) = mpsc::channel();
    let shared = Shared::new(Box::new(ScriptedSink { begun, outcomes }), None);
    let write = |requests: usize| {
        let senders = std::iter::repeat_with(|| oneshot::channel().0);
        shared.queue.lock().waiting.extend(senders.take(requests));
        outcome.send(Ok(())).unwrap();
        shared.write(shared.queue.lock(), false);
        appends.recv().unwrap();
    };
    let waiting_of = |writes: usize| {
        let waits = (0..writes).filter(|_| {
            let waits = shared.expects_others();
            write(1);
            waits
        });
        waits.count()
    };
    assert_eq!(waiting_of(16), 4);
    assert_eq!(waiting_of(160), 10);
    write(2);
    assert_eq!(waiting_of(16), 4);
    thread::scope(|scope| {
        let writing = scope.spawn(|| shared.write(shared.queue.lock(), false));
        appends.recv().unwrap();
        shared.write(shared.queue.lock(), false);
        outcome.send(Ok(())).unwrap();
        writing.join().unwrap();
    });
    assert_eq!(waiting_of(16), 4);
}

#[test]
fn a_request_makes_one_more_write_for_events_queued_meanwhile() {
    let (begun, appends) = mpsc::channel();
    let (outcome, outcomes) = mpsc::channel();
    let shared = Shared::new(Box::new(ScriptedSink { begun, outcomes }), None);
    let arrive = |line| {
        let mut queue = shared.queue.lock();
        queue.lines.push(line);
        queue.add_waiting(oneshot::channel().0);
        drop(queue);
        shared.write_on_request();
    };
    thread::scope(|scope| {
        scope.spawn(|| arrive(b'1'));
        for (written, next) in [(b"1", b'2'), (b"2", b'3')] {
            assert_eq!(appends.recv().unwrap(), written);
            arrive(next);
            outcome.send(Ok(())).unwrap();
        }
    });
    let queue = shared.queue.lock();
    assert!(queue.is_for_thread());
    assert_eq!(queue.lines, b"3");
}

#[test]
fn few_events_are_written_before_many_of_other_requests() {
    let (begun, appends) = mpsc::channel();
    let (outcome, outcomes) = mpsc::channel();
    let shared = Shared::new(Box::new(ScriptedSink { begun, outcomes }), None);
    let queue = |actor: &str, bytes: usize| {
        let (sender, receiver) = oneshot::channel();
        let lines = vec![b'x'; bytes];
        shared.queue.lock().add(actor, &lines, Some(sender));
        receiver
    };
    let large = FEW_EVENTS_BYTES_MAX + 1;
    let mut many: Vec<_> = ["a", "b", "c"].map(|actor| queue(actor, large)).into();
    let mut few = queue("a", 1);
    let has_room = |bytes| shared.queue.lock().has_room("d", bytes, 4 * large);
    assert!(has_room(large - 1) && !has_room(large));
    for (bytes, left) in [(large + 1, 2), (large, 1), (large, 0)] {
        outcome.send(Ok(())).unwrap();
        shared.write(shared.queue.lock(), false);
        assert_eq!(appends.recv().unwrap().len(), bytes);
        many.retain_mut(|one| one.try_recv().is_err());
        assert_eq!(many.len(), left);
        assert_eq!(shared.queue.lock().is_for_thread(), left > 0);
    }
    assert_eq!(few.try_recv().unwrap(), Ok(()));

    let refused = [queue("a", large), queue("a", large)];
    let failed = AppendError {
        bytes_written: 0,
        cause: io::ErrorKind::StorageFull.into(),
    };
    outcome.send(Err(failed)).unwrap();
    shared.write(shared.queue.lock(), false);
    for mut request in refused {
        assert_eq!(request.try_recv().unwrap(), Err(UnwrittenError));
    }
    let queue = shared.queue.lock();
    assert!(!queue.is_for_thread());
    assert_eq!(queue.lines.len(), 2 * large);
}

#[test]
fn one_actor_neither_fills_the_queue_nor_delays_the_others() {
    const BYTES_MAX: usize = 1024 * 1024;
    let mut queue = Queue::default();
    let many = |line: u8| vec![line; FEW_EVENTS_BYTES_MAX + 1];
    let room = BYTES_MAX / ACTORS_TO_FILL_QUEUE / many(b'a').len();
    for added in 0..2 * BYTES_MAX / FEW_EVENTS_BYTES_MAX {
        assert_eq!(queue.has_room("a", 1, BYTES_MAX), added <= room, "{added}");
        queue.add("a", &many(b'a'), None);
    }
    assert!(queue.has_room("b", many(b'b').len(), BYTES_MAX));
    for _ in 0..2 {
        queue.add("b", &many(b'b'), None);
    }
    // Many lines for which no request waits take turns, too, and share them.
    let few = vec![b'c'; FEW_EVENTS_BYTES_MAX / 2];
    for _ in 0..4 {
        queue.add("c", &few, None);
    }
    assert_eq!(queue.lines, few.repeat(2));
    queue.lines.clear();
    let mut next = || queue.take_next().0;
    for lines in [
        many(b'a'),
        many(b'b'),
        few.repeat(2),
        many(b'a'),
        many(b'b'),
        many(b'a'),
    ] {
        assert_eq!(next(), lines);
    }
}
