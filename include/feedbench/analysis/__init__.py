"""From samples and profiles to a judgement. `stats` is plain maths; `compare` applies it to a run."""
