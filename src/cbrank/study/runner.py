"""A study's folder, which fills as its tasks end."""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from cbrank.study.curves import CurvesFile
from cbrank.study.kernel_times import measure, tasks_to_time
from cbrank.study.protocol import perform, trace
from cbrank.study.record import Record
from cbrank.study.results import ResultsFile, task_of
from cbrank.study.settings import Settings, StudyError
from cbrank.study.tasks import Task, work
from cbrank.study.times_file import write_times
from cbrank.workers import Workers


class StudyRun:
    """A study that is being run, and its folder.

    Parameters
    ----------
    folder : Path
        Made if it is not there.
    settings : Settings
        What decides the numbers; the folder must not hold those of other settings.
    fresh : bool, default=False
        Whether to start anew.

    Raises
    ------
    StudyError
        If the folder holds results of other settings, or damaged ones.
    """

    def __init__(self, folder: Path, settings: Settings, fresh: bool = False) -> None:
        self.folder, self.settings = folder, settings
        files = [folder / name for name in ("results.csv", "curves.csv", "study.json", "times.csv")]
        folder.mkdir(parents=True, exist_ok=True)
        for file in files if fresh else ():
            file.unlink(missing_ok=True)
        self.results, self.curves = ResultsFile(files[0]), CurvesFile(files[1])
        self.record, self._times = Record(files[2]), files[3]
        if self.results.lines and not self.record.facts:
            raise StudyError(
                f"{folder} has results but no study.json: use `fresh=True` to start anew."
            )
        self.record.check_settings(settings)
        self.results.check_seeds(settings)

    def start(self, command: Sequence[str]) -> None:
        """Note that a session begins, before its first result."""
        self.record.start(command, self.settings)
        self.results.write()

    def run(self, tasks: Iterable[Task], workers: Workers) -> Iterator[Task]:
        """Do the tasks; yield each one when its line is on the disk."""
        calls = [(task, self.settings) for task in _long_ones_first(tasks, self.settings)]
        for values in workers.unordered(perform, calls):
            self.results.append(values)
            self.record.note_time()
            yield task_of(values)
        self.results.write()

    def draw(self, tasks: Iterable[Task], workers: Workers) -> Iterator[Task]:
        """Trace the learning curves of some tasks; yield each task when its curve is there."""
        calls = [(task, self.parameter(task), self.settings) for task in tasks]
        for task, points in workers.unordered(trace, calls):
            self.curves.add(task, points)
            yield task
        self.curves.write()

    def timed(self, tasks: Iterable[Task]) -> list[Task]:
        """Return the finished tasks whose kernels are to be timed."""
        unfinished = set(self.results.remaining(tasks))
        return [task for task in tasks_to_time(tasks) if task not in unfinished]

    def time(self, tasks: Iterable[Task]) -> Iterator[Task]:
        """Time the kernels of some tasks in this process; yield each task when it is timed.

        The times replace those that were there when all have been taken.
        """
        times = []
        for task, found in measure({t: self.parameter(t) for t in tasks}, self.settings):
            times.append(found)
            if found.method == task.method:  # not the plain loop beside it
                yield task
        write_times(self._times, times)

    def parameter(self, task: Task) -> float:
        """Return what a finished task chose."""
        return float(self.results.lines[task]["parameter"])

    def curves_of(self, tasks: Iterable[Task]) -> list[Task]:
        """Return the finished tasks whose curves are wanted and not there yet."""
        unfinished = set(self.results.remaining(tasks))
        return [task for task in self.curves.remaining(tasks) if task not in unfinished]


def _long_ones_first(tasks: Iterable[Task], settings: Settings) -> list[Task]:
    """Sort by work, data set by data set: a process then loads each of them once."""
    works = {task: work(task, settings) for task in tasks}
    longest: dict[str, int] = {}
    for task, amount in works.items():
        longest[task.dataset] = max(amount, longest.get(task.dataset, 0))
    return sorted(works, key=lambda t: (-longest[t.dataset], t.dataset, -works[t]))
