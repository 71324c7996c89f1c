"""`python -m hprofiler`."""

import sys

from hprofiler.cli import main

sys.exit(main())
