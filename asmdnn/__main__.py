"""`python -m asmdnn` is the `asmdnn` command."""

import sys

from asmdnn.cli.main import main

sys.exit(main())
