"""From a source of photos to an index: fetch, unpack or draw, decode every photo once, split."""
