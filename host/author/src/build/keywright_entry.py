"""Runs the module `plugin`, and prints exceptions as notes. Written by `keywright plugin build`."""

import functools
import traceback

import plugin
from componentize_py_types import Err

try:
    from wit_world.imports.notes import note
except ImportError:
    # The world does not import notes.
    def note(text):
        pass


def print_exception(error):
    """Prints the message and the calls, the innermost first. Does not read source files, because there are none."""
    for line in f"{type(error).__name__}: {error}".splitlines():
        note(line)
    frames = [frame for frame in traceback.walk_tb(error.__traceback__) if frame[0].f_globals is not globals()]
    for frame, line in reversed(frames):
        # componentize-py puts the module search path's folders below /0, /1 and so on.
        file = frame.f_code.co_filename.split("/", 2)[-1]
        note(f"    at {frame.f_code.co_name} ({file}:{line})")
    if error.__cause__ is not None:
        note("caused by:")
        print_exception(error.__cause__)


def noting(function):
    @functools.wraps(function)
    def call(*arguments):
        try:
            return function(*arguments)
        except Err:
            raise
        except BaseException as error:
            print_exception(error)
            raise

    return call


# The classes that implement the exports of the world.
for name, member in list(vars(plugin).items()):
    if isinstance(member, type) and member.__module__ == plugin.__name__:
        for method, function in list(vars(member).items()):
            if callable(function) and not method.startswith("__"):
                setattr(member, method, noting(function))
    if not name.startswith("__"):
        globals()[name] = member
