"""The browser that the page is looked at with: Debian's Chromium, where it is found."""

import os
import shutil

CHROMIUM = os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("chrome")
NO_CHROMIUM = "no chromium is on the PATH; `make browser` installs one"
