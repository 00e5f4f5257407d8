"""A cache for results of pure functions, shared by several runs of the tests. Runs need the same
pictures, and compare the same files under other policies. DARKROOM_KEPT names the directory.
Without it nothing is kept. Several processes may use it at the same time."""

import functools
import hashlib
import inspect
import os
import pathlib
import pickle
import tempfile

import PIL
import numpy

KEPT = os.environ.get("DARKROOM_KEPT")


def kept(function):
    """Caches a function whose result depends only on its arguments, the code of its module, and the
    libraries. Callers must not change the result."""
    code = pathlib.Path(inspect.getfile(function)).read_bytes()
    made_by = code + f"{PIL.__version__} {numpy.__version__}".encode()

    @functools.wraps(function)
    def look_up(*arguments, **options):
        if not KEPT:
            return function(*arguments, **options)
        asked = pickle.dumps((made_by, function.__name__, arguments, sorted(options.items())))
        path = pathlib.Path(KEPT, hashlib.sha256(asked).hexdigest())
        try:
            return pickle.loads(path.read_bytes())
        except OSError:
            pass
        result = function(*arguments, **options)
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=path.parent, delete=False) as file:
            file.write(pickle.dumps(result))
        os.replace(file.name, path)
        return result
    return look_up
