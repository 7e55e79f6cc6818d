"""Systems of large bodies, solved without a factor: conjugate gradients under a multigrid cycle."""
