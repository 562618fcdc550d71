"""Many nights: what a run is held against (`nights`), whether it changed (`judgement`) and what changed with it
(`causes`), and what of old runs is kept (`retention`)."""
