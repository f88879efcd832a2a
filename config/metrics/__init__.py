"""`/metrics`: what the whole service has waiting, lost and in flight, in Prometheus' text form.

Every figure comes from rows, so it is the same whichever process answers.
"""
