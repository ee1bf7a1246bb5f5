"""Questions that move what they are asked of: answered by a copy of this process.

To see what a change leads to, it is made, and the engine decides; nothing takes that back. So the
question goes to a fork, which has everything that is in memory at once, however large the cluster
is, and only the answer comes out of it. The process that asks is as it was: that no question
changes anything is the operating system's promise. An answer is plain data.
"""

import gc
import os
import pickle
import traceback
from collections.abc import Callable
from typing import Any, TypeVar

T = TypeVar("T")


def ask(question: Callable[[], T]) -> T:
    """The answer to a question, from a copy of this process that ends with it."""
    return begin(question)()


def begin(question: Callable[[], T]) -> Callable[[], T]:
    """Ask a copy of this process as it is now; what is returned waits for the answer, once."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(read)
        _answer(question, write)
    os.close(write)
    return lambda: _answered(read, child)


def _answered(read: int, child: int) -> Any:
    with os.fdopen(read, "rb") as pipe:
        written = pipe.read()
    os.waitpid(child, 0)
    if not written:
        raise RuntimeError("the copy of this process that was asked has ended without an answer")
    answered, found = pickle.loads(written)
    if not answered:
        raise RuntimeError(f"in the copy of this process that was asked:\n{found}")
    return found


def _answer(question: Callable[[], T], write: int) -> None:
    """Answer in the copy, which never returns: no exit handler of the process runs twice."""
    gc.disable()  # a collection would touch, and so copy, all of the memory
    try:
        written = pickle.dumps((True, question()))
    except BaseException:
        written = pickle.dumps((False, traceback.format_exc()))
    try:
        with os.fdopen(write, "wb") as pipe:
            pipe.write(written)
    finally:
        os._exit(0)
