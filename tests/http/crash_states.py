"""The possible contents of a disk after a loss of power. Replays a recording of
tests/tools/power_recorder.c and yields the possible states at each moment. Knows files and
directories, but no images.

The model is weaker than real file systems: each unflushed change may or may not be on the disk, in
any order. A write or a growth of a file is certain once the file is flushed. A name that was
created, changed or removed is certain once one of its directories is flushed. Everything is certain
once the file system is flushed. Of the states at each moment these are yielded: all unflushed
changes are lost, each of them alone is lost, none is lost, and random ones: any part of them is
lost, and writes are torn at any sector."""

ROOT = "root"
SECTOR = 512


class Object:
    """A file or a directory. Its number is unique, while inode numbers are reused."""

    count = 0

    def __init__(self, is_directory):
        Object.count += 1
        self.number, self.is_directory = Object.count, is_directory


class Step:
    """A change of a name, (parent, name) -> object, or of a file's content."""

    def __init__(self, kind, flushed_by, **values):
        self.kind, self.flushed_by = kind, flushed_by
        self.__dict__.update(values)


class State:
    """Names, and the writes to each file."""

    def __init__(self, names=None, writes=None):
        self.names = names if names is not None else {}    # parent's number -> {name: object}
        self.writes = writes if writes is not None else {}  # file's number -> (step, ...)

    def copy(self):
        return State({k: dict(v) for k, v in self.names.items()}, dict(self.writes))

    def apply(self, step):
        if step.kind == "name":
            self.names.setdefault(step.parent.number, {})[step.name] = step.object
        elif step.kind == "unname":
            if self.names.get(step.parent.number, {}).get(step.name) is step.object:
                del self.names[step.parent.number][step.name]
        elif step.kind == "rename":
            if self.names.get(step.parent.number, {}).get(step.name) is step.object:
                del self.names[step.parent.number][step.name]
            self.names.setdefault(step.to_parent.number, {})[step.to_name] = step.object
        elif step.kind == "exchange":
            self.names.setdefault(step.parent.number, {})[step.name] = step.other
            self.names.setdefault(step.to_parent.number, {})[step.to_name] = step.object
        else:
            self.writes[step.object.number] = self.writes.get(step.object.number, ()) + (step,)

    def list(self, directory):
        return self.names.get(directory.number, {}) if directory else {}

    def find(self, start, *path):
        for name in path:
            start = self.list(start).get(name)
            if start is None:
                return None
        return start

    def content(self, file):
        return content(self.writes.get(file.number, ()))


_contents = {}


def content(steps):
    """Returns the content of a file after these writes."""
    if steps not in _contents:
        data = bytearray()
        for step in steps:
            if step.kind == "cut":
                data.clear()
                continue
            end = step.end if step.kind == "grow" else step.at + len(step.data)
            data.extend(bytes(max(0, end - len(data))))
            if step.kind == "write":
                data[step.at:end] = step.data
        _contents[steps] = bytes(data)
    return _contents[steps]


def records(path):
    """Yields (words, data) of each record."""
    data = path.read_bytes()
    at = 0
    while at < len(data):
        end = data.index(b"\n", at)
        words = data[at:end].decode().split(" ")
        at = end + 1
        size = int(words[-1]) if words[0] in ("write", "answer") else 0
        assert at + size <= len(data)
        yield words, data[at:at + size]
        at += size


class Replay:
    """Replays a recording. `now` is what the kernel shows, `disk` is what is certain."""

    def __init__(self, root_inode):
        self.root = Object(True)
        self.by_inode = {root_inode: self.root}
        self.now, self.disk = State(), State()
        self.pending = []

    def _resolve(self, inode, path):
        """Returns (parent, name) of a path relative to a directory. The parent is None outside of
        the root."""
        *parents, name = path.split("/")
        start = self.by_inode.get(int(inode))
        return (self.now.find(start, *parents), name) if start else (None, name)

    def _do(self, step):
        self.now.apply(step)
        self.pending.append(step)

    def _flush(self, flushed):
        left = []
        for step in self.pending:
            if flushed(step):
                self.disk.apply(step)
            else:
                left.append(step)
        self.pending = left

    def step(self, words, data):
        """Applies a record. Returns whether the possible states have changed."""
        kind, *args = words
        if kind in ("create", "mkdir"):
            parent, name = self._resolve(*args[:2])
            if parent is None:
                return False
            made = self.by_inode[int(args[2])] = Object(kind == "mkdir")
            self._do(Step("name", {parent}, parent=parent, name=name, object=made))
        elif kind in ("rename", "exchange", "link"):
            parent, name = self._resolve(*args[:2])
            to_parent, to_name = self._resolve(*args[2:])
            moved = self.now.find(parent, name)
            if moved is None or to_parent is None:  # it was there before the recording
                return False
            if kind == "link":
                self._do(Step("name", {to_parent}, parent=to_parent, name=to_name, object=moved))
                return True
            self._do(Step(kind, {parent, to_parent}, parent=parent, name=name,
                          to_parent=to_parent, to_name=to_name, object=moved,
                          other=self.now.find(to_parent, to_name)))
        elif kind == "unlink":
            parent, name = self._resolve(*args)
            if self.now.find(parent, name) is None:
                return False
            self._do(Step("unname", {parent}, parent=parent, name=name,
                          object=self.now.find(parent, name)))
        elif kind in ("write", "grow", "cut"):
            file = self.by_inode.get(int(args[0]))
            if file is None:
                return False
            if kind == "cut":
                self._do(Step("cut", {file}, object=file))
            elif kind == "write":
                self._do(Step("write", {file}, object=file, at=int(args[1]), data=data))
            else:
                self._do(Step("grow", {file}, object=file, end=int(args[1])))
        elif kind == "sync":
            flushed = self.by_inode.get(int(args[0]))
            self._flush(lambda step: flushed in step.flushed_by)
        elif kind == "syncfs":
            self._flush(lambda step: True)
        else:
            return False
        return True

    def states(self):
        """Yields the states that a loss of power could leave now."""
        yield self.disk
        for lost in self.pending:
            state = self.disk.copy()
            for step in self.pending:
                if step is not lost:
                    state.apply(step)
            yield state
        if not self.pending:
            return
        yield self.now

    def random_state(self, rng):
        """Returns a state in which any part of the unflushed changes is lost or torn."""
        state, share = self.disk.copy(), rng.choice((0.2, 0.5, 0.8, 0.95))
        for step in self.pending:
            if rng.random() > share:
                continue
            if step.kind == "write" and rng.random() < 0.3:
                sectors = rng.randrange(len(step.data) // SECTOR + 1)
                step = Step("write", step.flushed_by, object=step.object, at=step.at,
                            data=step.data[:sectors * SECTOR])
            state.apply(step)
        return state


def write(state, directory, path):
    """Writes a directory of the state to a path on this machine's disk."""
    path.mkdir()
    for name, entry in state.list(directory).items():
        if entry.is_directory:
            write(state, entry, path / name)
        else:
            (path / name).write_bytes(state.content(entry))
