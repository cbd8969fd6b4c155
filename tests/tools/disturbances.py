"""Interrupts at any step of our code, and threads that start together."""

import dis
import functools
import itertools
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

OURS = ("rankers", "features", "kernels", "streams", "river.py", "locking.py")


@functools.cache
def checkpoints(code):
    """Return where Python looks for signals in a function: after calls, on entry and in loops."""
    places, called = set(), False
    for step in dis.get_instructions(code):
        if called or step.opname in ("RESUME", "JUMP_BACKWARD"):
            places.add(step.offset)
        called = step.opname.startswith("CALL")
    return places


def interrupted_at(step, number):
    """Raise KeyboardInterrupt at that checkpoint of our Python code; say whether it has so many."""
    left = number

    def count(frame, event, argument):
        nonlocal left
        frame.f_trace_opcodes = True
        if event == "opcode" and frame.f_lasti in checkpoints(frame.f_code):
            left -= 1
            if left == 0:
                raise KeyboardInterrupt
        return count

    def enter(frame, event, argument):
        path = frame.f_code.co_filename
        return count if "cbrank" in path and any(part in path for part in OURS) else None

    before = sys.gettrace()
    sys.settrace(enter)
    try:
        step()
    except KeyboardInterrupt:
        return True
    finally:
        sys.settrace(before)
    return False


def everywhere(prepared, step, stride):
    """Yield what was prepared after each of many interrupts of a step."""
    for number in itertools.count(1, stride):
        subject = prepared()
        if not interrupted_at(lambda subject=subject: step(subject), number):
            assert number > 1
            return
        yield subject


def at_once(*steps):
    """Run steps in threads that start together; raise what any of them raises."""
    start = threading.Barrier(len(steps))

    def run(step):
        start.wait()
        return step()

    with ThreadPoolExecutor(len(steps)) as pool:
        return [future.result() for future in [pool.submit(run, step) for step in steps]]
