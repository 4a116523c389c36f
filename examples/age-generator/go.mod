module age-generator

go 1.25

require go.bytecodealliance.org/pkg v0.2.3
