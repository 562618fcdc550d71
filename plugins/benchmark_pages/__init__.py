"""The pages of the plugin: a module decides what each page says, `pages` draws it, `app` serves it to who may read it.

`listing` is the list of runs, `trends` is about many nights. Nothing here runs outside of the API server; pandas and
TensorFlow are not imported, matplotlib only for those who look at a trend.
"""
