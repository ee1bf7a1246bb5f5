"""Chaos: schedulers at work while everything around them fails, and a checker that follows it all.

Two replicas of `aliquot scheduler` run as processes, with their own Lease, against the embedded API
server or kube-apiserver and etcd. Load comes and goes all the time: owners that replace their pods,
gangs, priorities, several teams under one of four policies. In each round one fault happens, or two
at once; then the load rests, and the checker says what is wrong.
"""
