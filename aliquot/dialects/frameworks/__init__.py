"""Job frameworks: kinds whose controllers make pods that belong together.

`table` says of each kind which pods its controller makes, how many, and when; `gangs` derives from
that which of them start together; `members` tells by its labels and owner which job a pod is of.
"""
