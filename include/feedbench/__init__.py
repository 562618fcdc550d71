"""Feedbench: does your tf.data input pipeline feed your accelerator?"""
