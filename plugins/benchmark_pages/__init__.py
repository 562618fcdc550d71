"""The pages of the plugin: `listing` decides what a run's row says, `pages` draws, `app` serves to those who may read.

Nothing here runs outside of the API server; pandas, TensorFlow and drawing libraries are not imported.
"""
