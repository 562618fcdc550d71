"""Running one trial: `launch` is the parent, `trial` the child process, the rest is what the child needs."""
