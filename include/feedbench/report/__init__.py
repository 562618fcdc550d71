"""From a comparison record to the report that a person reads: report.html and report.md.

records -> view.py (decides and formats everything) -> charts.py (pictures) -> render.py (one file each).
"""
