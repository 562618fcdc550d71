"""The verbs of a run, one for each task of the DAG; the CLI calls the same ones in a loop.

    download -> index -> plan -> train[variant, round] -> compare -> gate

What passes between them on disk goes through `store.py`; what they return are small dicts of plain values, fit for
XCom. A task imports the module of its verb alone: a trainer has no use for a drawing library.
"""
