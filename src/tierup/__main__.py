"""`python -m tierup` is the `tierup` command."""

import sys

from tierup.cli.main import main

sys.exit(main())
