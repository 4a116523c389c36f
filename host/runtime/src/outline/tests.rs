use super::*;

/// A number as LEB128.
fn number(mut value: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    loop {
        let low = u8::try_from(value & 0x7f).unwrap();
        value >>= 7;
        if value == 0 {
            bytes.push(low);
            return bytes;
        }
        bytes.push(low | 0x80);
    }
}

fn section(id: u8, content: &[u8]) -> Vec<u8> {
    [&[id], number(content.len()).as_slice(), content].concat()
}

/// Encodes a vector of `count` equal items.
fn items(count: usize, item: &[u8]) -> Vec<u8> {
    [number(count), item.repeat(count)].concat()
}

fn component(sections: &[Vec<u8>]) -> Vec<u8> {
    [b"\0asm\x0d\0\x01\0".as_slice(), &sections.concat()].concat()
}

/// Returns a component with one module of `count` functions with this body.
fn of_functions(count: usize, body: &[u8]) -> Vec<u8> {
    let body = [number(body.len()), body.to_vec()].concat();
    let module = [
        b"\0asm\x01\0\0\0".to_vec(),
        section(1, &[1, 0x60, 0, 0]),
        section(3, &items(count, &[0])),
        section(10, &items(count, &body)),
    ];
    component(&[section(1, &module.concat())])
}

/// Returns a function body that declares `count` local variables.
fn locals(count: usize) -> Vec<u8> {
    [vec![1], number(count), vec![0x7f, 0x0b]].concat()
}

fn limit(number: u64) -> usize {
    usize::try_from(number).unwrap()
}

fn refused(component: &[u8]) -> Option<&'static str> {
    match Outline::read(component) {
        Ok(_) => None,
        Err(Refusal::TooComplex { what, .. }) => Some(what),
        Err(refusal) => panic!("{refusal}: {:?}", std::error::Error::source(&refusal)),
    }
}

#[test]
fn each_limit_is_allowed_and_one_past_it_is_refused() {
    let empty = [0, 0x0b];
    let modules = |count| {
        component(
            &section(1, b"\0asm\x01\0\0\0")
                .repeat(count)
                .chunks(10)
                .map(<[u8]>::to_vec)
                .collect::<Vec<_>>(),
        )
    };
    // Types of functions without parameters and results.
    let types = |count| component(&[section(7, &items(count, &[0x40, 0, 1, 0]))]);
    // `resource.drop` of a resource that the component defines.
    let canonical = |count| {
        component(&[
            section(7, &items(1, &[0x3f, 0x7f, 0])),
            section(8, &items(count, &[0x03, 0])),
        ])
    };
    let bytes = limit(FUNCTION_BYTES_MAX);
    let declared = 50_000;
    let in_one = locals(declared).len() + declared;
    let many = limit(CODE_BYTES_MAX) / in_one;
    for (component, expected) in [
        (of_functions(limit(FUNCTIONS_MAX), &empty), None),
        (
            of_functions(limit(FUNCTIONS_MAX) + 1, &empty),
            Some("functions"),
        ),
        (
            of_functions(1, &locals(bytes + 1)),
            Some("bytes and local variables in one function"),
        ),
        (of_functions(many, &locals(declared)), None),
        (
            of_functions(many + 1, &locals(declared)),
            Some("bytes of code"),
        ),
        (modules(limit(MODULES_MAX)), None),
        (modules(limit(MODULES_MAX) + 1), Some("modules")),
        (canonical(limit(CANONICAL_FUNCTIONS_MAX)), None),
        (
            canonical(limit(CANONICAL_FUNCTIONS_MAX) + 1),
            Some("functions between its parts"),
        ),
        (types(limit(DECLARATIONS_MAX)), None),
        (types(limit(DECLARATIONS_MAX) + 1), Some("declarations")),
    ] {
        assert_eq!(refused(&component), expected);
    }
}

#[test]
fn bytes_that_are_not_a_component_are_refused() {
    let whole = of_functions(3, &[0, 0x0b]);
    let cut = whole.split_last().unwrap().1;
    for bytes in [cut, b"(component)", b"\0asm\x0d\0\x01\0\xff", b"\0asm", b""] {
        assert!(matches!(
            Outline::read(bytes),
            Err(Refusal::NotAComponent(_))
        ));
    }
}
