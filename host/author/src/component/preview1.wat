;; WASI preview 1 for language runtimes that import it. Only randomness comes from the host.
;;
;; There are no arguments, environment or files. Each line of output is a note if the plugin's world imports notes; otherwise it is
;; discarded. The monotonic clock advances with each read. Reading the time and waiting print a note with the name of the call and
;; trap, and exiting traps. The signatures are those in WASI's witx/wasi_snapshot_preview1.witx: every function except proc_exit
;; returns an error number.
(module
    (import "wasi:random/random@0.2.0" "get-random-u64" (func $get_random_u64 (result i64)))
    ;; The memory of the adapted module.
    (import "env" "memory" (memory 0))
    ;; $note: imported from the host, or empty.
    (; NOTE ;)

    ;; The monotonic time, in nanoseconds.
    (global $now (mut i64) (i64.const 1000000000))

    ;; Fills the memory with random bytes, eight at a time.
    (func (export "random_get") (param $address i32) (param $length i32) (result i32)
        (local $bytes i64)
        (block $rest
            (loop $next
                (br_if $rest (i32.lt_u (local.get $length) (i32.const 8)))
                (i64.store align=1 (local.get $address) (call $get_random_u64))
                (local.set $address (i32.add (local.get $address) (i32.const 8)))
                (local.set $length (i32.sub (local.get $length) (i32.const 8)))
                (br $next)
            )
        )
        (if (i32.eqz (local.get $length)) (then (return (i32.const 0))))
        (local.set $bytes (call $get_random_u64))
        (loop $next
            (i64.store8 (local.get $address) (local.get $bytes))
            (local.set $bytes (i64.shr_u (local.get $bytes) (i64.const 8)))
            (local.set $address (i32.add (local.get $address) (i32.const 1)))
            (local.set $length (i32.sub (local.get $length) (i32.const 1)))
            (br_if $next (local.get $length))
        )
        (i32.const 0)
    )

    ;; Each read advances the clock by a microsecond, so that busy-waiting loops terminate. The clocks of the processor are monotonic,
    ;; too. Clock 0 is the time.
    (func (export "clock_time_get") (param $clock i32) (param i64) (param $time i32) (result i32)
        (if (i32.eqz (local.get $clock)) (then (; TRAP clock_time_get ;)))
        (global.set $now (i64.add (global.get $now) (i64.const 1000)))
        (i64.store align=1 (local.get $time) (global.get $now))
        (i32.const 0)
    )
    (func (export "clock_res_get") (param i32) (param $resolution i32) (result i32)
        (i64.store align=1 (local.get $resolution) (i64.const 1000))
        (i32.const 0)
    )
    ;; Go calls this around allocations, during which an adapter must not call the host for a clock. This adapter never does.
    (func (export "adapter_monotonic_clock_set_paused") (param i32))

    (func $none (param $count i32) (param $bytes i32) (result i32)
        (i32.store align=1 (local.get $count) (i32.const 0))
        (i32.store align=1 (local.get $bytes) (i32.const 0))
        (i32.const 0)
    )
    (export "args_sizes_get" (func $none))
    (export "environ_sizes_get" (func $none))
    (func (export "args_get") (param i32 i32) (result i32) (i32.const 0))
    (func (export "environ_get") (param i32 i32) (result i32) (i32.const 0))

    ;; The current line of output: its address, 0 before the first output, and its length in bytes.
    (global $line (mut i32) (i32.const 0))
    (global $length (mut i32) (i32.const 0))

    (func $end_line
        (if (global.get $length) (then (call $note (global.get $line) (global.get $length))))
        (global.set $length (i32.const 0))
    )

    ;; Adds bytes to the line. Notes must be UTF-8 without control characters, so other bytes than printable ASCII are replaced.
    (func $print (param $address i32) (param $bytes i32)
        (local $byte i32)
        (if (i32.eqz (global.get $line))
            (then
                (local.set $byte (memory.grow (i32.const 1)))
                (if (i32.eq (local.get $byte) (i32.const -1)) (then (return)))
                (global.set $line (i32.shl (local.get $byte) (i32.const 16)))
            )
        )
        (block $end
            (loop $next
                (br_if $end (i32.eqz (local.get $bytes)))
                (local.set $byte (i32.load8_u (local.get $address)))
                (local.set $address (i32.add (local.get $address) (i32.const 1)))
                (local.set $bytes (i32.sub (local.get $bytes) (i32.const 1)))
                (if (i32.eq (local.get $byte) (i32.const 10)) (then (call $end_line) (br $next)))
                ;; The host truncates longer notes.
                (br_if $next (i32.ge_u (global.get $length) (i32.const 1024)))
                (if (i32.lt_u (local.get $byte) (i32.const 32)) (then (local.set $byte (i32.const 32))))
                (if (i32.gt_u (local.get $byte) (i32.const 126)) (then (local.set $byte (i32.const 63))))
                (i32.store8 (i32.add (global.get $line) (global.get $length)) (local.get $byte))
                (global.set $length (i32.add (global.get $length) (i32.const 1)))
                (br $next)
            )
        )
    )

    ;; Adds up to eight characters to the line, the first in the lowest bits.
    (func $spell (param $characters i64) (param $count i32)
        ;; Reserves the memory for the line.
        (call $print (i32.const 0) (i32.const 0))
        (if (i32.eqz (global.get $line)) (then (return)))
        (i64.store offset=1024 (global.get $line) (local.get $characters))
        (call $print (i32.add (global.get $line) (i32.const 1024)) (local.get $count))
    )

    ;; Prints the bytes and reports them as written.
    (func (export "fd_write") (param $file i32) (param $pieces i32) (param $count i32) (param $written i32) (result i32)
        (local $bytes i32)
        (if (i32.gt_u (i32.sub (local.get $file) (i32.const 1)) (i32.const 1)) (then (return (i32.const 8))))
        (block $end
            (loop $next
                (br_if $end (i32.eqz (local.get $count)))
                (call $print (i32.load align=1 (local.get $pieces)) (i32.load offset=4 align=1 (local.get $pieces)))
                (local.set $bytes (i32.add (local.get $bytes) (i32.load offset=4 align=1 (local.get $pieces))))
                (local.set $pieces (i32.add (local.get $pieces) (i32.const 8)))
                (local.set $count (i32.sub (local.get $count) (i32.const 1)))
                (br $next)
            )
        )
        (i32.store align=1 (local.get $written) (local.get $bytes))
        (i32.const 0)
    )

    (func (export "sched_yield") (result i32) (i32.const 0))
    (func (export "proc_exit") (param i32) (call $end_line) (unreachable))

    ;; No file is open (EBADF).
    (func (export "fd_advise") (param i32 i64 i64 i32) (result i32) (i32.const 8))
    (func (export "fd_allocate") (param i32 i64 i64) (result i32) (i32.const 8))
    (func (export "fd_close") (param i32) (result i32) (i32.const 8))
    (func (export "fd_datasync") (param i32) (result i32) (i32.const 8))
    (func (export "fd_fdstat_get") (param i32 i32) (result i32) (i32.const 8))
    (func (export "fd_fdstat_set_flags") (param i32 i32) (result i32) (i32.const 8))
    (func (export "fd_fdstat_set_rights") (param i32 i64 i64) (result i32) (i32.const 8))
    (func (export "fd_filestat_get") (param i32 i32) (result i32) (i32.const 8))
    (func (export "fd_filestat_set_size") (param i32 i64) (result i32) (i32.const 8))
    (func (export "fd_filestat_set_times") (param i32 i64 i64 i32) (result i32) (i32.const 8))
    (func (export "fd_pread") (param i32 i32 i32 i64 i32) (result i32) (i32.const 8))
    (func (export "fd_prestat_dir_name") (param i32 i32 i32) (result i32) (i32.const 8))
    (func (export "fd_prestat_get") (param i32 i32) (result i32) (i32.const 8))
    (func (export "fd_pwrite") (param i32 i32 i32 i64 i32) (result i32) (i32.const 8))
    (func (export "fd_read") (param i32 i32 i32 i32) (result i32) (i32.const 8))
    (func (export "fd_readdir") (param i32 i32 i32 i64 i32) (result i32) (i32.const 8))
    (func (export "fd_renumber") (param i32 i32) (result i32) (i32.const 8))
    (func (export "fd_seek") (param i32 i64 i32 i32) (result i32) (i32.const 8))
    (func (export "fd_sync") (param i32) (result i32) (i32.const 8))
    (func (export "fd_tell") (param i32 i32) (result i32) (i32.const 8))
    (func (export "path_create_directory") (param i32 i32 i32) (result i32) (i32.const 8))
    (func (export "path_filestat_get") (param i32 i32 i32 i32 i32) (result i32) (i32.const 8))
    (func (export "path_filestat_set_times") (param i32 i32 i32 i32 i64 i64 i32) (result i32) (i32.const 8))
    (func (export "path_link") (param i32 i32 i32 i32 i32 i32 i32) (result i32) (i32.const 8))
    (func (export "path_open") (param i32 i32 i32 i32 i32 i64 i64 i32 i32) (result i32) (i32.const 8))
    (func (export "path_readlink") (param i32 i32 i32 i32 i32 i32) (result i32) (i32.const 8))
    (func (export "path_remove_directory") (param i32 i32 i32) (result i32) (i32.const 8))
    (func (export "path_rename") (param i32 i32 i32 i32 i32 i32) (result i32) (i32.const 8))
    (func (export "path_symlink") (param i32 i32 i32 i32 i32) (result i32) (i32.const 8))
    (func (export "path_unlink_file") (param i32 i32 i32) (result i32) (i32.const 8))
    (func (export "sock_accept") (param i32 i32 i32) (result i32) (i32.const 8))
    (func (export "sock_recv") (param i32 i32 i32 i32 i32 i32) (result i32) (i32.const 8))
    (func (export "sock_send") (param i32 i32 i32 i32 i32) (result i32) (i32.const 8))
    (func (export "sock_shutdown") (param i32 i32) (result i32) (i32.const 8))

    ;; Waits for one clock, relative to now and for at most a millisecond, and advances the clock. Go's runtime waits that long before
    ;; it prints a panic.
    (func (export "poll_oneoff") (param $awaited i32) (param $events i32) (param $count i32) (param $occurred i32) (result i32)
        (if
            (i32.or
                (i32.or
                    (i32.ne (local.get $count) (i32.const 1))
                    ;; The kind of event, and the flags.
                    (i32.or
                        (i32.load8_u offset=8 (local.get $awaited))
                        (i32.load16_u offset=40 align=1 (local.get $awaited))
                    )
                )
                (i64.gt_u (i64.load offset=24 align=1 (local.get $awaited)) (i64.const 1000000))
            )
            (then (; TRAP poll_oneoff ;))
        )
        (global.set $now (i64.add (global.get $now) (i64.load offset=24 align=1 (local.get $awaited))))
        (i64.store align=1 (local.get $events) (i64.load align=1 (local.get $awaited)))
        (i64.store offset=8 align=1 (local.get $events) (i64.const 0))
        (i32.store align=1 (local.get $occurred) (i32.const 1))
        (i32.const 0)
    )
    ;; Signals are not supported (ENOSYS).
    (func (export "proc_raise") (param i32) (result i32) (i32.const 52))
)
