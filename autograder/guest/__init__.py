"""All that lives beside student code: the wire, the fork server, the runner.

Imports the standard library, NumPy, IPython and msgspec, and nothing of ours outside this folder.
"""
