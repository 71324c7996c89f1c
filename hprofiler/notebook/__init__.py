"""Profile the Spark application of a notebook: `record` makes a `Run`, which shows its page and has tables.

Public as `hprofiler.record` and `hprofiler.Run`.
"""

from hprofiler.notebook.recording import Recording, record
from hprofiler.notebook.run import Run

__all__ = ["Recording", "Run", "record"]
