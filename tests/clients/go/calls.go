package main

import (
	"fmt"
	"os"
	"reflect"

	"code.cloudfoundry.org/credhub-cli/credhub"
)

// calls records which methods of the library were called.
type calls struct {
	client *credhub.CredHub
	seen   map[string]bool
}

// call runs a method of the library that must succeed, and returns its result.
func call[T any](calls *calls, name string, run func() (T, error)) T {
	result, err := run()
	if err != nil {
		fail("%s: %v", name, err)
	}
	calls.record(name)
	return result
}

// refuse runs a method of the library that must fail, and returns the error.
func refuse[T any](calls *calls, name string, run func() (T, error)) error {
	_, err := run()
	if err == nil {
		fail("%s: it succeeded", name)
	}
	calls.record(name + " (refused)")
	return err
}

func (calls *calls) record(name string) {
	calls.seen[name] = true
	fmt.Println("ok", name)
}

// expect exits if a result is not as expected.
func expect(isExpected bool, format string, values ...any) {
	if !isExpected {
		fail("unexpected result: "+format, values...)
	}
}

// expectAll exits if a method of the library was never called.
func (calls *calls) expectAll() {
	library := reflect.TypeOf(calls.client)
	for index := range library.NumMethod() {
		name := library.Method(index).Name
		if !calls.seen[name] {
			fail("%s was never called", name)
		}
	}
	fmt.Println("called every operation of the library")
}

func fail(format string, values ...any) {
	fmt.Printf("FAILED "+format+"\n", values...)
	os.Exit(1)
}
