"""`python -m aliquot`."""

from aliquot.cli.main import main

main()
