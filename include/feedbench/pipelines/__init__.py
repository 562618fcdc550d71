"""tf.data pipelines as compositions of steps. Add a variant in `variants.py`."""
