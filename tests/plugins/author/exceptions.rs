//! The errors that an author sees when a plugin fails: `tests/golden/exceptions/` has one file for each language and kind of
//! failure.

use std::{env, fs, path::Path};

use keywright_harness::{Text, workspace};

use super::{Workshop, build::has_tools};

/// The kinds of failures, each with the parameters that cause it and the languages.
const KINDS: [(&str, &str, &[&str]); 8] = [
    ("exception", r#"{"length": 16}"#, &ALL),
    ("assertion", r#"{"length": 17}"#, &ALL),
    ("shape", r#"{"length": 18}"#, &ALL),
    // Reading the time and waiting, which no plugin can do. In Rust, both panic in the standard library, whose paths differ
    // between compilers.
    ("clock", r#"{"length": 19}"#, &["c", "js", "python", "go"]),
    // JavaScript has no function for waiting.
    ("wait", r#"{"length": 20}"#, &["c", "python", "go"]),
    ("memory", r#"{"length": 21}"#, &ALL),
    ("endless", r#"{"length": 22}"#, &ALL),
    ("recursion", r#"{"length": 23}"#, &ALL),
];
const ALL: [&str; 5] = ["rust", "c", "js", "python", "go"];

/// Lines that a language needs for the mistakes: the text in the template, and its replacement.
const IMPORTS: [(&str, &str, &str); 3] = [
    (
        "c",
        "#include <string.h>\n",
        "#include <string.h>\n#include <assert.h>\n#include <time.h>\n#include <unistd.h>\n\
         static int deeper(volatile int depth) { volatile int deepest = deeper(depth + 1); return deepest; }\n",
    ),
    (
        "python",
        "import json\n",
        "import json\nimport random\nimport time\n",
    ),
    (
        "go",
        "\t\"fmt\"\n",
        "\t\"fmt\"\n\tmathrand \"math/rand\"\n\t\"time\"\n",
    ),
];

/// A language, the file to edit, the line after which the mistakes are inserted, and the mistakes, one line for each kind.
const MISTAKES: [(&str, &str, &str, &str); 5] = [
    (
        "rust",
        "src/lib.rs",
        "    let length = parameters[\"length\"].as_u64().unwrap_or_default();\n",
        r#"    if length == 16 { parameters["size"].as_u64().unwrap(); }
    assert!(length != 17, "the length must not be\n{length}");
    if length == 18 { return Ok(json!("hunter2")); }
    if length == 21 { let mut all = Vec::new(); loop { all.push(vec![1_u8; 1 << 20]); } }
    if length == 22 { loop {} }
    fn deeper(depth: u64) -> u64 { std::hint::black_box(deeper(std::hint::black_box(depth)) + 1) }
    if length == 23 { deeper(1); }
    if length == 32 { let weak = std::hash::BuildHasher::hash_one(&std::hash::RandomState::new(), 0); return Ok(json!(format!("{weak:016x}").repeat(4))); }
"#,
    ),
    (
        "c",
        "plugin.c",
        "    sscanf(parameters, \"{\\\"length\\\":%u\", &length);\n",
        r#"    if (length == 16) abort();
    assert(length != 17);
    if (length == 18) return strdup("\"hunter2\"");
    if (length == 19) return time(NULL) ? strdup("\"\"") : NULL;
    if (length == 20) return sleep(1) ? strdup("\"\"") : NULL;
    if (length == 21) for (;;) { char *volatile more = malloc(1 << 20); assert(more != NULL); memset(more, 1, 1 << 20); }
    if (length == 22) for (;;);
    if (length == 23) deeper(1);
    if (length == 32) { char *weak = malloc(70); weak[0] = weak[65] = '"'; weak[66] = 0; for (int i = 1; i < 65; i++) weak[i] = "0123456789abcdef"[rand() % 16]; return weak; }
"#,
    ),
    (
        "js",
        "plugin.js",
        "function makeValue(parameters, settings) {\n",
        r"  if (parameters.length === 16) parameters.size.length;
  if (parameters.length === 17) throw new RangeError('the length must not be\n17');
  if (parameters.length === 18) return 'hunter2';
  if (parameters.length === 19) Date.now();
  if (parameters.length === 21) for (const all = []; ;) all.push(new Uint8Array(1 << 20).fill(1));
  if (parameters.length === 22) while (true);
  if (parameters.length === 23) (function deeper() { return 1 + deeper(); })();
  if (parameters.length === 32) return Array.from({ length: 64 }, () => Math.floor(16 * Math.random()).toString(16)).join('');
",
    ),
    (
        "python",
        "plugin.py",
        "    os.urandom trap. Import modules at the top of the file, not in functions.\n    \"\"\"\n",
        r#"    if parameters["length"] == 16: parameters["size"]
    assert parameters["length"] != 17, "the length must not be\n17"
    if parameters["length"] == 18: return "hunter2"
    if parameters["length"] == 19: time.time()
    if parameters["length"] == 20: time.sleep(1)
    if parameters["length"] == 21: [bytearray(1 << 20) for _ in iter(int, 1)]
    while parameters["length"] == 22: pass
    if parameters["length"] == 23: (lambda deeper: deeper(deeper))(lambda deeper: deeper(deeper))
    if parameters["length"] == 32: return random.randbytes(32).hex()
"#,
    ),
    (
        "go",
        "plugin.go",
        "func makeValue(parameters parameters, settings settings) (any, *types.Failure) {\n",
        r#"	if parameters.Length == 16 { var sizes map[string]int; sizes["size"] = 1 }
	if parameters.Length == 17 { panic("the length must not be\n17") }
	if parameters.Length == 18 { return "hunter2", nil }
	if parameters.Length == 19 { time.Now() }
	if parameters.Length == 20 { time.Sleep(time.Second) }
	if parameters.Length == 21 { var all [][]byte; for { all = append(all, make([]byte, 1<<20)) } }
	if parameters.Length == 22 { for {} }
	if parameters.Length == 23 { var deeper func(int) int; deeper = func(depth int) int { return deeper(depth+1) + 1 }; deeper(1) }
	if parameters.Length == 32 { weak := make([]byte, 32); mathrand.New(mathrand.NewSource(1)).Read(weak); return hex.EncodeToString(weak), nil }
"#,
    ),
];

#[test]
fn failures_are_shown_as_in_the_golden_files() {
    let refreshes = env::var_os("KEYWRIGHT_REFRESH_GOLDEN_FILES").is_some();
    let workshop = Workshop::with(&[]);
    for (language, file, after, mistakes) in MISTAKES {
        if !has_tools(language) {
            continue;
        }
        let component = failing_guest(&workshop, language, file, after, mistakes);
        let kinds = KINDS.iter();
        let kinds = kinds.filter(|(_, _, languages)| languages.contains(&language));
        let check = |kind: &str, shown: &str| {
            shown.assert_lacks("hunter2");
            let golden = workspace().join(format!("tests/golden/exceptions/{language}-{kind}.txt"));
            assert_golden(&golden, shown, refreshes);
        };
        for (kind, parameters, _) in kinds {
            let arguments: &[&str] = &["run", &component, "--parameters", parameters];
            let limits = ["--limits", r#"{"deadline_ms": 500}"#];
            let limits = if *kind == "endless" { &limits[..] } else { &[] };
            let run = workshop.plugin(&[arguments, limits].concat());
            check(kind, &normalized(&run.expect(1).errors));
        }
        // With the default length, the plugin uses its language's random numbers instead of the host's.
        let tested = workshop.plugin(&["test", &component]).expect(3).output;
        let mut lines = tested.lines();
        let weak = lines.find(|line| line.starts_with("FAILED  its values are random"));
        check("randomness", &format!("{}\n", weak.unwrap()));
    }
}

/// Creates a project, makes it fail for some lengths, and builds it. Returns the path of the component.
fn failing_guest(
    workshop: &Workshop,
    language: &str,
    file: &str,
    after: &str,
    mistakes: &str,
) -> String {
    let name = format!("failing-{language}");
    workshop.created(&name, language);
    let source = format!("{name}/{file}");
    workshop.edit(&source, after, &format!("{after}{mistakes}"));
    for (_, from, to) in IMPORTS.iter().filter(|(name, ..)| *name == language) {
        workshop.edit(&source, from, to);
    }
    workshop.with_toolchains(&["build", &name]).expect(0);
    format!("{name}/{name}.wasm")
}

/// Replaces addresses, which differ between builds.
fn normalized(errors: &str) -> String {
    let words = errors.split_inclusive([' ', '\n']).map(|word| {
        let end = word.trim_start_matches(|character| !" \n".contains(character));
        match word.split_once("0x") {
            Some((start, _)) => format!("{start}0x…{end}"),
            None => word.to_owned(),
        }
    });
    words.collect()
}

fn assert_golden(golden: &Path, shown: &str, refreshes: bool) {
    if refreshes {
        fs::create_dir_all(golden.parent().unwrap()).unwrap();
        fs::write(golden, shown).unwrap();
    }
    let expected = fs::read_to_string(golden).unwrap_or_default();
    let hint = "run `cargo xtask golden` if the change is intended";
    assert_eq!(shown, expected, "{}: {hint}", golden.display());
}
