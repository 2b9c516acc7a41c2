"""Files that say what of a folder stays at home; `broker/run/agent/ignore.py` knows their words."""

FILE = ".spzignore"
OF_JOBS = (FILE,)
OF_TASKS = (FILE, ".skyignore", ".gitignore")
"""Of task files, as SkyPilot has it; what a batch job makes is often what git ignores."""
