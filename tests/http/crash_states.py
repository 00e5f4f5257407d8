"""What may be on the disk after a loss of power: replays what tests/tools/power_recorder.c wrote down, and asks of every moment
which files there could be. Knows files and directories; nothing of images.

The model is weaker than real file systems: whatever was not flushed may or may not be there, piece by piece, in any order. A
write, or a file's growth, is kept for certain when the file is flushed; a name that was given, changed or taken when one
of its directories is; everything when the file system is. Of the states of each moment these are looked at: all that was not
flushed is lost, and each piece of it alone is."""

ROOT = "root"


class Object:
    """A file or a directory; its number is unique, which inodes' are not."""

    count = 0

    def __init__(self, is_directory):
        Object.count += 1
        self.number, self.is_directory = Object.count, is_directory


class Step:
    """One change: of a name (parent, name) -> object, or of a file's content."""

    def __init__(self, kind, flushed_by, **values):
        self.kind, self.flushed_by = kind, flushed_by
        self.__dict__.update(values)


class State:
    """Names, and what was written to each file."""

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
    """What the file is after these writes."""
    if steps not in _contents:
        data = bytearray()
        for step in steps:
            end = step.end if step.kind == "grow" else step.at + len(step.data)
            data.extend(bytes(max(0, end - len(data))))
            if step.kind == "write":
                data[step.at:end] = step.data
        _contents[steps] = bytes(data)
    return _contents[steps]


def records(path):
    """(words, data) of each record."""
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
    """Goes through a recording; now is what the kernel shows, disk what is there for certain."""

    def __init__(self, root_inode):
        self.root = Object(True)
        self.by_inode = {root_inode: self.root}
        self.now, self.disk = State(), State()
        self.pending = []

    def _resolve(self, inode, path):
        """(parent, name) of a path relative to a directory; None if that is not ours."""
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
        """Takes the record up. True if the states that are possible have changed."""
        kind, *args = words
        if kind in ("create", "mkdir"):
            parent, name = self._resolve(*args[:2])
            if parent is None:
                return False
            made = self.by_inode[int(args[2])] = Object(kind == "mkdir")
            self._do(Step("name", {parent}, parent=parent, name=name, object=made))
        elif kind == "rename":
            (parent, name), (to_parent, to_name) = self._resolve(*args[:2]), self._resolve(*args[2:])
            self._do(Step("rename", {parent, to_parent}, parent=parent, name=name, to_parent=to_parent, to_name=to_name,
                          object=self.now.find(parent, name)))
        elif kind == "unlink":
            parent, name = self._resolve(*args)
            if parent is None:
                return False
            self._do(Step("unname", {parent}, parent=parent, name=name, object=self.now.find(parent, name)))
        elif kind in ("write", "grow"):
            file = self.by_inode.get(int(args[0]))
            if file is None:
                return False
            if kind == "write":
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
        """Those that a loss of power could leave now."""
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
